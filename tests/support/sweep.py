"""One-node models with hostile inputs and attributes: every version of every operator, one thing wrong at a time."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir import Builder, dumps
from sabir.elements import element
from sabir.ir import (
    ArrayTensor,
    Attribute,
    Graph,
    Model,
    OptionalType,
    SequenceType,
    TensorType,
    clone_graph,
    minimum_ir,
    tensor_type,
)
from sabir.schema import Example, Version
from support.rooms import OPERATORS, attributes_of, examples_of, type_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
SHAPES = {
    "scalar": (), "empty": (0,), "one": (1,), "three": (3,), "matrix": (2, 3), "five axes": (1, 2, 1, 2, 3),
    "no rows": (0, 3), "64 axes": (1,) * 64, "long": (5000,),
}  # fmt: skip
INTS = {"0": 0, "-1": -1, "2^31": 2**31, "2^62": 2**62, "INT64_MIN": INT_MIN, "INT64_MAX": INT_MAX, "40": 40}
FLOATS = {"0.0": 0.0, "-1.0": -1.0, "nan": float("nan"), "inf": float("inf"), "1e30": 1e30}
STRINGS = {
    "empty text": "",
    "other letters": "жéß\u202e",
    "long text": "a" * 5000,
    "brackets": "((((a+)+)+)+$",
}
WRONG = {"an int": 1, "a float": 0.5, "a text": "x", "ints": (1, 2), "a tensor": np.zeros(2, np.float32)}


class Case(NamedTuple):
    """A model as a file, and feeds for it."""

    name: str
    data: bytes
    feeds: dict[str, Any]


class Given(NamedTuple):
    """One input of the node: its value, its declared type, and whether it is fed, a constant, or left out."""

    value: Any
    kind: Any
    how: str = "fed"


def cases(wanted: Callable[[int, str], bool]) -> Iterator[tuple[int, Case]]:
    """Yield the cases for whose place and name `wanted` holds, always in the same order."""
    versions = (v for o in OPERATORS for v in o.versions)
    variations = ((v, *made) for v in versions for made in _variations(v))
    for place, (version, name, inputs, attributes) in enumerate(variations):
        if wanted(place, name):
            yield place, _case(name, version, inputs, attributes)


def in_sample(place: int, share: int) -> bool:
    """Whether a case belongs to a sample of one in `share`, spread evenly and always the same."""
    return zlib.crc32(str(place).encode()) % share == 0


def _variations(version: Version) -> Iterator[tuple[str, list[Given], dict[str, Attribute]]]:
    example = _example(version)
    inputs = [_given(example, i) for i in range(len(example.inputs))]
    attributes = attributes_of(version, example)
    yield f"{version}", inputs, attributes
    for place in range(max(len(inputs), len(version.inputs))):
        base = inputs[place] if place < len(inputs) else Given(None, None, "absent")
        for state, given in _input_states(base):
            changed = [*inputs, *[Given(None, None, "absent")] * (place + 1 - len(inputs))]
            changed[place] = given
            yield f"{version} input {place}: {state}", changed, attributes
    for state, shape in SHAPES.items():
        yield f"{version} inputs: {state}", [_shaped(g, shape) for g in inputs], attributes
    for formal in version.attributes:
        for state, given in _attribute_states(formal.name, formal.type, attributes.get(formal.name)):
            kept = {k: a for k, a in attributes.items() if k != formal.name}
            yield f"{version} {formal.name}: {state}", inputs, kept | ({formal.name: given} if given else {})


def _example(version: Version) -> Example:
    """Return the example of a version that says most, or a call that holds a float for each input."""
    operator = version.operator
    found = [e for e in examples_of(operator) if operator.at(e.opset) is version]
    if not found:
        return Example(version.since, *[np.ones(3, np.float32) for _ in version.inputs])
    return max(found, key=lambda e: (sum(x is not None for x in e.inputs), len(e.attributes)))


def _given(example: Example, place: int) -> Given:
    value, told = example.inputs[place], example.types[place] if example.types else None
    if value is None and told is None:
        return Given(None, None, "absent")
    if not isinstance(value, (list, dict)) and value is not None:
        value = np.asarray(value)
    return Given(value, told or type_of(value))


def _input_states(base: Given) -> Iterator[tuple[str, Given]]:
    yield "absent", Given(None, None, "absent")
    yield "no type", Given(base.value if base.how == "fed" else np.ones(2, np.float32), None)
    yield "no rank", Given(base.value, TensorType(element(_array(base).dtype)))
    yield "65 axes", Given(np.ones((1,) * 64, np.float32), tensor_type(np.float32, (1,) * 65))
    yield "another type", _other(base)
    yield "a sequence", Given([np.ones(2, np.float32)], SequenceType(tensor_type(np.float32, (2,))))
    yield "an empty optional", Given(None, OptionalType(tensor_type(np.float32, (2,))))
    for state, shape in SHAPES.items():
        yield state, _shaped(base, shape)
    for state, value in _extremes(_array(base)):
        for how in ("fed", "constant"):
            yield f"{state}, {how}", Given(value, type_of(value), how)


def _array(base: Given) -> np.ndarray:
    return base.value if isinstance(base.value, np.ndarray) else np.ones(2, np.float32)


def _other(base: Given) -> Given:
    array = _array(base)
    value = np.ones(array.shape, np.float32) if array.dtype == object else np.full(array.shape, "x", object)
    return Given(value, type_of(value))


def _shaped(base: Given, shape: tuple[int, ...]) -> Given:
    """Return an input of this shape, its elements in turn those that the example has."""
    if base.how == "absent" and base.value is None:
        return base
    array = _array(base)
    flat = array.ravel() if array.size else np.zeros(1, array.dtype)
    value = np.resize(flat, shape)
    return Given(value, type_of(value))


def _extremes(array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield arrays of the same shape and type with hostile contents."""
    kind = element(array.dtype)
    if array.dtype == object:
        yield "empty texts", np.full(array.shape, "", object)
        yield "long texts", np.full(array.shape, "a" * 5000, object)
        yield "odd texts", np.full(array.shape, "\x00\u202e1e999", object)
    elif array.dtype.kind == "b":
        yield "false", np.zeros(array.shape, bool)
    elif kind.is_integer:
        bits = kind.bits - kind.is_signed
        top = 2**bits - 1
        for state, number in (("zero", 0), ("40", 40), ("largest", top), ("2^62", 2**62), ("2^31", 2**31)):
            yield state, np.full(array.shape, min(number, top)).astype(array.dtype)
        if kind.is_signed:
            yield "-1", np.full(array.shape, -1).astype(array.dtype)
            yield "smallest", np.full(array.shape, -(2**bits)).astype(array.dtype)
    else:
        for state, number in FLOATS.items():
            with np.errstate(all="ignore"):
                yield state, np.full(array.shape, number).astype(array.dtype)


