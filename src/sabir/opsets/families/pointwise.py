"""Functions of one element at a time: how they run over arrays, and what they keep of known contents."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from sabir.ir import Expr
from sabir.opsets.families import arithmetic, broadcasting
from sabir.opsets.families.arithmetic import widened
from sabir.schema import Example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from sabir.ir import Dim, Item, TensorType
    from sabir.opsets.typing import Array, BehaviourFunction

_BLOCK = 1 << 15  # elements; the temporaries of a formula of this size fit the second-level cache

# ---------------------------------------------------------------- evaluation


def pointwise(rule: Callable[..., Array]) -> BehaviourFunction:
    """Return a formula of one array, block by block; halves are computed in float32 and rounded once.

    It suits formulas of several steps: no temporary becomes as large as the array.
    """

    @functools.wraps(rule)  # the binder reads the attributes from the rule's signature
    def evaluate(x: Array, /, **attributes: Any) -> Array:
        if x.size <= _BLOCK:
            return rule(widened(x), **attributes).astype(x.dtype, copy=False)
        row: Array = np.ascontiguousarray(x).reshape(-1)
        out: Array = np.empty(row.shape, x.dtype)
        for start in range(0, row.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            out[block] = rule(widened(row[block]), **attributes)
        return out.reshape(x.shape)

    return evaluate


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)); where the exponential overflows, that is 0."""
    return 1 / (1 + np.exp(-x))


def exponential_unit(x: Array, alpha: float) -> Array:
    """Return x from 0 on, and `alpha * (exp(x) - 1)` below."""
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0))


# ---------------------------------------------------------------- known contents


def known_by(rule: Callable[[Dim], Dim]) -> BehaviourFunction:
    """Return the type rule of a function that keeps shape and type, and that dimensions know too."""

    def infer(x: TensorType, /) -> TensorType:
        return arithmetic.limited(rule, x)

    return infer


def known_rounding(rule: Callable[[float], Any]) -> BehaviourFunction:
    """Return the type rule of a rounding: symbols stand for whole numbers, and stay."""

    def rounded(item: Item) -> Item:
        return item if isinstance(item, Expr) else float(rule(float(item or 0)))

    def infer(x: TensorType, /) -> TensorType:
        return broadcasting.computed(rounded, x)

    return infer


# ---------------------------------------------------------------- examples

_TOLERANCES = {np.float64: 1e-13, np.float32: 1e-6, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2}


def over_floats(
    x: Sequence[float], y: Sequence[float], *opsets: int, bfloat16: int, **attributes: Any
) -> Iterator[Example]:
    """Yield calls that make `y` of `x` in every floating type, with a scalar and an empty tensor at last.

    `bfloat16` is the opset from which it is admitted. The values of `x` should be exact in it.
    """
    inputs, outputs = np.array(x, np.float64), np.array(y, np.float64)
    for opset in opsets:
        for dtype, tolerance in _TOLERANCES.items():
            if dtype is not ml_dtypes.bfloat16 or opset >= bfloat16:
                yield Example(
                    opset,
                    inputs.astype(dtype),
                    expect=[outputs.astype(dtype)],
                    tolerance=tolerance,
                    **attributes,
                )
    scalar, result = inputs[0].astype(np.float32), outputs[0].astype(np.float32)
    yield Example(opsets[-1], scalar, expect=[result], tolerance=_TOLERANCES[np.float32], **attributes)
    nothing = np.zeros((2, 0), np.float32)
    yield Example(opsets[-1], nothing, expect=[nothing], **attributes)
