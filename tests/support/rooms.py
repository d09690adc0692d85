"""Examples of rooms as models, and rooms as pytest parameters."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from sabir.inference import Inference
from sabir.ir import Builder, Model, TensorType, tensor_type
from sabir.opsets import STANDARD
from sabir.reference import example_attributes as attributes_of
from sabir.reference import example_inputs as typed_inputs
from sabir.reference import example_model as model_of
from sabir.reference import type_of_value as type_of
from sabir.runtime import Session
from sabir.schema import Binding, Call, Example, Operator, Version, as_results
from support.engines import DEFAULT

OPERATORS = sorted(STANDARD, key=lambda o: (o.domain, o.name))


@functools.cache
def examples_of(operator: Operator) -> list[Example]:
    """Every example of an operator, made once."""
    return operator.all_examples()


VERSIONS = [pytest.param(v, id=str(v)) for o in OPERATORS for v in o.versions]
EXAMPLES = [
    pytest.param(o, e, id=f"{o.domain}.{o.name}-{e.opset}-{i}".removeprefix("."))
    for o in OPERATORS
    for i, e in enumerate(examples_of(o))
    if not o.at(e.opset).removed  # no run takes those, and NODE005 reports them
]


def by_operator(operator: Operator, *_: object) -> str:
    """The group of an example: all of an operator's run in one test."""
    return f"{operator.domain}.{operator.name}".removeprefix(".")


BODIES = [p for p in EXAMPLES if not p.values[0].random and p.values[0].at(p.values[1].opset).find("body")]


@functools.cache
def shared_model_of(operator: Operator, example: Example) -> tuple[Model, dict]:
    """`model_of`, made once for all tests, which must leave it as it is."""
    return model_of(operator, example)


@functools.cache
def answers_of(operator: Operator, example: Example, engine: str = DEFAULT) -> list:
    """What an engine computes of an example, computed once."""
    return run(*shared_model_of(operator, example), engine)


def run(model: Model, feeds: dict, engine: str = DEFAULT) -> list:
    """The outputs of a model, by the engine of that name."""
    return list(Session(model, engine=engine).run(feeds).values())


def inferred(
    model: Model, feeds: dict, *, known: bool, drop_shapes: bool = False, symbolic: bool = False
) -> list:
    """The output types that follow from the feeds' types: with contents, without shapes, or with symbols."""
    declared = [value.type for value in model.graph.inputs]
    for value in model.graph.inputs:
        if isinstance(value.type, TensorType):
            value.type = _told(
                value.name, feeds[value.name], known=known, drop=drop_shapes, symbolic=symbolic
            )
    try:
        engine = Inference(model, strict=True)
        engine.run()
        return [engine.types.get(v) for v in model.graph.outputs]
    finally:  # the model may be shared
        for value, kind in zip(model.graph.inputs, declared, strict=True):
            value.type = kind


def _told(name, x, *, known, drop, symbolic):
    array = np.asarray(x)
    if drop:
        return TensorType(tensor_type(array.dtype).element)
    if symbolic:
        small = array.dtype.kind in "iub" and array.ndim <= 1
        if not small:
            return tensor_type(array.dtype, [f"{name}_{axis}" for axis in range(array.ndim)])
    return type_of(array, known=known)


def bindings(feeds: dict) -> dict[str, int]:
    """What the symbols of `inferred(symbolic=True)` stand for."""
    arrays = {n: np.asarray(x) for n, x in feeds.items() if x is not None and not isinstance(x, (list, dict))}
    return {f"{n}_{a}": size for n, x in arrays.items() for a, size in enumerate(x.shape)}


def written(function, example: Example, here: Version, opset: int) -> tuple[Model, dict]:
    """The model that a graph-building behaviour (an adapter, a body) makes of an example at `opset`."""

    domain = here.operator.domain
    b = Builder(21 if domain else opset, opsets={domain: opset}, after=lambda node: engine.visit(node))  # ruff: ignore[unnecessary-lambda]  made below
    engine = Inference(b.model())  # a behaviour may ask for types and contents as it goes
    inputs, feeds = typed_inputs(b, example, known=True)
    bound = Binding(here.formal, function)
    arguments = bound.arguments(attributes_of(here, example))
    made = bound((b, *inputs), arguments, Call((True,) * example.outputs, here.since))
    for value in as_results(made):
        b.output(value)
    return b.model(), feeds
