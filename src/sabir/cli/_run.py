"""`sabir run`: a model run once, or several times, on given or random inputs."""

from __future__ import annotations

import statistics
import time
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import FeedError, quote
from sabir.checking import check
from sabir.cli._feeds import gather

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption
from sabir.cli._models import ModelPath, load_any
from sabir.cli._operators import OperatorsOption, registry_of
from sabir.cli._results import save_all, summary, type_text
from sabir.cli._screen import Screen, plain, seconds_text
from sabir.runtime import Session

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sabir.ir import Type

EXAMPLES = (
    "sabir run model.onnx",
    "sabir run model.onnx --dim batch=8 --repeat 20",
    "sabir run model.onnx --input image=cat.npy --output results",
)
_MOST_DIGITS = 18  # what int64 surely holds


def run(  # ruff: ignore[too-many-arguments]  each is an option
    model: ModelPath,
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", "-i", metavar="NAME=FILE", help="Feed an input from a .npy or .pb file; repeatable."
        ),
    ] = None,
    dims: Annotated[
        list[str] | None,
        typer.Option(
            "--dim", "-d", metavar="NAME=SIZE", help="Give a dimension variable its size, else 1; repeatable."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Save each output here, as NAME.npy or NAME.pb."),
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, metavar="K", help="Run K times, and tell the times.")] = 1,
    threads: Annotated[int | None, typer.Option(min=1, metavar="T", help="Use at most T threads.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="S", help="Draw other random inputs.")] = 0,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Check the model first, and stop at a value that contradicts its declared type."
        ),
    ] = False,
    newer_opsets: Annotated[
        bool,
        typer.Option("--newer-opsets", help="Take an unknown newer operator set as the newest known one."),
    ] = False,
    operators: OperatorsOption = None,
    _: LimitOption = None,
) -> None:
    """Run a model, and show its outputs and the time it takes.

    Inputs without a file are random values of the declared types: floats from the standard normal
    distribution, integers from 0 to 9, booleans, strings of one letter.

    A .npy file holds a tensor; a .pb file holds a TensorProto, SequenceProto, MapProto or OptionalProto, as
    the type of the input or output says. --output writes .pb files for sequences, maps and optionals, and for
    tensors whose element type the .npy format lacks, such as bfloat16. Each saved file can be an input again.
    """
    loaded, screen, registry = load_any(model), Screen(), registry_of(operators)
    if strict:
        check(loaded, registry=registry)
    session = Session(loaded, threads=threads, strict=strict, newer_opsets=newer_opsets, registry=registry)
    files = {name: Path(file) for name, file in _pairs("--input", inputs, {p.name for p in session.inputs})}
    sizes = {name: _size(name, size) for name, size in _pairs("--dim", dims, ())}
    feeds = gather(session.inputs, files, sizes, seed)
    screen.line(f"{screen.paint(plain(model.name), bold=True)} on the engine {session.engine!r}")
    screen.heading("Inputs")
    screen.table([_described(name, *feed) for name, feed in feeds.items()], "cyan", "", "dim")
    results, seconds = _timed(session, {name: feed.value for name, feed in feeds.items()}, repeat)
    screen.heading("Outputs")
    screen.table(list(starmap(_described, results.items())), "cyan")
    screen.heading("Time", _times(seconds))
    if output is not None:
        _save(screen, results, {p.name: p.type for p in session.outputs}, output)


def _save(screen: Screen, results: Mapping[str, Any], types: Mapping[str, Type | None], folder: Path) -> None:
    saved = list(save_all(results, folder, types))
    screen.heading("Saved", f"in {plain(folder)}")
    screen.table([(plain(name), file, form) for name, file, form in saved], "cyan", "", "dim")


def _pairs(option: str, given: Iterable[str] | None, names: Collection[str]) -> Iterable[tuple[str, str]]:
    """Yield the two sides of each `NAME=TEXT`; a name may have a `=` in it where it is one of `names`."""
    for pair in given or ():
        splits = [(pair[:at], pair[at + 1 :]) for at, c in enumerate(pair) if c == "="]
        if not splits or not splits[0][0]:
            raise FeedError(
                f"{option} {quote(pair)}: write it as NAME={'SIZE' if option == '--dim' else 'FILE'}"
            )
        # a dimension variable may have a `=` in its name too, and a size has none
        fallback = splits[-1] if option == "--dim" else splits[0]
        yield next((split for split in reversed(splits) if split[0] in names), fallback)


def _size(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise FeedError(f"--dim {quote(name)}: the size must be a number, 0 or more; got {quote(text)}")
    return int(text)


def _described(name: str, value: Any, *notes: str) -> tuple[str, ...]:
    return plain(name), plain(type_text(value)), *map(plain, notes), plain(summary(value))


def _timed(session: Session, feeds: dict[str, Any], repeat: int) -> tuple[dict[str, Any], list[float]]:
    results: dict[str, Any] = {}
    seconds: list[float] = []
    for _ in range(repeat):
        started = time.perf_counter()
        results = session.run(feeds)
        seconds.append(time.perf_counter() - started)
    return results, seconds


def _times(seconds: list[float]) -> str:
    if len(seconds) == 1:
        return seconds_text(seconds[0])
    middle = statistics.median(seconds)
    return f"min {seconds_text(min(seconds))}  median {seconds_text(middle)}  of {len(seconds)} runs"
