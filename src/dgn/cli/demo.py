"""`dgn demo`: the demonstration on a terminal."""

from __future__ import annotations

import statistics
import time

from dgn.errors import require_extra

require_extra("dgn demo", package="torch", extra="train")
require_extra("dgn demo", package="rich", extra="train")

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from dgn.demo import KS, DemoResult, Row, Story, run_demo


def show_demo(seeds: int) -> None:
    """Run the demonstration for seeds 0, 1, … and print the table and one explained selection."""
    console = Console(highlight=False)
    started = time.perf_counter()
    results = [_run_with_bar(console, seed) for seed in range(seeds)]
    console.print(_table(results))
    stories = [result.story for result in results if result.story is not None]
    if stories:
        console.print()
        console.print(_told(stories[0]), soft_wrap=True)
    console.print(f"\n{time.perf_counter() - started:.0f} s, seeds 0 to {seeds - 1}")


def _run_with_bar(console: Console, seed: int) -> DemoResult:
    columns = (TextColumn("{task.description:<52}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"seed {seed}: making the problem", total=1.0)
        return run_demo(
            seed,
            on_progress=lambda doing, share: progress.update(
                task, description=f"seed {seed}: {doing}", completed=share
            ),
        )


def _table(results: list[DemoResult]) -> Table:
    seeds = len(results)
    table = Table(
        title="Recall after k picks, 1,000 test claims, "
        + ("1 seed" if seeds == 1 else f"{seeds} seeds, mean ± sd"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("selector", no_wrap=True)
    table.add_column("parameters", justify="right", no_wrap=True)
    for k in KS:
        table.add_column(f"k = {k}", justify="right", no_wrap=True)
    for same in zip(*(result.rows for result in results), strict=True):
        style = "bold" if same[0].name == "DGN" else None
        cells = [_spread([row.recall[i] for row in same]) for i in range(len(KS))]
        table.add_row(same[0].name, _count(same[0]), *cells, style=style)
    return table


def _count(row: Row) -> str:
    return f"{row.parameters:,}" if row.parameters else "–"


def _spread(values: list[float]) -> str:
    mean = f"{statistics.mean(values):.3f}"
    if len(values) == 1:
        return mean
    # Without its leading zero, the table fits a terminal of 80 columns.
    return f"{mean} ±" + f"{statistics.stdev(values):.3f}".removeprefix("0")


def _told(story: Story) -> str:
    """The story of one claim, with the gains, as the paper tells its own."""
    facets = story.claims.claim_facets[story.claim]
    length = int(story.claims.mask[story.claim].sum())
    lines = [
        f"[bold]Test claim {story.claim}[/bold] has the facets {', '.join(map(str, facets))}; "
        f"its page has {length} sentences.",
        "Encoder picks " + "; ".join(_sentence(story, i) for i in story.encoder_picks) + ".",
        "DGN picks, each given the ones before:",
    ]
    for number, step in enumerate(story.explanation.steps[: len(facets)], start=1):
        alone = story.explanation.steps[0].gains[step.index]
        lines.append(
            f"  {number}. {_sentence(story, step.index)}: adds {step.gain:.2f} "
            f"(alone it is worth {alone:.2f})"
        )
        if step.runner_up is not None:
            lines.append(
                f"     before {_sentence(story, step.runner_up)}, which would add "
                f"{step.runner_up_gain:.2f}"
            )
    lines.append(_why_not(story))
    return "\n".join(lines)


def _why_not(story: Story) -> str:
    """What became of the redundant sentence that the Encoder preferred."""
    rejected = next(i for i in story.encoder_picks if i not in story.dgn_picks)
    history = story.explanation.history(rejected)[: len(story.dgn_picks)]
    falling = " → ".join(f"{gain:.2f}" for gain in history)
    return f"Not picked, {_sentence(story, rejected)}: its gain falls {falling}."


def _sentence(story: Story, index: int) -> str:
    facet = int(story.claims.facet[story.claim, index])
    return f"sentence {index} ({story.claims.role(story.claim, index)}, facet {facet})"
