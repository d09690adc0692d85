"""`sabir compare`: what two models, or two engines, compute on the same inputs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import FeedError, listed_names, quote, suggest
from sabir.cli._compare import Comparison, compare, listed
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
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import Screen, plain
from sabir.cli._usage import FAULTY
from sabir.runtime import ENGINES, Session

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.cli._feeds import Feeds

EXAMPLES = (
    "sabir compare model.onnx converted.onnx",
    "sabir compare model.onnx converted.onnx --input x=x.npy --rtol 1e-4",
    "sabir compare model.onnx --engines compiled,reference",
)
_NAMES = ("auto", *ENGINES)
_AGAINST_ITSELF = ("auto", "reference")


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
    threads: ThreadsOption = None,
    precision: PrecisionOption = "exact",
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
    """
    first, second = _engines(engines, _AGAINST_ITSELF if other is None else ("auto", "auto"))
    registry = registry_of(operators, documents)
    loaded = load_any(model)
    options: dict[str, Any] = {"threads": threads, "precision": precision, "registry": registry}
    sessions = (
        Session(loaded, engine=first, **options),
        Session(loaded if other is None else load_any(other), engine=second, **options),
    )
    _require_inputs(*sessions)
    ports = sessions[0].inputs
    feeds = gather(ports, feed_options({p.name for p in ports}, inputs, dims, shapes, seed))
    taken = {p.name for p in sessions[1].inputs}
    values = {name: feed.value for name, feed in feeds.values.items()}
    results = sessions[0].run(values), sessions[1].run({n: v for n, v in values.items() if n in taken})
    compared = _compared(*results, rtol, atol)
    if as_json:
        write_json(_as_json(sessions, feeds, compared))
    else:
        names = [shown(Path(path.name)) for path in (model, other or model)]
        _show([f"{n} on {s.engine}" for n, s in zip(names, sessions, strict=True)], feeds, compared)
    if any(c.problem for c in compared):
        raise typer.Exit(FAULTY)


def _engines(text: str | None, default: tuple[str, str]) -> tuple[Any, Any]:
    names = default if text is None else tuple(part.strip() for part in text.split(","))
    unknown = next((name for name in names if name not in _NAMES), None)
    if unknown is not None:
        near = suggest(unknown, _NAMES) or f"; the engines are {listed_names(_NAMES)}"
        raise FeedError(f"--engines: there is no engine {quote(unknown)}{near}")
    if len(names) != len(default):
        raise FeedError(f"--engines {quote(text)}: name two engines, as in {','.join(_AGAINST_ITSELF)}")
    return names[0], names[1]


def _require_inputs(first: Session, second: Session) -> None:
    """Raise FeedError for an input that only the second model has, and that has no default."""
    known = [port.name for port in first.inputs]
    for port in second.inputs:
        if port.name not in known and not port.optional:
            raise FeedError(
                f"the second model has the input {quote(port.name)}, and the first has none of this name; "
                f"its inputs are {listed_names(known)}"
            )


def _compared(
    first: Mapping[str, Any], second: Mapping[str, Any], rtol: float, atol: float
) -> list[Comparison]:
    if len(first) == len(second) == 1:
        (name, value), (other,) = next(iter(first.items())), second.values()
        return [compare(name, other, value, rtol, atol)]
    found = [compare(n, second[n], value, rtol, atol) for n, value in first.items() if n in second]
    missing = [(n, "second") for n in first if n not in second]
    missing += [(n, "first") for n in second if n not in first]
    nan = float("nan")
    found += [Comparison(n, nan, nan, f"the {which} model has no such output") for n, which in missing]
    return found


def _show(names: Sequence[str], feeds: Feeds, compared: Sequence[Comparison]) -> None:
    screen = Screen()
    screen.line(screen.paint(" and ".join(names), bold=True))
    screen.lines(screen.paint(f"   note: {plain(note)}", dim=True) for note in feeds.assumed)
    screen.table(listed(compared), "cyan", "right", "right")


def _as_json(sessions: Sequence[Session], feeds: Feeds, compared: Sequence[Comparison]) -> dict[str, Any]:
    return {
        "engines": [session.engine for session in sessions],
        "assumed": list(feeds.assumed),
        "outputs": [c._asdict() for c in compared],
    }
