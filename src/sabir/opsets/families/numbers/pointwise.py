"""Elementwise functions: their first versions, evaluation over arrays, known contents, and examples."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from sabir.base import new_array
from sabir.ir import Expr
from sabir.opsets.families.numbers import arithmetic, broadcasting
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from sabir.ir import Dim, Item, TensorType
    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Operator, Version

_BLOCK = 1 << 15  # elements; the temporaries of a formula of this size fit the second-level cache

# ---------------------------------------------------------------- declaration


def declare_first(
    operator: Operator,
    result: str,
    *attributes: Attribute,
    names: tuple[str, str] = ("X", "Y"),
    differentiable: bool = True,
) -> Version:
    """Declare version 1 of a function of floats, which has a legacy hint; `result` describes the output."""
    of = Constraint("T", FLOATS)
    return operator.first(
        1,
        inputs=[Input(names[0], of, "A tensor of any shape.", differentiable=differentiable)],
        outputs=[Output(names[1], of, result, differentiable=differentiable)],
        attributes=[Attribute("consumed_inputs", "ints", legacy=True), *attributes],
    )


# ---------------------------------------------------------------- evaluation


def pointwise(function: Callable[..., Array]) -> BehaviourFunction:
    """Return the evaluation of a function of one array block by block; halves are rounded once, from float32.

    It suits formulas of several steps: no temporary becomes as large as the array.
    """

    @functools.wraps(function)  # the binder reads the attributes from its signature
    def evaluate(x: Array, /, **attributes: Any) -> Array:
        if x.size <= _BLOCK:
            y = function(widened(x), **attributes)
            return y if y.dtype == x.dtype else y.astype(x.dtype)
        row: Array = np.ascontiguousarray(x).reshape(-1)
        out = new_array(row.shape, x.dtype)
        for start in range(0, row.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = function(widened(row[block]), **attributes)
        return out.reshape(x.shape)

    return evaluate


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)); where the exponential overflows, that is 0."""
    y: Array = np.empty(x.shape, x.dtype)
    np.negative(x, out=y)
    np.exp(y, out=y)
    y += 1
    return np.reciprocal(y, out=y)


def exponential_unit(x: Array, alpha: float) -> Array:
    """Return x where it is 0 or above, `alpha * (exp(x) - 1)` below."""
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0))


# ---------------------------------------------------------------- known contents


def known_by(function: Callable[[Dim], Dim]) -> BehaviourFunction:
    """Return the type inference of an elementwise function that is also defined on dimensions."""

    def infer(x: TensorType, /) -> TensorType:
        return arithmetic.limited(function, x)

    return infer


def known_rounding(function: Callable[[float], Any]) -> BehaviourFunction:
    """Return the type inference of a rounding, which leaves symbols, as they are integers."""

    def rounded(item: Item) -> Item:
        return item if isinstance(item, Expr) else float(function(float(item or 0)))

    def infer(x: TensorType, /) -> TensorType:
        return broadcasting.computed(rounded, x)

    return infer


# ---------------------------------------------------------------- examples

TOLERANCES = {np.float64: 1e-13, np.float32: 1e-6, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2}


def over_floats(
    x: Sequence[float], y: Sequence[float], *opsets: int, bfloat16: int, **attributes: Any
) -> Iterator[Example]:
    """Yield calls that compute `y` from `x` in every float type, then one of a scalar and of an empty tensor.

    `bfloat16` is the first opset that admits it. The values of `x` should be exact in it.
    """
    inputs, outputs = np.array(x, np.float64), np.array(y, np.float64)
    for opset in opsets:
        for dtype, tolerance in TOLERANCES.items():
            if dtype is not ml_dtypes.bfloat16 or opset >= bfloat16:
                yield Example(
                    opset,
                    inputs.astype(dtype),
                    expect=[outputs.astype(dtype)],
                    tolerance=tolerance,
                    **attributes,
                )
    scalar, result = inputs[0].astype(np.float32), outputs[0].astype(np.float32)
    yield Example(opsets[-1], scalar, expect=[result], tolerance=TOLERANCES[np.float32], **attributes)
    nothing = np.zeros((2, 0), np.float32)
    yield Example(opsets[-1], nothing, expect=[nothing], **attributes)
