"""Evaluation and inference agree in every element type that a version admits."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from sabir.elements import BOOL, FLOAT8E8M0, STRING, ElementType, element
from sabir.ir import TensorType
from sabir.schema import Constraint, Example, Port, Version
from support.rooms import OPERATORS, inferred, model_of, run, type_of

TRIES = 6  # examples of a version that are held against one type
TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype")


def cast(x: np.ndarray, to: ElementType) -> np.ndarray:
    """The values of `x`, as near as the type has them."""
    if x.dtype == to.dtype:
        return x
    if to is STRING:
        return strings(x)
    wide = numbers(x)
    if to is BOOL:
        return wide != 0
    if to.is_complex:
        return wide.astype(to.dtype)
    wide = np.nan_to_num(wide.real if wide.dtype.kind == "c" else wide, nan=0)
    if to is FLOAT8E8M0:
        return np.exp2(np.rint(np.log2(np.clip(np.abs(wide), 0.125, 8)))).astype(to.dtype)
    low, high = limits(to, whole=x.dtype.kind in "iub")
    return np.clip(wide if to.is_float else np.rint(wide), low, high).astype(to.dtype)


def strings(x: np.ndarray) -> np.ndarray:
    made = np.empty(x.shape, object)
    made.reshape(-1)[:] = [str(item) for item in x.reshape(-1).tolist()]
    return made


def numbers(x: np.ndarray) -> np.ndarray:
    """`x` as float64 or complex128; of texts, their lengths."""
    if x.dtype.kind in "OUST":
        return np.array([len(item) for item in x.reshape(-1).tolist()], np.float64).reshape(x.shape)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def limits(to: ElementType, *, whole: bool) -> tuple[float, float]:
    """A range that the type holds; integers that were none stay small, and so do narrow floats."""
    if to.is_float:
        return (-np.inf, np.inf) if to.bits >= 32 else (-4.0, 6.0)
    least, most = -(2 ** (to.bits - 1)) if to.is_signed else 0, 2 ** (to.bits - to.is_signed) - 1
    if whole:
        return max(least, -(2.0**53)), min(most, 2.0**53)
    return max(least, -4), min(most, 6)


@dataclass(frozen=True)
class Case:
    """A version, one of its constraints, and the types that this admits."""

    version: Version
    constraint: Constraint

    def types(self) -> list[ElementType]:
        names = [t.removeprefix("tensor(")[:-1] for t in self.constraint.allowed if t.startswith("tensor(")]
        return sorted((element(n) for n in names), key=lambda e: e.number)

    def examples(self) -> list[Example]:
        operator = self.version.operator
        return [e for e in operator.all_examples() if operator.at(e.opset) is self.version]


CASES = [
    pytest.param(Case(v, c), id=f"{v}-{name}")
    for o in OPERATORS
    for v in o.versions
    if not v.deprecated and v.find("evaluate") is not None
    for name, c in sorted(v.constraints.items())
]


def port_at(ports, place: int) -> Port:
    return ports[min(place, len(ports) - 1)]


def retyped(case: Case, example: Example, to: ElementType) -> Example | None:
    """The example with `to` for the constraint; None where it has no place for the constraint."""
    version, name = case.version, case.constraint.name
    inputs, changed = list(example.inputs), False
    for place, x in enumerate(example.inputs):
        kind = port_at(version.inputs, place).type
        if not isinstance(x, (list, dict)) and x is not None and kind == case.constraint:
            inputs[place], changed = cast(np.asarray(x), to), True
    attributes = dict(example.attributes)
    if not changed:
        attributes.update(told(version, to))
    types = example.types
    if types is not None:
        types = [None if x is not e else t for x, e, t in zip(inputs, example.inputs, types, strict=False)]
    return Example(example.opset, *inputs, outputs=example.outputs, types=types, **attributes)


def told(version: Version, to: ElementType) -> dict[str, Any]:
    """The attribute that names the type of an output, where the version has one."""
    for attribute in version.attributes:
        if attribute.name in TYPE_ATTRIBUTES:
            return {attribute.name: to.number if attribute.type == "int" else to.name.upper()}
        if attribute.name == "value" and attribute.type == "tensor":
            return {"value": np.zeros(1, to.dtype)}
    return {}


def held(case: Case, example: Example, to: ElementType) -> bool:
    """Evaluate the example with that type, and tell whether anything had it."""
    call = retyped(case, example, to)
    model, feeds = model_of(case.version.operator, call)
    got = run(model, feeds)
    kinds = inferred(model, feeds, known=True)
    seen: dict[str, set[ElementType]] = {}
    for ports, values in ((case.version.inputs, call.inputs), (case.version.outputs, got)):
        for place, value in enumerate(values):
            port = port_at(ports, place)
            if isinstance(port.type, Constraint) and not port.heterogeneous and is_tensor(value):
                seen.setdefault(port.type.name, set()).add(element(np.asarray(value).dtype))
    for place, (kind, value) in enumerate(zip(kinds, got, strict=True)):
        agree(port_at(case.version.outputs, place), kind, value)
    assert all(len(kinds) == 1 for kinds in seen.values()), seen
    return seen.get(case.constraint.name) == {to}


def is_tensor(value) -> bool:
    return value is not None and not isinstance(value, (list, dict))


def agree(port: Port, kind, value) -> None:
    if not is_tensor(value):
        return
    assert isinstance(value, np.ndarray)
    actual = type_of(value)
    assert isinstance(kind, TensorType)
    assert kind.element == actual.element
    assert actual.signature in port.allowed
    assert kind.shape is None or len(kind.shape) == value.ndim
    assert kind.shape is None or all(d is None or d == n for d, n in zip(kind.shape, value.shape, strict=True))
