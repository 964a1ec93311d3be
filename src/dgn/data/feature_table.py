"""The features of a whole data set, resident in memory: every sentence embedded once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.errors import BrokenInput, InvalidInput

ARRAYS = ("claims", "sentences", "offsets", "candidates", "gold", "ids")


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """The features of a data set.

    claims: [claims, dimension]; sentences: [sentences, dimension]; float16.
    offsets: [claims + 1]; the candidates of claim i are candidates[offsets[i]:offsets[i + 1]].
    candidates: rows of `sentences`. gold: one for each candidate.
    ids: [claims], the claims' ids: the way back to their text.
    """

    claims: NDArray[Any]
    sentences: NDArray[Any]
    offsets: NDArray[np.int64]
    candidates: NDArray[np.int32]
    gold: NDArray[np.bool_]
    ids: NDArray[Any]

    def __len__(self) -> int:
        return len(self.claims)

    @property
    def dimension(self) -> int:
        """How long the vectors are."""
        return self.claims.shape[1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """[claims], how many candidates each has."""
        return np.diff(self.offsets)

    @classmethod
    def load(cls, folder: Path | str) -> FeatureTable:
        """Open the features that `dgn data features` wrote."""
        folder = Path(folder)
        if not (folder / "meta.json").is_file():
            raise InvalidInput(
                "folder", found=f"no features in {folder}", allowed="what dgn data features wrote"
            )
        return cls(*(_load(folder / f"{name}.npy") for name in ARRAYS))

    @classmethod
    def join(cls, tables: Sequence[FeatureTable]) -> FeatureTable:
        """Several data sets as one, in this order."""
        if len({table.dimension for table in tables}) != 1:
            found = ", ".join(str(table.dimension) for table in tables) or "no table"
            raise InvalidInput("tables", found=found, allowed="at least one, all of one dimension")
        sentences_before = [0, *itertools.accumulate(len(table.sentences) for table in tables)]
        candidates_before = [0, *itertools.accumulate(len(table.candidates) for table in tables)]
        return cls(
            claims=np.concatenate([table.claims for table in tables]),
            sentences=np.concatenate([table.sentences for table in tables]),
            offsets=np.concatenate(
                [
                    np.zeros(1, np.int64),
                    *(t.offsets[1:] + n for t, n in zip(tables, candidates_before, strict=False)),
                ]
            ),
            candidates=np.concatenate(
                [t.candidates + np.int32(n) for t, n in zip(tables, sentences_before, strict=False)]
            ),
            gold=np.concatenate([table.gold for table in tables]),
            ids=np.concatenate([table.ids for table in tables]),
        )

    def of_claims(self, rows: NDArray[np.int64]) -> FeatureTable:
        """Some of the claims, with all sentences."""
        lengths = self.lengths[rows]
        first = np.repeat(self.offsets[rows], lengths)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        places: NDArray[np.int64] = (
            first + np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
        )
        return FeatureTable(
            self.claims[rows],
            self.sentences,
            offsets,
            self.candidates[places],
            self.gold[places],
            self.ids[rows],
        )


def _load(path: Path) -> NDArray[Any]:
    try:
        return np.load(path)
    except (OSError, ValueError, EOFError) as error:
        raise BrokenInput(
            path, None, found=str(error), allowed="what dgn data features wrote; make them anew"
        ) from None


def read_key(folder: Path) -> dict[str, Any]:
    """What a folder of features was made from."""
    path = folder / "meta.json"
    try:
        key: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["key"]
        return dict(key)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BrokenInput(
            path, None, found=f"no description ({error})", allowed="what dgn data features wrote"
        ) from None


def made_with(key: dict[str, Any]) -> tuple[str, bool] | None:
    """Which vectors the features come from, and whether they were scaled to length 1."""
    return (str(key["vectors"]), bool(key["unit"])) if {"vectors", "unit"} <= key.keys() else None


def write_meta(folder: Path, meta: dict[str, object]) -> None:
    """The last file of a features folder: what it was made from."""
    (folder / "meta.json").write_text(json.dumps(meta, indent=2), encoding="utf-8")
