"""Features of a small data set that we make up: claims of some facets, sentences of one each."""

from pathlib import Path

import numpy as np

from dgn.data.feature_table import FeatureTable, write_meta


def make_table(claims: int, seed: int, dimension: int = 12) -> FeatureTable:
    random = np.random.default_rng(seed)
    facets = np.random.default_rng(99).standard_normal((6, dimension))
    lengths = random.integers(3, 9, claims)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    about = random.integers(0, 6, offsets[-1])
    wanted = random.random((claims, 6)) < 0.35
    wanted[np.arange(claims), about[offsets[:-1]]] = True
    noise = 0.3 * random.standard_normal((offsets[-1], dimension))
    return FeatureTable(
        claims=(wanted @ facets).astype(np.float16),
        sentences=(facets[about] + noise).astype(np.float16),
        offsets=offsets,
        candidates=np.arange(offsets[-1], dtype=np.int32),
        gold=wanted[np.repeat(np.arange(claims), lengths), about],
        ids=np.array([f"{seed}-{n}" for n in range(claims)]),
    )


def write_table(folder: Path, claims: int, seed: int, dimension: int = 12) -> str:
    folder.mkdir(parents=True)
    for name, array in vars(make_table(claims, seed, dimension)).items():
        np.save(folder / f"{name}.npy", array)
    write_meta(folder, {"key": {"made": f"{claims} claims, seed {seed}"}})
    return str(folder)