def _attribute_states(
    name: str, kind: str, given: Attribute | None
) -> Iterator[tuple[str, Attribute | None]]:
    yield "absent", None
    count = max(1, len(given.value)) if given and kind in {"ints", "floats", "strings"} else 1
    pools: dict[str, dict[str, Any]] = {"int": INTS, "float": FLOATS, "string": STRINGS}
    single = kind.removesuffix("s")
    if single in pools:
        for state, value in pools[single].items():
            yield state, Attribute(name, kind, value if kind == single else (value,) * count)
    if kind in {"ints", "floats", "strings"}:
        first = next(iter(pools[single].values()))
        value = given.value[0] if given and given.value else first
        yield "no items", Attribute(name, kind, ())
        yield "one item", Attribute(name, kind, (value,))
        yield "one more", Attribute(name, kind, (*(given.value if given else ()), value))
        yield "1000 items", Attribute(name, kind, (value,) * 1000)
        yield "mixed", Attribute(name, kind, tuple(pools[single].values()))
    if kind in {"tensor", "sparse_tensor"}:
        for state, shape in SHAPES.items():
            yield state, Attribute(name, "tensor", ArrayTensor(np.ones(shape, np.float32)))
        for state, number in INTS.items():
            yield state, Attribute(name, "tensor", ArrayTensor(np.full(2, number)))
        yield "texts", Attribute(name, "tensor", ArrayTensor(np.full(2, "x", object)))
    if kind == "graph":
        yield "an empty graph", Attribute(name, "graph", Graph())
        yield "a constant graph", Attribute(name, "graph", _constant_graph())
        yield "an open graph", Attribute(name, "graph", _constant_graph(inputs=3))
    for state, value in WRONG.items():
        yield f"{state} instead", Attribute.of(name, value)


def _constant_graph(inputs: int = 0) -> Graph:
    b = Builder()
    for place in range(inputs):
        b.input(f"in{place}_{inputs}", TensorType(element("float")))
    b.output(b.Constant(value=np.ones(2, np.float32)))
    return b.graph


def _case(name: str, version: Version, inputs: list[Given], attributes: dict[str, Attribute]) -> Case:
    domain, opset = version.operator.domain, version.since
    b = Builder(21 if domain else opset, opsets={domain: opset}, check=False)
    feeds: dict[str, Any] = {}
    read = []
    for place, given in enumerate(inputs):
        if given.how == "absent":
            read.append(None)
        elif given.how == "constant":
            read.append(b.initializer(f"i{place}", given.value))
        else:
            value = b.graph.add_input(f"i{place}", given.kind)
            feeds[value.name] = given.value
            read.append(value)
    wanted = max(1, min(len(version.outputs), 3))
    outputs = b.op(version.operator.name, *read, outputs=wanted, domain=domain, **_own(attributes))
    for value in outputs if isinstance(outputs, tuple) else (outputs,):
        b.output(value)
    # made by hand: a builder would look for the types of the outputs
    return Case(name, dumps(Model(b.graph, b.opsets, minimum_ir(max(opset, 21)))), feeds)


def _own(attributes: dict[str, Attribute]) -> dict[str, Any]:
    """Return attributes with graphs of their own: a graph belongs to one node."""
    return {k: _copied(a) if a.graphs else a for k, a in attributes.items()}


def _copied(attribute: Attribute) -> Attribute:
    return Attribute(attribute.name, "graph", clone_graph(attribute.value, {}))
