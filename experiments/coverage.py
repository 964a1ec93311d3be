"""Does `coverage` tell a query's own passages from others? `python -m experiments.coverage`.

For each domain, the coverage of queries by five of their own passages is compared with that of the
same queries by passages of another domain, and of another document of the same domain. The number
is the AUROC: how often the first is larger.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

import dgn
from dgn.data import Example
from dgn.selector import Selector
from dgn.text.query import Query
from experiments.domains import DOMAINS, read_domain


def main(arguments: Sequence[str] | None = None) -> int:
    """Print one line per domain."""
    parser = argparse.ArgumentParser(prog="python -m experiments.coverage", description=__doc__)
    parser.add_argument("--queries", type=int, default=100, help="queries per domain")
    parser.add_argument("--model", help="as in dgn select")
    options = parser.parse_args(arguments)
    selector = Selector.from_pretrained(options.model)
    random = np.random.default_rng(0)
    examples = {name: read_domain(name).dev[: options.queries] for name in DOMAINS}
    print(f"{'':<16}{'other domain':>14}{'same domain':>14}   mean coverage: own, other, same")
    for name, own in examples.items():
        elsewhere = [one for other in DOMAINS if other != name for one in examples[other]]
        asked = [example.query.text for example in own]
        found = [_coverage(selector, example.query) for example in own]
        other = [_coverage(selector, _with(text, _any(elsewhere, random))) for text in asked]
        same = [_coverage(selector, _with(e.query.text, _stranger(e, own, random))) for e in own]
        means = ", ".join(f"{np.mean(some):.2f}" for some in (found, other, same))
        print(f"{name:<16}{auroc(found, other):>14.3f}{auroc(found, same):>14.3f}   {means}")
    return 0


def auroc(above: Sequence[float], below: Sequence[float]) -> float:
    """How often a value of the first is larger than one of the second; ties count half."""
    first, second = np.array(above)[:, None], np.array(below)
    return float(((first > second) + 0.5 * (first == second)).mean())


def _coverage(selector: Selector, query: Query) -> float:
    return selector.select_queries([query], dgn.Limits(k=5))[0].coverage or 0.0


def _with(text: str, other: Example) -> Query:
    return Query(text, other.query.passages)


def _any(examples: Sequence[Example], random: np.random.Generator) -> Example:
    return examples[int(random.integers(len(examples)))]


def _stranger(
    example: Example, examples: Sequence[Example], random: np.random.Generator
) -> Example:
    """An example of another document."""
    while True:
        other = _any(examples, random)
        if other.query.passages[0].text != example.query.passages[0].text:
            return other


if __name__ == "__main__":
    sys.exit(main())
