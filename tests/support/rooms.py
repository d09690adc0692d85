"""Examples of rooms as models, and rooms as pytest parameters."""

from __future__ import annotations

import numpy as np
import pytest

from sabir.evaluate import Runner
from sabir.infer import Inference
from sabir.ir import Attribute, Builder, Model, SequenceType, TensorType, minimum_ir, tensor_type
from sabir.opsets import STANDARD
from sabir.opsets.families import contents
from sabir.schema import Example, Operator, Version
from sabir.text import parse_graph

OPERATORS = sorted(STANDARD, key=lambda o: (o.domain, o.name))
VERSIONS = [pytest.param(v, id=str(v)) for o in OPERATORS for v in o.versions]
EXAMPLES = [
    pytest.param(o, e, id=f"{o.domain}.{o.name}-{e.opset}-{i}".removeprefix("."))
    for o in OPERATORS
    for i, e in enumerate(o.all_examples())
]


def attributes_of(version: Version, example: Example) -> dict[str, Attribute]:
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
        return SequenceType(type_of(x[0]) if x else None)
    array = np.asarray(x)
    kind = tensor_type(array.dtype, array.shape)
    return kind.with_known(contents.of_array(array)) if known else kind


def model_of(operator: Operator, example: Example) -> tuple[Model, dict]:
    """A model of one node that makes the example's call, and its feeds."""
    version = operator.at(example.opset)
    b = Builder(example.opset if not operator.domain else 21, opsets={operator.domain: example.opset})
    feeds, inputs = {}, []
    for i, x in enumerate(example.inputs):
        if x is None:
            inputs.append(None)
            continue
        inputs.append(b.input(f"i{i}", type_of(x)))
        feeds[f"i{i}"] = x if isinstance(x, (list, dict)) else np.asarray(x)
    made = b.op(
        operator.name, *inputs, outputs=example.outputs, domain=operator.domain, **attributes_of(version, example)
    )
    for i, value in enumerate(made if example.outputs != 1 else (made,)):
        b.output(value, f"o{i}")
    return b.model(ir_version=minimum_ir(max(example.opset, 21))), feeds


def run(model: Model, feeds: dict) -> list:
    return list(Runner(model).run(feeds).values())


def inferred(model: Model, feeds: dict, *, known: bool, drop_shapes: bool = False, symbolic: bool = False) -> list:
    """The output types that follow from the feeds' types: with contents, without shapes, or with symbols."""
    for value in model.graph.inputs:
        if isinstance(value.type, TensorType):
            value.type = _told(value.name, feeds[value.name], known=known, drop=drop_shapes, symbolic=symbolic)
    engine = Inference(model, strict=True)
    engine.run()
    return [engine.types.get(v) for v in model.graph.outputs]


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
    return {f"{n}_{a}": size for n, x in feeds.items() for a, size in enumerate(np.asarray(x).shape)}
