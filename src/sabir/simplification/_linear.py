"""Linear operators that take in what is added to their results, or multiplies them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.simplification._declaring import declaring
from sabir.simplification._table import normalization

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Array, Value
    from sabir.patterns import Match, RewriteRule
    from sabir.rewriting import DetachedBuilder

_TABLE: list[RewriteRule] = []
_rewrite = declaring(_TABLE)
_MATRIX = 2  # its rank
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


_ON_X = "w = Constant <value = float[2,3] {1, -2, 3, 4, 5, -6}> ()"
_THREE = "c = Constant <value = float[3] {1, 2, -3}> ()"


@_rewrite(
    "matmul-and-bias", "MatMul(x, w) + c = Gemm(x, w, c) for matrices", "Add(MatMul(x, w), $c)",
    exact=False, shared=False, since=7,
    examples=[f"{_ON_X} {_THREE} p = MatMul (x, w) y = Add (c, p)"],
    near_misses=[
        (
            f"{_ON_X} c = Constant <value = float[6,1] {{1, 2, 3, 4, 5, 6}}> () p = MatMul (x, w) q = "
            f"Add (p, c) y = Add (p, q)"
        ),
    ],
)  # fmt: skip
def _gemm(b: DetachedBuilder, m: Match) -> Value | None:
    kind, bias = m.type("x"), m.constant("c")
    if m.rank("x") != _MATRIX or m.rank("w") != _MATRIX or kind is None or kind.element.kind != "float":
        return None
    columns = (m.type("w") or kind).shape
    if bias.ndim > _MATRIX or bias.ndim == 0 or (bias.ndim == _MATRIX and bias.shape[0] != 1):
        return None
    if bias.shape[-1] != 1 and (columns is None or bias.shape[-1] != columns[-1]):
        return None
    return b.Gemm(m["x"], m["w"], m["c"])


_IMAGE = "i = Constant <value = int64[4] {1, 3, 2, 2}> () p = Reshape (x, i)"
_FILTERS = "w = Constant <value = float[2,3,1,1] {1, -2, 3, 4, 5, -6}> ()"
_TURNED = "w = Constant <value = float[3,2,1,1] {1, -2, 3, 4, 5, -6}> ()"
_BIAS = "k = Constant <value = float[2] {7, 8}> ()"
_SQUARE = "w = Constant <value = float[2,2] {1, -2, 3, 4}> ()"
_CHANNELS = "c = Constant <value = float[2,1,1] {3, -0.5}> ()"
_COLUMNS = "c = Constant <value = float[2] {3, -0.5}> ()"
_STATISTICS = (
    "s = Constant <value = float[2] {3, 0.5}> () t = Constant <value = float[2] {-1, 2}> ()"
    " m = Constant <value = float[2] {0.5, 4}> () v = Constant <value = float[2] {2, 9}> ()"
)
_LINEAR = {
    "Conv": (f"{_IMAGE} {_FILTERS}", "p", _CHANNELS),
    "ConvTranspose": (f"{_IMAGE} {_TURNED}", "p", _CHANNELS),
    "Gemm": (_SQUARE, "x", _COLUMNS),
}


def _after_linear(operation: str, call: str, symbol: str, constants: str = "") -> Any:
    """Return a decorator that adds one rewrite for each linear operator, with and without a bias."""

    def add(build: Any) -> Any:
        for op, (before, x, shaped) in _LINEAR.items():
            for bias in ("", ", $k"):
                if operation == "normalized" and op == "Conv":
                    continue  # in the first table
                name = f"{operation}-{op.lower()}{'-with-bias' if bias else ''}"
                linear = f"linear = {op}(x, $w{bias})"
                inner = f"l = {op} ({x}, w{', k' if bias else ''})"
                called = call.format("l").replace("$", "").replace("(", " (")
                example = f"{before} {_BIAS if bias else ''} {constants or shaped} {inner}"
                _rewrite(
                    name, f"{symbol} of {op} = {op} of other weights", call.format(linear),
                    exact=False, shared=False,
                    examples=[f"{example} y = {called}"],
                    near_misses=[f"{example} n = {called} y = Add (l, n)"],
                )(build)  # fmt: skip
        return build

    return add


@_after_linear("normalized", "BatchNormalization({}, $s, $t, $m, $v)", "BatchNormalization", _STATISTICS)
def _normalized(b: DetachedBuilder, m: Match) -> Value | None:
    found = normalization(m, ("s", "t", "m", "v"))
    return None if found is None else _with_affine(b, m, *found)


@_after_linear("scaled", "Mul({}, $c)", "a multiple")
def _scaled(b: DetachedBuilder, m: Match) -> Value | None:
    factor = _by_channel(m)
    return None if factor is None else _with_affine(b, m, factor, np.zeros_like(factor))


@_after_linear("shifted", "Add({}, $c)", "a shift")
def _shifted(b: DetachedBuilder, m: Match) -> Value | None:
    shift = _by_channel(m)
    return None if shift is None else _with_affine(b, m, np.ones_like(shift), shift)


def _by_channel(m: Match) -> Array | None:
    """Return the constant `$c` as one number for each channel, which are axis 1, None where it is none."""
    constant, after, before = m.constant("c"), m.result_type(), m.result_type("linear")
    channels = _channels(m)
    if after is None or before is None or channels is None or after.rank is None or after.rank != before.rank:
        return None
    if constant.ndim > after.rank or constant.dtype != m.constant("w").dtype:
        return None
    whole = [1] * (after.rank - constant.ndim) + list(constant.shape)
    if whole[1] not in {1, channels} or math.prod(whole) != whole[1]:
        return None
    return np.broadcast_to(constant.reshape(-1).astype(np.float64), (channels,)).copy()


def _channel_axis(m: Match) -> int | None:
    """Return the axis of the weights that is axis 1 of the result."""
    attributes = m.attributes("linear")
    match m.nodes["linear"].op:
        case "Conv":
            return 0
        case "ConvTranspose":
            return 1 if attributes["group"] in {None, 1} else None
        case _:
            return 0 if attributes["transB"] else 1


def _channels(m: Match) -> int | None:
    axis = _channel_axis(m)
    weights = m.constant("w")
    return weights.shape[axis] if axis is not None and axis < weights.ndim else None


def _with_affine(b: DetachedBuilder, m: Match, scale: Array, shift: Array) -> Value | None:
    """Build the linear call with weights and a bias that contain a scale and a shift of each channel."""
    weights, axis, channels = m.constant("w"), _channel_axis(m), _channels(m)
    if axis is None or weights.dtype not in _FLOATS or not scale.shape == shift.shape == (channels,):
        return None
    op, attributes = m.nodes["linear"].op, _given(m.attributes("linear"))
    if m.has("k"):
        bias = m.constant("k").astype(np.float64)
        if bias.shape != (channels,):
            return None
        shift += scale * bias * attributes.pop("beta", 1.0)
    attributes.pop("beta", None)
    scaled = weights.astype(np.float64) * scale.reshape([-1 if i == axis else 1 for i in range(weights.ndim)])
    operands = [m["x"], b.initializer("weights", scaled.astype(weights.dtype))]
    if shift.any() or m.has("k"):
        operands.append(b.initializer("bias", shift.astype(weights.dtype)))
    return b.op(op, *operands, **attributes)


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


@_rewrite(
    "scaled-twice", "x * a * b = x * (a * b)", "Mul(Mul(x, $a), $c)", exact=False, shared=False,
    examples=[
        ("a = Constant <value = float[2] {3, 0.5}> () c = Constant <value = float {5}> () p = Mul "
        "(x, a) y = Mul (p, c)")
    ],
)  # fmt: skip
@_rewrite(
    "shifted-twice", "x + a + b = x + (a + b)", "Add(Add(x, $a), $c)", exact=False, shared=False,
    examples=[
        ("a = Constant <value = float[2] {3, 0.5}> () c = Constant <value = float {5}> () p = Add "
        "(x, a) y = Add (p, c)")
    ],
)  # fmt: skip
def _twice(b: DetachedBuilder, m: Match) -> Value | None:
    first, second = m.constant("a"), m.constant("c")
    if first.dtype != second.dtype or first.dtype not in _FLOATS or m.root.attributes:
        return None
    try:
        both = first * second if m.root.op == "Mul" else first + second
    except ValueError:
        return None  # an invalid call, which the run reports
    if both.size > max(first.size, second.size) or both.ndim > max(first.ndim, second.ndim):
        return None
    return b.op(m.root.op, m["x"], b.initializer("both", both.astype(first.dtype)))


@_rewrite(
    "scaled-product", "MatMul(x, w) * c = MatMul(x, w * c)", "Mul(MatMul(x, $w), $c)",
    exact=False, shared=False,
    examples=[f"{_ON_X} {_THREE} p = MatMul (x, w) y = Mul (c, p)"],
    near_misses=[f"{_ON_X} {_THREE} p = MatMul (x, w) q = Mul (c, p) y = Add (p, q)"],
)  # fmt: skip
def _scaled_product(b: DetachedBuilder, m: Match) -> Value | None:
    weights, factor, rank = m.constant("w"), m.constant("c"), m.rank("x")
    if (
        weights.dtype not in _FLOATS
        or factor.dtype != weights.dtype
        or weights.ndim != _MATRIX
        or rank is None
    ):
        return None
    if factor.ndim > 1 or rank < _MATRIX or factor.size not in {1, weights.shape[1]}:
        return None
    scaled = weights.astype(np.float64) * factor
    return b.MatMul(m["x"], b.initializer("weights", scaled.astype(weights.dtype)))


LINEAR: Sequence[RewriteRule] = tuple(_TABLE)
