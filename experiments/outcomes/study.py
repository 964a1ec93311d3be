"""Runs of all methods on a problem: trials that choose, seeds that report, and the table."""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from dgn.learn.outcomes import OutcomeNetwork, Outcomes, measure_outcomes
from experiments.outcomes.methods import (
    METHODS,
    Method,
    Problem,
    Settings,
    Split,
    draw_settings,
    run,
    selected_from,
)

TUNING_SEED = 100
"""The seed of all trials; the seeds that are reported are 0, 1, …"""


def compare(
    problem: Problem, path: Path, trials: int, seeds: int, methods: tuple[Method, ...] = METHODS
) -> dict[str, Any]:
    """Run all methods, and write what is found after each of them.

    Args:
        problem: The problem.
        path: The file of results; what it has is not repeated.
        trials: The number of trials of each method.
        seeds: The number of seeds that the best trial is repeated with.
        methods: The methods.
    """
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    section = results.setdefault(problem.name, {"k": problem.k, "ks": problem.ks, "methods": {}})
    section |= {"trials": trials, "seeds": seeds}
    for method in methods:
        one = section["methods"].setdefault(method.name, {"seeds": [], "cpu_seconds": 0.0})
        started = time.process_time()
        if "settings" not in one:
            choices = draw_settings(trials)
            losses = [
                run(method, problem, settings, TUNING_SEED, problem.splits(TUNING_SEED))[1]
                for settings in (choices if trials > 1 else [])
            ]
            one["trial_losses"] = [round(loss, 4) for loss in losses]
            one["settings"] = asdict(choices[losses.index(min(losses)) if losses else 0])
        found: list[dict[str, Any]] = one["seeds"]
        for seed in range(len(found), seeds):
            splits = problem.splits(seed)
            network, chosen_by = run(method, problem, Settings(**one["settings"]), seed, splits)
            found.append(
                {"loss_that_chose": round(chosen_by, 4), **measure(network, problem, splits[2])}
            )
        one["cpu_seconds"] = round(one["cpu_seconds"] + time.process_time() - started, 1)
        path.write_text(json.dumps(results, indent=1) + "\n")
        print(method.name, _cells(found, problem), flush=True)
    return section


def measure(network: OutcomeNetwork, problem: Problem, report: Split) -> dict[str, Any]:
    """The recall and the accuracy at each k, and the accuracy from the soft selection."""
    return {
        "recall": [
            round(report.recall(selected_from(network, report.data, k)), 4) for k in problem.ks
        ],
        "accuracy": [round(measure_outcomes(network, report.data, k)[1], 4) for k in problem.ks],
        "soft_accuracy": round(_soft_accuracy(network, report.data), 4),
    }


@torch.no_grad()
def _soft_accuracy(network: OutcomeNetwork, data: Outcomes) -> float:
    """How often the outcome is right when the reader sees the soft selection."""
    correct = 0
    for _, batch in data.batches(256):
        logits = network.read(batch, network.selector.membership(batch.x, batch.mask))
        correct += int((logits.argmax(dim=1) == batch.outcome).sum())
    return correct / len(data)


def _cells(found: list[dict[str, Any]], problem: Problem) -> str:
    columns = [[one["recall"][n] for one in found] for n in range(len(problem.ks))]
    columns += [[one["accuracy"][n] for one in found] for n in range(len(problem.ks))]
    return "  ".join(spread(column) for column in columns)


def spread(values: list[float]) -> str:
    """Mean and standard deviation; the value alone if there is one."""
    mean = f"{statistics.mean(values):.3f}"
    return (
        mean if len(values) == 1 else f"{mean} ±{statistics.stdev(values):.3f}".replace("±0", "±")
    )


def _in_order(section: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The name and the seeds of each method that was run, in the order of METHODS."""
    run_methods = section["methods"]
    return [(m.name, run_methods[m.name]["seeds"]) for m in METHODS if m.name in run_methods]


def table(name: str, section: dict[str, Any]) -> str:
    """The table of a problem, as text."""
    ks: list[int] = section["ks"]
    seeds = [len(one["seeds"]) for one in section["methods"].values()]
    lines = [
        f"{name}: {section['trials']} trial(s) per method, {min(seeds)} to {max(seeds)} seeds, "
        "mean ± standard deviation",
        "",
        f"{'':<24}" + f"{'recall':<{14 * len(ks)}}" + "accuracy of the outcome",
        f"{'':<24}" + "".join(f"{f'k = {k}':<14}" for k in ks) * 2,
    ]
    for method, found in _in_order(section):
        cells = [
            spread([seed[what][n] for seed in found])
            for what in ("recall", "accuracy")
            for n in range(len(ks))
        ]
        lines.append(f"{method:<24}" + "".join(f"{cell:<14}" for cell in cells))
    return "\n".join(lines) + "\n"


def markdown(section: dict[str, Any]) -> str:
    """The table of a problem, as it is in the documentation."""
    ks: list[int] = section["ks"]
    heads = [f"recall at {k}" for k in ks] + [f"accuracy at {k}" for k in ks]
    lines = ["| | " + " | ".join(heads) + " |", "| --- |" + " --: |" * len(heads)]
    for method, found in _in_order(section):
        cells = [
            spread([seed[what][n] for seed in found]).removeprefix("0")
            for what in ("recall", "accuracy")
            for n in range(len(ks))
        ]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
