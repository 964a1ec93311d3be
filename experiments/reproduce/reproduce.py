"""The whole reproduction: prepare, train, measure, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from dgn.errors import InvalidInput
from experiments.reproduce.data import DataLayout, find_layout, make_features
from experiments.reproduce.plan import Effort
from experiments.reproduce.training import kinds_of


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    data: Path
    vectors: str
    out: Path
    effort: Effort = field(default_factory=Effort)
    workers: int = 1
    device: str = "auto"


def features(
    request: Request,
    on_progress: Callable[[str, float | None], None] = lambda _doing, _share: None,
) -> DataLayout:
    """Divide the data, and make the features that are not there yet."""
    if (request.out / "config.json").exists():
        raise InvalidInput(
            "out", message=f"{request.out} contains a run of dgn train; choose another folder."
        )
    request.out.mkdir(parents=True, exist_ok=True)
    layout = find_layout(request.data, request.out, lambda doing: on_progress(doing, None))
    make_features(
        layout,
        request.vectors,
        request.out / "features",
        kinds_of(request.effort),
        lambda doing: on_progress(doing, None),
    )
    return layout


def reproduce(request, update):
    raise NotImplementedError
