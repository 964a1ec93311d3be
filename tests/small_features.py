"""Pooled features of a small data set that is made up: queries with some facets, passages of one.

`write_table` writes a folder of features as `dgn data features` does. `write_vectors` and
`write_queries` write the same kind of data as text, for tests that begin with texts.
"""

import json
from pathlib import Path

import numpy as np

from dgn.data import DenseBatches, ToDevice
from dgn.learn.config import RunConfig
from dgn.learn.families.pooled_table import PooledTable
from dgn.learn.features import write_meta

FACETS = 6
WORDS = ("harbour", "glass", "river", "violin", "winter", "copper")


def make_table(queries: int, seed: int, dimension: int = 12) -> PooledTable:
    random = np.random.default_rng(seed)
    facets = np.random.default_rng(99).standard_normal((FACETS, dimension))
    lengths = random.integers(3, 9, queries)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    about = random.integers(0, FACETS, offsets[-1])
    wanted = random.random((queries, FACETS)) < 0.35
    wanted[np.arange(queries), about[offsets[:-1]]] = True
    noise = 0.3 * random.standard_normal((offsets[-1], dimension))
    return PooledTable(
        queries=(wanted @ facets).astype(np.float16),
        passages=(facets[about] + noise).astype(np.float16),
        offsets=offsets,
        candidates=np.arange(offsets[-1], dtype=np.int32),
        gold=wanted[np.repeat(np.arange(queries), lengths), about],
        ids=np.array([f"{seed}-{n}" for n in range(queries)]),
    )


def write_table(folder: Path, queries: int, seed: int, dimension: int = 12) -> str:
    folder.mkdir(parents=True)
    for name, array in vars(make_table(queries, seed, dimension)).items():
        np.save(folder / f"{name}.npy", array)
    write_meta(folder, {"key": {"made": f"{queries} queries, seed {seed}"}})
    return str(folder)


def dense_batches(
    queries: int, seed: int, batch_size: int, to_device: ToDevice, *, inverted: bool = False
) -> DenseBatches:
    """The same data as X = query ⊙ passage, in memory; inverted, all other passages are gold."""
    table = make_table(queries, seed)
    lengths = table.lengths
    mask = np.arange(lengths.max()) < lengths[:, None]
    passages = np.zeros((*mask.shape, table.dimension), np.float32)
    passages[mask] = table.passages
    gold = np.zeros(mask.shape, bool)
    gold[mask] = ~table.gold if inverted else table.gold
    x = table.queries.astype(np.float32)[:, None, :] * passages
    return DenseBatches(x, gold, mask, batch_size, 0, to_device)


def write_vectors(path: Path, dimension: int = 12) -> Path:
    """Word vectors for WORDS and some other words, in word2vec's text format."""
    random = np.random.default_rng(99)
    words = [*WORDS, *(f"other{n}" for n in range(20))]
    rows = random.standard_normal((len(words), dimension))
    lines = [f"{w} {' '.join(f'{x:.5f}' for x in row)}" for w, row in zip(words, rows, strict=True)]
    path.write_text("\n".join([f"{len(words)} {dimension}", *lines]) + "\n", encoding="utf-8")
    return path


def write_queries(path: Path, queries: int, seed: int) -> Path:
    """Queries of one to three words; a passage is gold if its word is a word of the query."""
    random = np.random.default_rng(seed)
    rows: list[dict[str, object]] = []
    for number in range(queries):
        count = int(random.integers(1, 4))
        wanted = random.choice(FACETS, count, replace=False)
        about = [*random.permutation(wanted), *random.integers(0, FACETS, random.integers(2, 6))]
        others = random.integers(0, 20, (len(about), 2))
        passages = [
            f"{WORDS[facet]} other{a} other{b}" for facet, (a, b) in zip(about, others, strict=True)
        ]
        gold = [place for place, facet in enumerate(about) if facet in wanted]
        query = " ".join(WORDS[facet] for facet in wanted)
        rows.append(
            {"id": f"{seed}-{number}", "query": query, "passages": passages, "evidence": [gold]}
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def small_run(features: tuple[str, str], **settings: object) -> RunConfig:
    """The configuration of a short run on the folders of features to train and to validate with."""
    few = {"epochs": 3, "batch_size": 16, "layers": 3, "eval_ks": [1, 3], "learning_rate": 0.01}
    machine = {"device": "cpu", "train": [features[0]], "validation": features[1]}
    return RunConfig().with_settings({**few, **machine, **settings})
