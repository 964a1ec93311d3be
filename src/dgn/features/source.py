"""Where examples come from: a file of claims, its pages, and how to read both."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dgn.data.examples import example_of, read_retrieved
from dgn.data.lines import Problems
from dgn.data.records import Example
from dgn.data.sources import read_claims, read_examples
from dgn.errors import InvalidInput
from dgn.features.build import FeatureReport, build_features
from dgn.features.pool import FeatureOptions
from dgn.fingerprint import fingerprint_of
from dgn.text import split_sentences


@dataclass(frozen=True)
class ExampleSource:
    """The files of a data set.

    claims: JSONL of any of our formats. pages: a page store, or a folder of pages; none for plain
    files. retrieved: JSONL that names the pages of each claim, in place of the oracle's.
    only_pages: leave out claims with candidates on other pages; a part of a data set.
    """

    claims: Path
    pages: Path | None = None
    retrieved: Path | None = None
    only_pages: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for name, path in self._files().items():
            if not path.exists():
                raise InvalidInput(name, found=f"no {path}", allowed="a file or folder that exists")

    def examples(self, problems: Problems | None = None) -> Iterator[Example]:
        """The examples, also those without a candidate."""
        examples = read_examples(
            self.claims,
            self.pages,
            problems,
            retrieved=self.retrieved,
            split=lambda text: [span.text for span in split_sentences(text)],
        )
        if self.only_pages is None:
            return examples
        allowed = self.only_pages
        return (one for one in examples if all(c.page in allowed for c in one.candidates))

    def without_pages(self) -> Iterator[Example]:
        """Claims with evidence for which nothing was retrieved: there is no example of them."""
        if self.retrieved is None:
            return
        quiet = Problems(skip=True)
        named = read_retrieved(self.retrieved, quiet)
        for claim in read_claims(self.claims, quiet):
            if claim.evidence and claim.id in named and not named[claim.id]:
                yield example_of(claim, [])

    def build_features(
        self,
        folder: Path,
        options: FeatureOptions,
        problems: Problems | None = None,
        *,
        workers: int = 2,
        on_progress: Callable[[int, int], None] = lambda _claims, _sentences: None,
    ) -> FeatureReport:
        """Embed all examples into a folder, unless it is up to date."""
        inputs = {name: fingerprint_of(path) for name, path in self._files().items()}
        if self.only_pages is not None:
            inputs["only_pages"] = f"{zlib.crc32(repr(sorted(self.only_pages)).encode()):x}"
        return build_features(
            self.examples,
            folder,
            options,
            inputs,
            problems,
            workers=workers,
            on_progress=on_progress,
        )

    def _files(self) -> dict[str, Path]:
        named = {"claims": self.claims, "pages": self.pages, "retrieved": self.retrieved}
        return {name: path for name, path in named.items() if path is not None}
