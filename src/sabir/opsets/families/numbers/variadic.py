"""Elementwise operators with any number of inputs, which older versions require to have one shape."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import TensorType, known_equal
from sabir.loops import NotLowered
from sabir.opsets.families.building.calls import has_attribute
from sabir.opsets.families.numbers.pointwise_gradients import extreme
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.schema import BFLOAT16, FLOATS, NUMBERS, Attribute, Constraint, Input, Output, Unconvertible

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from sabir.ir import Builder, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Operator, Version


def declare(operator: Operator, output: str) -> Version:
    """Declare versions 1, 6 and 8 of an operator on floats, and return 8, the first that broadcasts."""
    of = Constraint("T", FLOATS)
    v1 = operator.first(
        1,
        inputs=[Input("data_0", of, "One or more tensors.", variadic=True, differentiable=True)],
        outputs=[Output(output, of, "The shape to which all inputs broadcast.", differentiable=True)],
        attributes=[Attribute("consumed_inputs", "ints", legacy=True)],
    )
    v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
    return v6.restate(8, "Broadcasts the inputs; before, they had to have one shape.")


def declare_extreme(
    operator: Operator, function: np.ufunc, op: str, infer: BehaviourFunction, *, compare: str
) -> None:
    """Declare all versions of a minimum or maximum: by numpy, as a scalar function, of known contents.

    `compare` is the operator that chooses the first of two integers.
    """
    v8 = declare(operator, op)
    v12 = v8.widen(12, T=NUMBERS)
    v8.infer(infer)
    v8.evaluate(folded(function))
    v8.lower(folded_expression(op))
    one_shape_before(v8)
    integers_before(v12, compare)
    v12.widen(13, T=BFLOAT16).gradient(extreme)


def folded(function: Callable[[Array, Array], Array]) -> BehaviourFunction:
    """Return the evaluation that combines the inputs by a binary function, from left to right."""

    def evaluate(*inputs: Array) -> Array:
        return functools.reduce(function, inputs)

    return evaluate


def folded_expression(op: str) -> BehaviourFunction:
    """Return the lowering that combines the inputs by a scalar function, from left to right."""

    def lower(*inputs: Expression) -> Expression:
        return functools.reduce(functools.partial(loops.apply, op), inputs)

    return lower


def one_shape_before(newer: Version, chain: Callable[..., Value] | None = None) -> None:
    """Attach the requirement of one shape to the versions before `newer`, and the downgrade to them.

    The older versions evaluate and lower as `newer`, which must have both behaviours already.
    `chain(builder, *inputs)` emits the operator as a chain of binary ones, for inputs that may differ in
    shape.
    """
    first, name = newer.operator.versions[0], newer.operator.name
    first.infer(infer_one_shape)
    first.evaluate(_of_one_shape(newer.behaviours["evaluate"]))
    first.lower(_lowered_of_one_shape(newer.behaviours["lower"]))

    @newer.downgrade
    def downgrade(b: Builder, /, *inputs: Value) -> Value:
        if _are_of_one_shape(*inputs):
            return b.op(name, *inputs)
        if chain is None or has_attribute(b, "Add", "broadcast"):
            raise Unconvertible(
                f"the inputs are not known to be of one shape, and {newer.previous} does not broadcast"
            )
        return chain(b, *inputs)


def integers_before(newer: Version, compare: str) -> None:
    """Attach the downgrade to versions that take no integers: the choice by comparison of each pair."""
    name = newer.operator.name

    @newer.downgrade
    def downgrade(b: Builder, first: Value, /, *others: Value) -> Value:
        if not isinstance(first.type, TensorType) or not first.type.element.is_integer:
            return b.op(name, first, *others)
        chosen = first if others else b.Identity(first)
        for other in others:
            chosen = b.Where(b.op(compare, chosen, other), chosen, other)
        return chosen


def infer_one_shape(*inputs: TensorType) -> TensorType:
    """Infer the inputs' common type and shape; raises InferenceError where they differ."""
    element = next((t.element for t in inputs if t.element.number), inputs[0].element)
    shapes = [t.shape for t in inputs if t.shape is not None]
    if not shapes:
        return TensorType(element)
    if len({len(s) for s in shapes}) > 1:
        raise InferenceError(
            f"inputs have the ranks {', '.join(str(len(s)) for s in shapes)}, and must be of one shape"
        )
    dims = (same_dim(column, "inputs of one shape") for column in zip(*shapes, strict=True))
    return TensorType(element, tuple(dims))


def _of_one_shape(evaluate: BehaviourFunction) -> BehaviourFunction:
    """Return the evaluation of a variadic operator, preceded by a check that the inputs have one shape."""

    def evaluate_one_shape(*inputs: Array) -> Array:
        if len({x.shape for x in inputs}) > 1:
            raise ValueError(
                f"inputs must be of one shape, and are {', '.join(str(list(x.shape)) for x in inputs)}"
            )
        return evaluate(*inputs)

    return evaluate_one_shape


def _lowered_of_one_shape(lower: BehaviourFunction) -> BehaviourFunction:
    """Return the lowering of a variadic operator, preceded by a check that the inputs have one shape."""

    def lower_one_shape(*inputs: Expression) -> Expression:
        if not all(loops.same_shape(x.shape, inputs[0].shape) for x in inputs):
            raise NotLowered("whether the inputs are of one shape is known at run time only")
        return lower(*inputs)

    return lower_one_shape


def _are_of_one_shape(*inputs: Value) -> bool:
    """Whether all values are known to have one shape."""
    shapes = [v.type.shape if isinstance(v.type, TensorType) else None for v in inputs]
    first = shapes[0]
    if len(shapes) == 1:
        return True
    return first is not None and all(
        s is not None and len(s) == len(first) and all(map(known_equal, first, s)) for s in shapes
    )
