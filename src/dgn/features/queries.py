"""Examples of a data set as an encoder takes them."""

from __future__ import annotations

from dgn.data.records import Example
from dgn.encoders import Query


def query_of(example: Example, *, titles: bool = True) -> Query:
    """An example as the matcher takes it. titles: whether the pages' titles are told."""
    candidates = example.candidates
    numbers = {page: n for n, page in enumerate(dict.fromkeys(c.page for c in candidates))}
    return Query(
        claim=example.claim.text,
        sentences=[candidate.text for candidate in candidates],
        titles=[candidate.page if titles else "" for candidate in candidates],
        places=[candidate.sentence for candidate in candidates],
        pages=[numbers[candidate.page] for candidate in candidates],
    )
