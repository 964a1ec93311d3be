"""Embedding texts in several processes at once."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dgn.errors import InvalidInput
from dgn.text.matching import unit_rows
from dgn.text.vectors import PooledVectors, open_vectors

ENCODERS = ("pooled", "facets")


@dataclass(frozen=True)
class FeatureOptions:
    """vectors: what `open_vectors` takes. unit: scale every pooled vector to length 1.

    encoder: "pooled" for the paper's one vector a text, "facets" for the claim's words matched
    with each sentence's. titles: whether facets are told the pages' titles.
    """

    vectors: str = "wordllama"
    unit: bool = False
    encoder: str = "pooled"
    titles: bool = True

    def __post_init__(self) -> None:
        if self.encoder not in ENCODERS:
            raise InvalidInput("encoder", found=repr(self.encoder), allowed=", ".join(ENCODERS))
        if not self.titles and self.encoder != "facets":
            raise InvalidInput(
                "titles",
                found="False for pooled vectors",
                allowed="encoder facets",
            )
        if self.encoder == "facets" and (self.vectors != "wordllama" or self.unit):
            raise InvalidInput(
                "encoder", found="facets with other vectors", allowed="wordllama's, as they are"
            )


class EmbeddingPool:
    """Embeds texts in other processes; each opens the vectors for itself."""

    def __init__(self, options: FeatureOptions, vectors: PooledVectors, workers: int) -> None:
        self.workers = workers
        self._options, self._vectors = options, vectors
        self._executor = (
            ProcessPoolExecutor(
                workers,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_open_in_worker,
                initargs=(options,),
            )
            if workers > 1
            else None
        )

    def embed(self, texts: list[str]) -> Future[NDArray[np.float16]]:
        if self._executor is not None:
            return self._executor.submit(_embed_in_worker, texts)
        future: Future[NDArray[np.float16]] = Future()
        future.set_result(_embed(self._vectors, self._options, texts))
        return future

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)


_worker: tuple[PooledVectors, FeatureOptions] | None = None


def _open_in_worker(options: FeatureOptions) -> None:
    global _worker
    _worker = (open_vectors(options.vectors), options)


def _embed_in_worker(texts: list[str]) -> NDArray[np.float16]:
    if _worker is None:
        raise RuntimeError("the worker was not opened")
    return _embed(*_worker, texts)


def _embed(
    vectors: PooledVectors, options: FeatureOptions, texts: list[str]
) -> NDArray[np.float16]:
    pooled: NDArray[Any] = vectors.pooled(texts)
    if options.unit:
        pooled = unit_rows(pooled)
    if np.abs(pooled).max(initial=0) > np.finfo(np.float16).max:
        raise InvalidInput(
            "vectors",
            found=f"{np.abs(pooled).max():g} in a pooled vector",
            allowed="what float16 holds; use --unit",
        )
    return pooled.astype(np.float16)
