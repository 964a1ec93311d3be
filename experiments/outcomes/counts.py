"""Recall by the number of outcomes, and by the share of them that is wrong; generated problem."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from experiments.outcomes.generated import GeneratedProblem
from experiments.outcomes.methods import METHODS, Settings, run
from experiments.outcomes.study import measure

COUNTS = (125, 250, 500, 1000, 2000, 4000)
NOISES = (0.0, 0.1, 0.2, 0.3, 0.4)
USUAL = 2000
_MOST_EPOCHS = 40


def measure_counts(path: Path, *, seeds: int) -> None:
    """Train from more and fewer outcomes, and from wrong ones.

    Args:
        path: The file of results, which has the settings that `generated` chose.
        seeds: The number of seeds.
    """
    results: dict[str, Any] = json.loads(path.read_text())
    section = results.setdefault("counts", {})
    section |= {"counts": COUNTS, "noises": NOISES, "usual": USUAL}
    plan = [("count", count, count, 0.0) for count in COUNTS]
    plan += [("noise", noise, USUAL, noise) for noise in NOISES[1:]]
    for axis, place, count, noise in plan:
        by_place = section.setdefault(f"DGN, by {axis}", {})
        found: list[dict[str, Any]] = by_place.setdefault(str(place), [])
        if count == USUAL and not noise:  # the run of `generated`
            found[:] = results["generated"]["methods"]["DGN"]["seeds"][:seeds]
        started = time.process_time()
        for seed in range(len(found), seeds):
            found.append(_measured(results, count, noise, seed))
        path.write_text(json.dumps(results, indent=1) + "\n")
        recalls = [one["recall"][-1] for one in found]
        print(axis, place, recalls, f"{time.process_time() - started:.0f} s", flush=True)


def _measured(results: dict[str, Any], count: int, noise: float, seed: int) -> dict[str, Any]:
    problem = GeneratedProblem(count, noise)
    # Few outcomes are seen more often, so that all networks take about as many steps.
    problem.epochs = min(_MOST_EPOCHS, max(problem.epochs, problem.epochs * USUAL // count))
    settings: dict[str, Any] = results["generated"]["methods"]["DGN"]["settings"]
    factor = settings["factor"] ** (GeneratedProblem.epochs / problem.epochs)
    method = next(one for one in METHODS if one.name == "DGN")
    splits = problem.splits(seed)
    chosen = Settings(**(settings | {"factor": factor}))
    network, _ = run(method, problem, chosen, seed, splits)
    return measure(network, problem, splits[2])
