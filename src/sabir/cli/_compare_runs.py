"""`sabir compare`: what two models, or two engines, compute on the same inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import FeedError, counted, listed_names, quote, suggest
from sabir.cli._compare import listed
from sabir.cli._feed_options import (
    DimsOption,
    InputsOption,
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
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import Screen, plain
from sabir.cli._usage import FAULTY
from sabir.debugging import RunComparison, RunPair
from sabir.runtime import ENGINES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.cli._feeds import Feeds
    from sabir.debugging import Parting

EXAMPLES = (
    "sabir compare model.onnx converted.onnx",
    "sabir compare model.onnx converted.onnx --input x=x.npy --rtol 1e-4",
    "sabir compare model.onnx --engines compiled,reference",
    "sabir compare model.onnx optimized.onnx --bisect",
)
_NAMES = ("auto", *ENGINES)
_AGAINST_ITSELF = ("auto", "reference")
_PRECISIONS = ("exact", "fast")


def compare_runs(  # ruff: ignore[too-many-arguments]  each is an option
    model: ModelPath,
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="OTHER",
            help="Another model; without one two engines run the same model.",
            show_default=False,
        ),
    ] = None,
    *,
    engines: Annotated[
        str | None,
        typer.Option(
            "--engines",
            metavar="A,B",
            help=f"The engine of each run: {', '.join(_NAMES)}. For one model {','.join(_AGAINST_ITSELF)} by "
            "default, for two auto.",
            show_default=False,
        ),
    ] = None,
    inputs: InputsOption = None,
    dims: DimsOption = None,
    shapes: ShapesOption = None,
    rtol: Annotated[float, typer.Option(min=0, help="Relative tolerance.")] = 1e-3,
    atol: Annotated[float, typer.Option(min=0, help="Absolute tolerance.")] = 1e-5,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="Also find the first value at which the runs part.")
    ] = False,
    threads: ThreadsOption = None,
    precision: Annotated[
        str,
        typer.Option(
            "--precision",
            metavar="A[,B]",
            help="exact or fast, for both runs or for each. With fast, kernels may round a few times more.",
        ),
    ] = "exact",
    seed: SeedOption = 0,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Compare what two models, or two engines, compute.

    Both get the same inputs, from files or random as for `sabir run`, by the names of the inputs. Outputs are
    compared by their names, or one by one where each model has one. The exit code is 1 if a result
    differs by more than the tolerances, or an output is missing. `sabir diff` compares the models themselves.

    --bisect runs both models once more for the values of their main graphs that correspond, by name or by
    structure, and names the first that differs, with its node and operands.
    """
    registry = registry_of(operators, documents)
    pair = RunPair(
        load_any(model),
        None if other is None else load_any(other),
        engines=_pair("--engines", engines, _NAMES, _AGAINST_ITSELF if other is None else ("auto", "auto")),
        precisions=_pair(
            "--precision", precision if "," in precision else f"{precision},{precision}", _PRECISIONS
        ),
        threads=threads,
        registry=registry,
    )
    feeds = gather(pair.inputs, feed_options({p.name for p in pair.inputs}, inputs, dims, shapes, seed))
    values = {name: feed.value for name, feed in feeds.values.items()}
    found = pair.compare(values, rtol=rtol, atol=atol)
    if bisect:
        parting, compared = pair.part(values, rtol=rtol, atol=atol)
        found = RunComparison(found.engines, found.outputs, parting, compared)
    if as_json:
        write_json(_as_json(found, feeds, bisect=bisect))
    else:
        names = [shown(Path(path.name)) for path in (model, other or model)]
        _show([f"{n} on {engine}" for n, engine in zip(names, found.engines, strict=True)], feeds, found)
        if bisect:
            _show_parting(found)
    if not found.equal or found.parting is not None:
        raise typer.Exit(FAULTY)


def _pair(
    option: str, text: str | None, known: Sequence[str], default: tuple[str, str] = ("", "")
) -> tuple[Any, Any]:
    """Return the two words of an option; raises FeedError for an unknown one, or another number."""
    names = default if text is None else tuple(part.strip() for part in text.split(","))
    unknown = next((name for name in names if name not in known), None)
    noun = option.strip("-").removesuffix("s")
    if unknown is not None:
        near = suggest(unknown, known) or f"; the {noun}s are {listed_names(known)}"
        raise FeedError(f"{option}: there is no {noun} {quote(unknown)}{near}")
    if len(names) != 2:  # ruff: ignore[magic-value-comparison]  the two runs
        raise FeedError(f"{option} {quote(text or '')}: name two {noun}s, as in {','.join(default)}")
    return names[0], names[1]


def _show(names: Sequence[str], feeds: Feeds, found: RunComparison) -> None:
    screen = Screen()
    screen.line(screen.paint(" and ".join(names), bold=True))
    screen.lines(screen.paint(f"   note: {plain(note)}", dim=True) for note in feeds.assumed)
    screen.table(listed(found.outputs), "cyan", "right", "right")


def _show_parting(found: RunComparison) -> None:
    screen, parting = Screen(), found.parting
    if parting is None:
        screen.heading("No value parts", f"{counted(found.compared, 'value')} compared")
        return
    screen.heading("The first value that differs", f"of {counted(found.compared, 'value')} compared")
    rows = [("first run", *_side(parting, 0)), ("second run", *_side(parting, 1))]
    screen.table(rows, "cyan")
    screen.table(listed([parting.difference]), "cyan", "right", "right")
    if parting.alone:
        screen.line("   note: it differs where it is computed without the other values, in fused kernels")
    if parting.operands:
        screen.heading("Its operands")
        screen.table(listed(parting.operands), "cyan", "right", "right")


def _side(parting: Parting, run: int) -> tuple[str, str]:
    """Return the name and the node of the value in one of the runs."""
    return plain(parting.names[run]), plain(parting.nodes[run])


def _as_json(found: RunComparison, feeds: Feeds, *, bisect: bool) -> dict[str, Any]:
    report: dict[str, Any] = {
        "engines": list(found.engines),
        "assumed": list(feeds.assumed),
        "outputs": [d._asdict() for d in found.outputs],
    }
    if not bisect:
        return report
    parting = found.parting
    return report | {
        "compared": found.compared,
        "parting": parting
        and {
            "names": list(parting.names),
            "nodes": list(parting.nodes),
            "difference": parting.difference._asdict(),
            "operands": [d._asdict() for d in parting.operands],
            "alone": parting.alone,
        },
    }
