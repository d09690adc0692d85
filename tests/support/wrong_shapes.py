"""Calls whose inputs have another shape than an example gives them: one axis more or less, another size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir import Builder
from sabir.ir import Model, OptionalType, minimum_ir
from sabir.schema import Example
from support.rooms import attributes_of, type_of, typed_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Type
    from sabir.schema import Operator


class Mutant(NamedTuple):
    """An example, one input of which has another shape; `change` names the input and both shapes."""

    change: str
    example: Example


def mutants(example: Example) -> Iterator[Mutant]:
    """Yield the example with each input in each of the other shapes."""
    for place, value in enumerate(example.inputs):
        if value is None or isinstance(value, dict):
            continue
        if isinstance(value, list):
            for item in range(len(value)):
                if not isinstance(value[item], dict):
                    for other in _reshaped(value[item]):
                        changed = [*value[:item], other, *value[item + 1 :]]
                        yield _mutant(example, place, changed, f"item {item} of ", value[item], other)
            continue
        for other in _reshaped(value):
            yield _mutant(example, place, other, "", value, other)


def _mutant(example: Example, place: int, value: Any, part: str, old: Any, new: Any) -> Mutant:
    types = [_retyped(t, value) if i == place else t for i, t in enumerate(example.types or ())]
    inputs = [*example.inputs[:place], value, *example.inputs[place + 1 :]]
    made = Example(example.opset, *inputs, outputs=example.outputs, types=types or None, **example.attributes)
    return Mutant(f"{part}input {place}: {list(np.shape(old))} becomes {list(np.shape(new))}", made)


def _retyped(kind: Type | None, value: Any) -> Type | None:
    """Return the type of an input that got another shape; None where its value tells it."""
    return OptionalType(type_of(value)) if isinstance(kind, OptionalType) else None


def _reshaped(value: Any) -> list[np.ndarray]:
    """Return the same elements in other shapes; where there are more, the first ones once more."""
    x = np.asarray(value)
    shapes = {(1, *x.shape): None, (*x.shape, 1): None, (2, *x.shape): None}
    for axis, size in enumerate(x.shape):
        shapes[*x.shape[:axis], *x.shape[axis + 1 :]] = None
        for other in (size + 1, size - 1, 1, 0):
            if other >= 0:
                shapes[*x.shape[:axis], other, *x.shape[axis + 1 :]] = None
    return [_resized(x, s) for s in shapes if s != x.shape]


def _resized(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    flat = x.ravel() if x.size else np.zeros(1, x.dtype) if x.dtype != object else np.array([""], object)
    return np.resize(flat, shape)


def model_of(operator: Operator, example: Example) -> tuple[Model, dict[str, Any]]:
    """A model of one node that makes the call, as it is: nothing is inferred of its outputs."""
    version = operator.at(example.opset)
    opset = 21 if operator.domain else example.opset
    b = Builder(opset, opsets={operator.domain: example.opset}, check=False)
    inputs, feeds = typed_inputs(b, example, known=False)
    made = b.op(
        operator.name,
        *inputs,
        outputs=example.outputs,
        domain=operator.domain,
        **attributes_of(version, example),
    )
    for place, value in enumerate(made if isinstance(made, tuple) else (made,)):
        b.output(value, f"o{place}")
    return Model(b.graph, b.opsets, minimum_ir(max(opset, 21))), feeds
