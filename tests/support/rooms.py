"""Examples of rooms as models, and rooms as pytest parameters."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from sabir.elements import element
from sabir.inference import Inference
from sabir.ir import Attribute, Builder, MapType, Model, SequenceType, TensorType, minimum_ir, tensor_type
from sabir.opsets import STANDARD
from sabir.opsets.families.shapes import contents
from sabir.runtime import Session
from sabir.schema import Binding, Call, Example, Operator, Version, as_results
from sabir.syntax import parse_graph
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


def attributes_of(version: Version, example: Example) -> dict[str, Any]:
    """The attributes of an example as the version types them."""
    kinds = {a.name: a.type for a in version.attributes}
    found = {}
    for name, value in example.attributes.items():
        if value is None:
            continue
        kind = kinds.get(name)
        if kind == "graph":
            found[name] = Attribute(name, "graph", parse_graph(value))
        elif kind == "float":
            found[name] = Attribute(name, "float", float(np.float32(value)))
        elif kind == "floats":
            found[name] = Attribute(name, "floats", tuple(float(np.float32(v)) for v in value))
        elif kind in {"ints", "strings"}:
            found[name] = Attribute(name, kind, tuple(value))
        else:
            found[name] = Attribute.of(name, value)
    return found


def type_of(x, *, known=False):
    if isinstance(x, list):
        return SequenceType(_joined([type_of(i) for i in x]))
    if isinstance(x, dict):
        key, value = next(iter(x.items()))
        return MapType(element(np.asarray(key).dtype), type_of(value))
    array = np.asarray(x)
    kind = tensor_type(array.dtype, array.shape)
    return kind.with_known(contents.of_array(array)) if known else kind


def called(operator: Operator, example: Example) -> tuple[Builder, tuple, dict]:
    """A builder of a graph with one node that makes the example's call, what it returns, and its feeds."""
    version = operator.at(example.opset)
    check = not version.removed  # a builder refuses operators that were removed
    opset = 21 if operator.domain else example.opset
    b = Builder(opset, opsets={operator.domain: example.opset}, check=check)
    inputs, feeds = typed_inputs(b, example, known=False)
    made = b.op(
        operator.name,
        *inputs,
        outputs=example.outputs,
        domain=operator.domain,
        **attributes_of(version, example),
    )
    return b, made if isinstance(made, tuple) else (made,), feeds


def model_of(operator: Operator, example: Example) -> tuple[Model, dict]:
    """A model of one node that makes the example's call, and its feeds."""
    b, made, feeds = called(operator, example)
    for i, value in enumerate(made):
        b.output(value, f"o{i}")
    return finished(b, example), feeds


def finished(b: Builder, example: Example) -> Model:
    """The model of a graph with the call of an example."""
    return b.model(ir_version=minimum_ir(max(example.opset, 21)))


@functools.cache
def shared_model_of(operator: Operator, example: Example) -> tuple[Model, dict]:
    """`model_of`, made once for all tests, which must leave it as it is."""
    return model_of(operator, example)


@functools.cache
def answers_of(operator: Operator, example: Example, engine: str = DEFAULT) -> list:
    """What an engine computes of an example, computed once."""
    return run(*shared_model_of(operator, example), engine)


def _joined(types):
    """The type that covers the items of a sequence."""
    joined = types[0] if types else None
    for kind in types[1:]:
        joined = joined.join(kind)
    return joined


def typed_inputs(b: Builder, example: Example, *, known: bool) -> tuple[list, dict]:
    """The example's inputs as inputs of a builder, and the feeds for them."""
    inputs, feeds = [], {}
    for i, x in enumerate(example.inputs):
        told = example.types[i] if example.types else None
        if x is None and told is None:
            inputs.append(None)
            continue
        inputs.append(b.input(f"i{i}", told or type_of(x, known=known and not isinstance(x, (list, dict)))))
        feeds[f"i{i}"] = x if x is None or isinstance(x, (list, dict)) else np.asarray(x)
    return inputs, feeds


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
