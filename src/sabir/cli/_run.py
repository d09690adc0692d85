"""`sabir run`: run a model on specified or random inputs, and compare the results."""

from __future__ import annotations

import statistics
import time
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import FeedError
from sabir.checking import check
from sabir.cli._compare import data_sets, listed
from sabir.cli._feed_options import (
    DimsOption,
    EngineOption,
    InputsOption,
    PrecisionOption,
    SeedOption,
    ShapesOption,
    ThreadsOption,
    feed_options,
    numbers_of,
)
from sabir.cli._feeds import gather
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import ModelPath, load_any, shown
from sabir.cli._operators import NewerOpsetsOption, OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._progress import counting_bar
from sabir.cli._results import (
    ARCHIVE,
    is_file_of_one,
    require_place,
    save_archive,
    save_each,
    save_one,
    summary,
)
from sabir.cli._results import as_json as value_as_json
from sabir.cli._screen import Screen, plain
from sabir.cli._traced import run_traced
from sabir.cli._usage import FAULTY, refuse
from sabir.debugging import difference, type_text
from sabir.drawing import seconds_text
from sabir.runtime import Session
from sabir.serial import Normalization

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.cli._feeds import Feeds
    from sabir.cli._results import Saved
    from sabir.debugging import Difference

EXAMPLES = (
    "sabir run model.onnx",
    "sabir run model.onnx --dim batch=8 --shape mask=8,128 --repeat 20",
    "sabir run model.onnx --input image=cat.png --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225",
    "sabir run model.onnx --input feeds.npz --output results.npz",
    "sabir run model.onnx --engine reference -o y.npy",
    "sabir run model.onnx --compare test_data_set_0 --rtol 1e-4",
    "sabir run model.onnx --stop-at-nan",
)


