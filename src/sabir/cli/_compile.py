"""`sabir compile`: compile a model into the cache, and show what became of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import counted
from sabir.cli._feed_options import (
    DimsOption,
    InputsOption,
    PrecisionOption,
    ShapesOption,
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
from sabir.compilation import LISTINGS, PASSES, TARGETS, Compiled, Settings
from sabir.drawing import seconds_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.cli._feeds import Feed, Feeds
    from sabir.compilation import CompiledPlan, Decision, Explanation

EXAMPLES = (
    "sabir compile model.onnx",
    "sabir compile model.onnx --dim batch=8 --shape mask=8,128",
    "sabir compile model.onnx --show nodes",
    "sabir compile model.onnx --show decisions",
    "sabir compile model.onnx --show schedule > schedule.txt",
    "sabir compile model.onnx --show asm --target aarch64",
    "sabir compile model.onnx --show channels-last --without shared-heads",
)
_NODES, _DECISIONS = "nodes", "decisions"
_FORMS = (_NODES, _DECISIONS, *LISTINGS, *PASSES)


def _form(text: str | None) -> str | None:
    if text is not None and text not in _FORMS:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(_FORMS)}")
    return text


def _passes(names: list[str] | None) -> list[str] | None:
    for name in names or ():
        if name not in PASSES:
            raise typer.BadParameter(f"{name!r} is none of {', '.join(PASSES)}")
    return names


def _target(text: str | None) -> str | None:
    if text is not None and text not in TARGETS:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(TARGETS)}")
    return text


def compile(  # ruff: ignore[builtin-variable-shadowing, too-many-arguments]  the command, and its options
    model: ModelPath,
    *,
    show: Annotated[
        str | None,
        typer.Option(
            metavar="FORM",
            callback=_form,
            help="Write this instead of the report: nodes (which kernel computes them), decisions (what was "
            "chosen at each node, what was rejected, and why), loops (the tensor "
            "expressions of each node), schedule (the kernels with their loops), plan (the kernels with "
            "their memory), llvm or asm (the code of each kernel), or a pass of the compiler (the tensor "
            f"expressions after it: {', '.join(PASSES)}).",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PASS", callback=_passes, help="Leave out a pass of the compiler; may be repeated."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="PROCESSOR",
            callback=_target,
            help=f"With --show: for another processor than this one ({', '.join(TARGETS)}).",
        ),
    ] = None,
    inputs: InputsOption = None,
    dims: DimsOption = None,
    shapes: ShapesOption = None,
    precision: PrecisionOption = "exact",
    newer_opsets: NewerOpsetsOption = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Compile a model into the cache, and say what was done.

    A plan depends on which sizes are 0, 1 or larger, and not on the numbers: runs with other sizes use the
    same kernels. Sizes are chosen as for `sabir run`. Nodes without a kernel are evaluated in each run, and
    the report says why. What --show writes is the same in every run on one kind of processor.
    """
    if target is not None and show is None:
        raise typer.BadParameter(
            "nothing is compiled for another processor; add --show", param_hint="--target"
        )
    registry = registry_of(operators, documents)
    compiled = Compiled(
        load_any(model), registry, settings=Settings(precision, frozenset(without or ()), newer_opsets)
    )
    ports = compiled.inputs
    feeds = gather(ports, feed_options({p.name for p in ports}, inputs, dims, shapes))
    started = time.perf_counter()
    with counting_bar("compiling") as progress:
        plan = compiled.compile(values_of(feeds.values), progress, target=target)
    seconds = time.perf_counter() - started
    if show is not None:
        Screen().lines(map(plain, _shown(plan, show)))
    elif as_json:
        write_json(_as_json(plan, feeds, seconds))
    else:
        _report(shown(Path(model.name)), plan, feeds, seconds)


def _shown(plan: CompiledPlan, form: str) -> Iterable[str]:
    """Return the lines of a form of a plan."""
    if form == _NODES:
        return str(plan.explain()).split("\n")
    return map(str, plan.explain().decisions) if form == _DECISIONS else plan.listing(form)


def values_of(feeds: Mapping[str, Feed]) -> dict[str, Any]:
    """Return the values of feeds by input name."""
    return {name: feed.value for name, feed in feeds.items()}


def _report(name: str, plan: CompiledPlan, feeds: Feeds, seconds: float) -> None:
    screen, found = Screen(), plan.explain()
    new = f"{plan.compiled} compiled now, {plan.kernels - plan.compiled} from the cache"
    screen.line(
        f"{screen.paint(name, bold=True)}: {counted(plan.kernels, 'kernel')} in {seconds_text(seconds)}"
    )
    screen.table(
        [
            ("machine code", new),
            ("nodes", f"{found.nodes:,}"),
            (
                "computed by kernels",
                f"{_computed(found):,} in {counted(len(found.kernels), 'call')} of kernels",
            ),
            ("without work in a run", f"{len(found.without_work):,}"),
            ("evaluated", f"{len(found.evaluated):,}"),
            *([("compiled in a run", f"{len(found.later):,}")] if found.later else []),
        ],
        "",
    )
    screen.lines(screen.paint(f"   note: {plain(note)}", dim=True) for note in feeds.assumed)
    if found.evaluated:
        screen.heading("Evaluated", "nodes without a kernel")
        screen.table(_reasons(found), "right", "", "cyan")


def _reasons(found: Explanation) -> list[tuple[str, ...]]:
    """Return for each reason how many nodes have it, and which."""
    nodes: dict[str, list[str]] = {}
    for call in found.evaluated:
        nodes.setdefault(call.reason, []).append(call.node)
    ordered = sorted(nodes.items(), key=lambda pair: -len(pair[1]))
    return [(f"{len(labels):,}", plain(reason), cut(", ".join(labels))) for reason, labels in ordered]


def _computed(found: Explanation) -> int:
    return found.nodes - len(found.without_work) - len(found.evaluated) - len(found.later)


def _as_json(plan: CompiledPlan, feeds: Feeds, seconds: float) -> dict[str, Any]:
    found = plan.explain()
    return {
        "seconds": seconds,
        "kernels": plan.kernels,
        "compiled": plan.compiled,
        "sizes": plan.sizes,
        "assumed": list(feeds.assumed),
        "nodes": found.nodes,
        "calls": [{"kind": k.kind, "nodes": list(k.nodes)} for k in found.kernels],
        "once": [{"kind": k.kind, "nodes": list(k.nodes)} for k in found.prepared],
        "evaluated": [{"node": call.node, "reason": call.reason} for call in found.evaluated],
        "later": list(found.later),
        "without_work": list(found.without_work),
        "decisions": list(map(decision_as_json, found.decisions)),
    }


def decision_as_json(decision: Decision) -> dict[str, Any]:
    """Return a decision as an object of JSON."""
    return decision._asdict() | {"nodes": list(decision.nodes)}
