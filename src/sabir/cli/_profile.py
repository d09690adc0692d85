"""`sabir profile`: where the time of a run goes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.cli._compile import decision_as_json, values_of
from sabir.cli._feed_options import (
    DimsOption,
    InputsOption,
    PrecisionOption,
    SeedOption,
    ShapesOption,
    ThreadsOption,
    feed_options,
)
from sabir.cli._feeds import gather
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import ModelPath, load_any, shown
from sabir.cli._operators import NewerOpsetsOption, OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._progress import counting_bar
from sabir.cli._screen import Screen, cut, plain
from sabir.compilation import Compiled, Settings
from sabir.drawing import seconds_text
from sabir.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.cli._feeds import Feeds
    from sabir.compilation import Profile, Roofline, Timing

EXAMPLES = (
    "sabir profile model.onnx",
    "sabir profile model.onnx --dim batch=8 --runs 50 --top 10",
    "sabir profile model.onnx -i feeds.npz --json > profile.json",
    "sabir profile model.onnx --trace trace.json",
)
_GIGA = 1e9


def profile(  # ruff: ignore[too-many-arguments]  each is an option
    model: ModelPath,
    *,
    inputs: InputsOption = None,
    dims: DimsOption = None,
    shapes: ShapesOption = None,
    seed: SeedOption = 0,
    runs: Annotated[int, typer.Option(min=1, metavar="N", help="Run N times; times are medians.")] = 10,
    top: Annotated[int, typer.Option(min=1, metavar="K", help="List the K slowest.")] = 20,
    threads: ThreadsOption = None,
    precision: PrecisionOption = "exact",
    newer_opsets: NewerOpsetsOption = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help="Also write one run, kernel after kernel, as a trace for ui.perfetto.dev and chrome://tracing.",
        ),
    ] = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Show where the time of a run goes, by kernel and node.

    Each kernel and each evaluated node runs alone, in the order of the model, and returns to Python before
    the next: this adds some microseconds to each. Inputs are those of `sabir run`.

    The limits of the machine, in operations and in bytes a second, are measured once and kept in the cache.
    "of limit" is the least time that a kernel needs at these limits, as a part of the measured time; it is
    above 100% where operands come from caches and not from memory.
    """
    registry = registry_of(operators, documents)
    compiled = Compiled(
        load_any(model), registry, threads=threads, settings=Settings(precision, newer_opsets=newer_opsets)
    )
    ports = compiled.inputs
    feeds = gather(ports, feed_options({p.name for p in ports}, inputs, dims, shapes, seed))
    values = values_of(feeds.values)
    with counting_bar("compiling") as progress:
        compiled.compile(values, progress)
    found = compiled.profile(values, runs)
    limits = compiled.roofline()
    if trace is not None:
        replace_file(trace, [json.dumps({"traceEvents": found.trace()}).encode()])
    if as_json:
        write_json(_as_json(found, limits, feeds))
    else:
        _report(shown(Path(model.name)), found, limits, feeds, top)


def _report(name: str, found: Profile, limits: Roofline, feeds: Feeds, top: int) -> None:
    screen = Screen()
    screen.line(f"{screen.paint(name, bold=True)}: {seconds_text(found.whole)} a run, median of {found.runs}")
    screen.table(
        [
            ("one by one", seconds_text(found.seconds)),
            ("machine", f"{limits.flops / _GIGA:.3g} GFLOP/s, {limits.bandwidth / _GIGA:.3g} GB/s"),
        ],
        "",
    )
    screen.lines(screen.paint(f"   note: {plain(note)}", dim=True) for note in feeds.assumed)
    timings = sorted(enumerate(found.timings, 1), key=lambda pair: -pair[1].seconds)
    screen.heading("Kernels and evaluated nodes", _of(top, len(timings)))
    columns = ("place", "time", "share", "GFLOP/s", "GB/s", "of limit", "kind", "nodes")
    rows = [_row(place, timing, found.seconds, limits) for place, timing in timings[:top]]
    screen.table([columns, *rows], *["right"] * 5, "", "cyan")
    decided = [
        (str(place), plain(str(decision)))
        for place, timing in timings[:top]
        for decision in timing.decisions
        if decision.rejected
    ]
    if decided:
        screen.heading("Decisions", "what was rejected for these kernels, and why")
        screen.table(decided, "right", "")
    screen.heading("Nodes", _of(top, len(found.nodes)))
    nodes = [
        (seconds_text(n.seconds), f"shared with {n.others} more" if n.others else "", plain(n.node))
        for n in found.nodes[:top]
    ]
    screen.table([("time", "", "node"), *nodes], "right", "", "cyan")


def _of(top: int, count: int) -> str:
    return f"the slowest {top} of {count:,}" if top < count else "the slowest first"


def _row(place: int, timing: Timing, total: float, limits: Roofline) -> tuple[str, ...]:
    fraction = timing.fraction(limits)
    return (
        str(place),
        seconds_text(timing.seconds),
        f"{timing.seconds / total:.1%}",
        *timing.rates,
        "" if fraction is None else f"{fraction:.0%}",
        timing.kind,
        cut(", ".join(timing.nodes), 120),
    )


def _as_json(found: Profile, limits: Roofline, feeds: Feeds) -> dict[str, Any]:
    return {
        "seconds": found.whole,
        "one_by_one": found.seconds,
        "runs": found.runs,
        "limits": limits._asdict(),
        "assumed": list(feeds.assumed),
        "entries": list(_entries(found, limits)),
        "nodes": [{"node": n.node, "seconds": n.seconds, "others": n.others} for n in found.nodes],
    }


def _entries(found: Profile, limits: Roofline) -> Iterator[dict[str, Any]]:
    for timing in found.timings:
        yield {
            "kind": timing.kind,
            "nodes": list(timing.nodes),
            "seconds": timing.seconds,
            "flops": timing.flops,
            "bytes": timing.bytes,
            "of_limit": timing.fraction(limits),
            "decisions": list(map(decision_as_json, timing.decisions)),
        }
