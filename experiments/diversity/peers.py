"""What selects without learning: facility location, features, k-means, k-center, MMR, top-k.

Each peer has the same number of tries on the pools that choose, if it has anything to set. The two
functions of apricot are computed by dgn: apricot compiles itself again for every pool, for
seconds, and both select the same items (tests/experiments/test_diversity.py compares them).
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast, final

import numpy as np
import pyversity
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from dgn.core import Selection, greedy
from dgn.core.functions import FacilityLocation, FeatureCoverage, Log1p, SetFunction, Sqrt
from experiments.diversity.pools import Numbers, Pool


class Peer(ABC):
    """A way to select; `try_one` draws other settings of it."""

    name: str
    is_random: bool = False

    @abstractmethod
    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        """k items, in order where there is one."""

    def try_one(self, random: np.random.Generator) -> Peer | None:
        """Another setting; None if there is nothing to set."""
        del random
        return None

    def settings(self) -> dict[str, Any]:
        """What was set, for the report."""
        return {}


@final
class Random(Peer):
    """Any k items."""

    name, is_random = "random", True

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        return random.permutation(pool.size)[:k].tolist()


@final
class Best(Peer):
    """The k items that seem worth most, each by itself."""

    name = "top-k by worth"

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        return np.argsort(-pool.worth, kind="stable")[:k].tolist()


@final
class First(Peer):
    """The first k sentences of a document."""

    name = "first k"

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        return list(range(min(k, pool.size)))


@final
@dataclass(frozen=True)
class Mmr(Peer):
    """Maximal marginal relevance of pyversity, on the worth of items."""

    diversity: float = 0.5
    name: str = field(default="MMR (pyversity)", init=False)

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        worth = pool.worth / pool.worth.max()
        diversify: Any = pyversity.diversify
        found = diversify(
            pool.profiles, worth, k=min(k, pool.size), strategy="mmr", diversity=self.diversity
        )
        return found.indices.tolist()

    def try_one(self, random: np.random.Generator) -> Mmr:
        return Mmr(float(random.uniform()))

    def settings(self) -> dict[str, Any]:
        return {"diversity": self.diversity}


@final
@dataclass(frozen=True)
class Mrmr(Peer):
    """Minimal redundancy, maximal relevance: worth minus the mean correlation with the selected."""

    redundancy: float = 1.0
    name: str = field(default="mRMR", init=False)

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        worth = (pool.worth / pool.worth.max()).astype(np.float64)
        chosen: list[int] = []
        for _ in range(min(k, pool.size)):
            score = worth - (self.redundancy * pool.profiles[:, chosen].mean(1) if chosen else 0)
            score[chosen] = -np.inf
            chosen.append(int(np.argmax(score)))
        return chosen

    def try_one(self, random: np.random.Generator) -> Mrmr:
        return Mrmr(float(random.uniform(0, 2)))

    def settings(self) -> dict[str, Any]:
        return {"redundancy": self.redundancy}


@final
@dataclass(frozen=True)
class Facilities(Peer):
    """Facility location, as in apricot, on similarities that fall with the distance."""

    sharpness: float = 4.0
    name: str = field(default="facility location (as apricot)", init=False)

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        return _greedy(FacilityLocation(), self.similarity(pool), k)

    def similarity(self, pool: Pool) -> NDArray[np.float64]:
        """[items, items]."""
        return np.exp(-self.sharpness * pool.apart.astype(np.float64))

    def try_one(self, random: np.random.Generator) -> Facilities:
        return Facilities(math.exp(random.uniform(math.log(0.1), math.log(16))))

    def settings(self) -> dict[str, Any]:
        return {"sharpness": self.sharpness}


@final
@dataclass(frozen=True)
class FeatureSums(Peer):
    """The feature-based function, as in apricot, on the positive and negative parts of vectors."""

    concave: str = "sqrt"
    scale: float = 1.0
    name: str = field(default="feature-based (as apricot)", init=False)

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        concave = Sqrt() if self.concave == "sqrt" else Log1p()
        return _greedy(FeatureCoverage(None, concave), self.features(pool), k)

    def features(self, pool: Pool) -> NDArray[np.float64]:
        """[items, features]."""
        rows = pool.profiles.astype(np.float64)
        return self.scale * np.concatenate([rows.clip(min=0), (-rows).clip(min=0)], axis=1)

    def try_one(self, random: np.random.Generator) -> FeatureSums:
        concave = str(random.choice(["sqrt", "log"]))
        return FeatureSums(concave, math.exp(random.uniform(math.log(0.3), math.log(100))))

    def settings(self) -> dict[str, Any]:
        return {"concave": self.concave, "scale": self.scale}


@final
class Centers(Peer):
    """k-center: the item nearest to the middle, then each time the farthest from the selected."""

    name = "k-center (farthest first)"

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        del random
        chosen = [int(pool.apart.mean(axis=1).argmin())]
        nearest = pool.apart[chosen[0]].copy()
        for _ in range(min(k, pool.size) - 1):
            chosen.append(int(nearest.argmax()))
            nearest = np.minimum(nearest, pool.apart[chosen[-1]])
        return chosen


@final
class Means(Peer):
    """k-means: the item that is nearest to each of k centers."""

    name, is_random = "k-means (scikit-learn)", True

    def select(self, pool: Pool, k: int, random: np.random.Generator) -> list[int]:
        rows: Numbers = pool.profiles
        if k >= pool.size:
            return list(range(pool.size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer different items than centers
            kind: Any = KMeans
            found = kind(k, n_init=3, random_state=int(random.integers(2**31))).fit(rows)
        chosen: list[int] = []
        for center in cast("NDArray[Any]", found.cluster_centers_):
            order = ((rows - center) ** 2).sum(axis=1).argsort()
            chosen.append(next(int(i) for i in order if int(i) not in chosen))
        return chosen


def _greedy(objective: SetFunction, features: NDArray[np.float64], k: int) -> list[int]:
    found = list(cast("Selection", greedy(objective, features, min(k, len(features)))).indices)
    # Where nothing is gained any more, apricot goes on with any item.
    return found + [i for i in range(len(features)) if i not in found][: k - len(found)]


def peers_of(name: str) -> Sequence[Peer]:
    """The peers that make sense for a benchmark, by its name."""
    redundancy: Peer = Mrmr() if "features" in name else Mmr()
    first = [First()] if "sentences" in name else []
    return (Random(), *first, Best(), redundancy, Facilities(), FeatureSums(), Centers(), Means())
