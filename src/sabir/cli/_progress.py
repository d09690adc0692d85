"""A progress bar on standard error for long work, where that is a terminal."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    TextColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.progress import ProgressColumn

    from sabir.debugging import ReductionStep
    from sabir.training import Progress

_WORTH_A_BAR = 1 << 26  # bytes; less is done before anyone reads a bar
_MANY = 4  # kernels for which this is so: each takes about 50 ms


@contextlib.contextmanager
def progress_bar(action: str) -> Generator[Callable[[int, int], None], None, None]:
    """Show a bar while the block runs; it yields a function to call with the bytes done and the total."""
    columns = (TextColumn(action), BarColumn(), DownloadColumn(binary_units=True), TransferSpeedColumn())
    with _bar(action, columns, _WORTH_A_BAR) as progress:
        yield progress


@contextlib.contextmanager
def counting_bar(action: str) -> Generator[Callable[[int, int], None], None, None]:
    """Show a bar as `progress_bar` does, for a number of kernels."""
    with _bar(action, (TextColumn(action), BarColumn(), MofNCompleteColumn()), _MANY) as progress:
        yield progress


@contextlib.contextmanager
def training_bar() -> Generator[Callable[[Progress], None]]:
    """Show the batches of an epoch while the block runs, with the means of the results so far."""
    console = Console(stderr=True)
    columns = (
        TextColumn("epoch {task.fields[epoch]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[shown]}"),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("training", total=None, epoch="", shown="")

        def progress(at: Progress) -> None:
            shown = "  ".join(f"{name} {value:.4g}" for name, value in at.results.items())
            bar.update(
                task,
                completed=at.batch,
                total=at.batches or None,
                epoch=f"{at.epoch}/{at.epochs}",
                shown=shown,
            )

        yield progress


@contextlib.contextmanager
def reduction_line() -> Generator[Callable[[ReductionStep], None]]:
    """Show what a reduction does while the block runs: how many models it tried, and the smallest one."""
    console = Console(stderr=True)
    columns = (TextColumn("reducing: {task.fields[shown]}"),)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reducing", total=None, shown="")

        def progress(step: ReductionStep) -> None:
            smallest = f"{step.nodes:,} nodes, {step.parameters:,} parameters"
            bar.update(task, shown=f"{step.action}, {step.trials:,} models tried, the smallest: {smallest}")

        yield progress


@contextlib.contextmanager
def _bar(
    action: str, columns: tuple[ProgressColumn, ...], least: int
) -> Generator[Callable[[int, int], None], None, None]:
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(action, total=None, visible=False)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, visible=total >= least)

        yield progress