def run(  # ruff: ignore[too-many-arguments]  each is an option
    model: ModelPath,
    *,
    inputs: InputsOption = None,
    dims: DimsOption = None,
    shapes: ShapesOption = None,
    mean: Annotated[
        str,
        typer.Option(
            "--mean", metavar="R,G,B", help="Subtract this from the channels of pictures, scaled to 0 to 1."
        ),
    ] = "",
    std: Annotated[
        str, typer.Option("--std", metavar="R,G,B", help="Then divide the channels by this.")
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="Save each output in this folder, as NAME.npy or NAME.pb; all of them in a file that ends "
            "in .npz; the only one in a file that ends in .npy or .pb.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="DIR",
            help="Feed the input_N.pb files of this folder, or of each test_data_set_N in it, and compare "
            "the results with its output_N.pb files.",
        ),
    ] = None,
    rtol: Annotated[float, typer.Option(min=0, help="Relative tolerance of --compare.")] = 1e-3,
    atol: Annotated[float, typer.Option(min=0, help="Absolute tolerance of --compare.")] = 1e-7,
    repeat: Annotated[int, typer.Option(min=1, metavar="K", help="Run K times, and report the times.")] = 1,
    engine: EngineOption = "auto",
    threads: ThreadsOption = None,
    precision: PrecisionOption = "exact",
    seed: SeedOption = 0,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Check the model first, and stop at a value that contradicts its declared type."
        ),
    ] = False,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help="Run the interpreter once, and list every value: type, range, mean, NaNs, infinities.",
        ),
    ] = False,
    stop_at_nan: Annotated[
        bool,
        typer.Option(
            "--stop-at-nan", help="Trace to the first NaN; name the node that computed it, and its operands."
        ),
    ] = False,
    dump: Annotated[
        Path | None,
        typer.Option(
            "--dump",
            metavar="DIR",
            help="Trace, and save every value in this folder, as NAME.npy or NAME.pb.",
        ),
    ] = None,
    newer_opsets: NewerOpsetsOption = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Run a model, and show its outputs and the time it takes.

    Inputs without a file are random values of the declared types: floats from the standard normal
    distribution, integers from 0 to 9, booleans, one-letter strings.

    A .npy file contains a tensor, a .npz file several; a .pb file contains a TensorProto, SequenceProto,
    MapProto or OptionalProto, as the type of the input or output requires. A picture is resized to the height
    and width that the input declares; a float input gets its colours from 0 to 1. --output writes .pb files
    for sequences, maps and optionals, and for tensors whose element type the .npy format lacks, such as
    bfloat16. Each saved file can be an input again.

    The exit code is 1 if the run fails, --compare finds a difference or --stop-at-nan a NaN.
    """
    traced = trace or stop_at_nan or dump is not None
    if traced and (engine == "compiled" or output is not None or data is not None or repeat > 1):
        refuse(
            "a trace is one run of the interpreter: omit --engine compiled, --output, --compare and --repeat"
        )
    loaded, registry = load_any(model), registry_of(operators, documents)
    if strict:
        check(loaded, registry=registry)
    if output is not None:
        require_place(output, len(loaded.graph.outputs))
    session = Session(
        loaded, engine="reference" if traced else engine, threads=threads, strict=strict,
        newer_opsets=newer_opsets, registry=registry, precision=precision,
    )  # fmt: skip
    if data is not None:
        _refuse_with_compare(inputs, dims, shapes, output)
        _compare(session, data, rtol, atol, as_json=as_json)
        return
    normalization = Normalization(numbers_of("--mean", mean), numbers_of("--std", std))
    options = feed_options({p.name for p in session.inputs}, inputs, dims, shapes, seed, normalization)
    feeds = gather(session.inputs, options)
    if traced:
        tracing = {"stop_at_nan": stop_at_nan, "newer_opsets": newer_opsets, "registry": registry}
        run_traced(loaded, feeds, dump=dump, as_json=as_json, options=tracing)
        return
    values = {name: feed.value for name, feed in feeds.values.items()}
    with counting_bar("compiling") as progress:
        session.compile(values, progress)
    results, seconds = _timed(session, values, repeat)
    saved = [] if output is None else list(_saved(session, results, output))
    if as_json:
        write_json(_as_json(session, feeds, results, seconds, saved))
    else:
        _show(shown(Path(model.name)), session, feeds, results, seconds)
        _show_saved(saved, output)


def _show(name: str, session: Session, feeds: Feeds, results: dict[str, Any], seconds: list[float]) -> None:
    screen = Screen()
    screen.line(f"{screen.paint(name, bold=True)} on the engine {session.engine!r}")
    screen.heading("Inputs")
    screen.table([_described(name, *feed) for name, feed in feeds.values.items()], "cyan", "", "dim")
    screen.lines(screen.paint(f"   note: {plain(note)}", dim=True) for note in feeds.assumed)
    screen.heading("Outputs")
    screen.table(list(starmap(_described, results.items())), "cyan")
    screen.heading("Time", _times(seconds))


def _show_saved(saved: list[Saved], output: Path | None) -> None:
    if output is None:
        return
    screen = Screen()
    place = output.parent if is_file_of_one(output) else output
    screen.heading("Saved", f"in {plain(place)}")
    screen.table([(plain(s.name), s.file, s.form) for s in saved], "cyan", "", "dim")


def _as_json(
    session: Session, feeds: Feeds, results: dict[str, Any], seconds: list[float], saved: list[Saved]
) -> dict[str, Any]:
    inputs = [
        {"name": name, "origin": feed.origin, **value_as_json(feed.value)}
        for name, feed in feeds.values.items()
    ]
    return {
        "engine": session.engine,
        "inputs": inputs,
        "assumed": list(feeds.assumed),
        "outputs": [{"name": name, **value_as_json(value)} for name, value in results.items()],
        "seconds": seconds,
        "saved": [s._asdict() for s in saved],
    }


def _saved(session: Session, results: dict[str, Any], output: Path) -> Iterator[Saved]:
    if output.suffix.lower() == ARCHIVE:
        return save_archive(results, output)
    if is_file_of_one(output):
        ((name, value),) = results.items()
        return iter([save_one(name, value, output, session.outputs[0].type)])
    return save_each(results, output, {p.name: p.type for p in session.outputs})


# comparing


def _refuse_with_compare(*options: object) -> None:
    if any(options):
        raise FeedError("--compare takes its inputs from the folder; omit --input, --dim, --shape and -o")


def _compare(session: Session, folder: Path, rtol: float, atol: float, *, as_json: bool) -> None:
    """Run every data set of a folder; leaves the program with exit code 1 if a result differs."""
    report: list[tuple[str, list[Difference]]] = []
    for data in data_sets(folder, session.inputs, session.outputs):
        results = session.run(data.feeds)
        compared = [difference(n, results[n], expected, rtol, atol) for n, expected in data.expected.items()]
        report.append((str(data.path), compared))
    if as_json:
        write_json([{"path": path, "outputs": [c._asdict() for c in cs]} for path, cs in report])
    else:
        screen = Screen()
        for path, comparisons in report:
            screen.heading(plain(path))
            screen.table(listed(comparisons), "cyan", "right", "right")
    if any(c.problem for _, cs in report for c in cs):
        raise typer.Exit(FAULTY)


# options


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
