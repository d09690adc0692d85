"""Checking a model: names, calls, then types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import CheckError, Finding, Location
from sabir.check._calls import call_findings
from sabir.check._names import name_findings
from sabir.infer import Inference
from sabir.ir import Graph, Model
from sabir.opsets import STANDARD
from sabir.schema import Registry, Scope
from sabir.serial import load

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator


def check(model: Model | str | os.PathLike[str] | bytes) -> None:
    """Return when a model breaks no rule; else raise CheckError with every finding.

    Takes a model, a path or the bytes of a file; raises FileError or WireError where there is no model.
    """
    found = [f for f in findings(model) if f.severity == "error"]
    if found:
        raise CheckError(found)


def findings(
    model: Model | str | os.PathLike[str] | bytes, *, registry: Registry = STANDARD
) -> Iterator[Finding]:
    """Yield what is wrong with a model, in reading order within each subject."""
    if not isinstance(model, Model):
        model = load(model)
    yield from _header(model)
    scope = Scope.of(model, registry)
    for graph, where in _graphs(model):
        yield from name_findings(graph, where)
        yield from call_findings(graph, scope, where)
    for function in model.functions:
        where = Location().at("function", name=function.name)
        yield from name_findings(function.graph, where)
        yield from call_findings(function.graph, scope.within(function), where, function)
    inference = Inference(model, registry=registry)
    inference.run()
    # what nodes call is told above, for every graph; of inference the types matter
    yield from (f for f in inference.findings if f.rule == "TYPE001")


def _header(model: Model) -> Iterator[Finding]:
    where = Location()
    if not model.ir_version:
        yield Finding("MODEL001", "the model states no ir_version", where, "set it; the newest is 14")
    if not model.opsets:
        yield Finding(
            "MODEL002", "the model imports no operator set", where, 'add an opset_import such as "" : 21'
        )
    if not model.graph.outputs and not model.functions:
        yield Finding(
            "MODEL003", "the graph has no outputs", where.at("graph"), "a model must compute something"
        )
    for name in model.residue.repeated if model.residue else ():
        yield Finding("MODEL004", f"{name or 'ai.onnx'!r} is given twice", where, "keep one of them")


def _graphs(model: Model) -> Iterator[tuple[Graph, Location]]:
    yield model.graph, Location(("graph",))
    for place, training in enumerate(model.training):
        where = Location().at("training_info", index=place)
        if training.initialization is not None:
            yield training.initialization, where.at("initialization")
        if training.algorithm is not None:
            yield training.algorithm, where.at("algorithm")
