"""The second table: rewrites for a model as a file. They may change how results are rounded.

A compiled session does not use them: it fuses what they fuse, and has other means for known sizes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import FLOAT, element
from sabir.ir import known_equal
from sabir.simplification._declaration import Match, Rewrite
from sabir.simplification._declaring import declaring
from sabir.simplification._table import normalization
from sabir.simplification._targets import reshape_target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Array, Value
    from sabir.rewrite import DetachedBuilder

_TABLE: list[Rewrite] = []
_rewrite = declaring(_TABLE)
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


# ---------------------------------------------------------------- calls without effect


@_rewrite(
    "dropout", "Dropout(x) = x in inference", "Dropout(x)",
    examples=["a = Dropout (x) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "dropout-of-ratio", "Dropout(x, ratio) = x in inference", "Dropout(x, ratio)",
    examples=["r = Constant <value = float {0.3}> () a = Dropout (x, r) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "dropout-not-in-training", "Dropout(x, ratio, false) = x", "Dropout(x, ratio, $training)",
    examples=[
        "r = Constant <value = float {0.3}> () t = Constant <value = bool {0}> () a = Dropout (x, r, t) y = Relu (a)"
    ],
    others=[
        "r = Constant <value = float {0.0}> () t = Constant <value = bool {1}> () a = Dropout (x, r, t) y = Relu (a)"
    ],
)  # fmt: skip
def _dropout(_b: DetachedBuilder, m: Match) -> Value | None:
    in_training = m.has("training") and m.constant("training").any()
    return None if in_training or not m.attributes().get("is_test", 1) else m["x"]


@_rewrite(
    "expand-to-own-shape", "Expand(x, s) = x where the shape stays", "Expand(x, s)",
    examples=["s = Constant <value = int64[2] {1, 2}> () a = Expand (x, s) y = Relu (a)"],
    others=["s = Constant <value = int64[3] {2, 1, 1}> () a = Expand (x, s) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "flatten-to-own-shape", "Flatten(x) = x where the shape stays", "Flatten(x)",
    examples=["a = Flatten (x) y = Relu (a)"],
    others=["a = Flatten <axis = 0> (x) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "tile-of-one", "Tile(x, r) = x where the shape stays", "Tile(x, r)",
    examples=["r = Constant <value = int64[2] {1, 1}> () a = Tile (x, r) y = Relu (a)"],
    others=["r = Constant <value = int64[2] {1, 2}> () a = Tile (x, r) y = Relu (a)"],
)  # fmt: skip
def _kept(_b: DetachedBuilder, m: Match) -> Value | None:
    return m["x"] if _is_same_shape(m) else None


@_rewrite(
    "slice-of-all", "Slice(x, s, e, a) = x where the shape stays", "Slice(x, s, e, a)",
    examples=["s = Constant <value = int64[1] {0}> () e = Constant <value = int64[1] {9}> () a = Slice (x, s, e, s) y = Relu (a)"],
    others=["s = Constant <value = int64[1] {0}> () e = Constant <value = int64[1] {1}> () a = Slice (x, s, e, s) y = Relu (a)"],
)  # fmt: skip
@_rewrite(
    "slice-of-all-by-steps", "Slice(x, s, e, a, 1) = x where the shape stays", "Slice(x, s, e, a, $steps)",
    examples=[
        "s = Constant <value = int64[1] {0}> () e = Constant <value = int64[1] {9}> ()"
        " p = Constant <value = int64[1] {1}> () a = Slice (x, s, e, s, p) y = Relu (a)"
    ],
    others=[
        "s = Constant <value = int64[1] {-1}> () e = Constant <value = int64[1] {-9}> ()"
        " i = Constant <value = int64[1] {0}> () a = Slice (x, s, e, i, s) y = Relu (a)"
    ],
)  # fmt: skip
def _sliced(_b: DetachedBuilder, m: Match) -> Value | None:
    if m.has("steps") and not (m.constant("steps") == 1).all():
        return None
    return m["x"] if _is_same_shape(m) else None


@_rewrite(
    "zero-added", "x + 0 = x", "Add(x, $c)", exact=False,
    examples=["c = Constant <value = float {0}> () a = Add (c, x) y = Neg (a)"],
    others=["c = Constant <value = float[3,1,1] {0,0,0}> () a = Add (x, c) y = Neg (a)"],
)  # fmt: skip
def _plus_zero(_b: DetachedBuilder, m: Match) -> Value | None:
    constant = m.constant("c")  # exact but for -0 + 0
    return m["x"] if constant.dtype.kind in "fiu" and not constant.any() and _is_same_shape(m) else None


@_rewrite(
    "cast-of-wider", "Cast(Cast(x, to=wider), to) = Cast(x, to)", "Cast(inner = Cast(x))",
    examples=["a = Cast <to = 11> (x) b = Cast <to = 6> (a) y = Cast <to = 1> (b)"],
    others=["a = Cast <to = 6> (x) y = Cast <to = 1> (a)"],
)  # fmt: skip
def _cast_of_wider(b: DetachedBuilder, m: Match) -> Value | None:
    kind = m.type("x")
    if kind is None or not kind.element.number:
        return None
    old, new = kind.element.dtype, element(m.attributes("inner")["to"]).dtype
    both = {old.kind, new.kind}
    if not both <= set("iuf") or (old.kind != new.kind and "f" in both) or not np.can_cast(old, new, "safe"):
        return None
    target = m.attributes()["to"]
    return m["x"] if target == kind.element.number else b.Cast(m["x"], to=target)


# ---------------------------------------------------------------- shapes


_AXIS = "i = Constant <value = int64[1] {1}> () u = Unsqueeze (x, i)"
_TO = "t = Constant <value = int64[2] {3, -1}> ()"


@_rewrite(
    "reshape-of-unsqueeze", "Reshape(Unsqueeze(x), t) = Reshape(x, t)", "Reshape(Unsqueeze(x, a), t)",
    examples=[f"{_AXIS} {_TO} y = Reshape (u, t)"],
)  # fmt: skip
@_rewrite(
    "reshape-of-squeeze", "Reshape(Squeeze(x), t) = Reshape(x, t)", "Reshape(Squeeze(x, a), t)",
    examples=[
        f"q = Constant <value = int64[3] {{6,1,2}}> () r = Reshape (x, q) n = Neg (r)"
        f" i = Constant <value = int64[1] {{1}}> () u = Squeeze (n, i) {_TO} y = Reshape (u, t)"
    ],
)  # fmt: skip
@_rewrite(
    "reshape-of-flatten", "Reshape(Flatten(x), t) = Reshape(x, t)", "Reshape(Flatten(x), t)",
    examples=[f"u = Flatten <axis = 0> (x) {_TO} y = Reshape (u, t)"],
)  # fmt: skip
@_rewrite(
    "reshape-of-any-reshape", "Reshape(Reshape(x, s), t) = Reshape(x, t)", "Reshape(Reshape(x, s), t)",
    examples=[f"i = Constant <value = int64[1] {{12}}> () u = Reshape (x, i) {_TO} y = Reshape (u, t)"],
)  # fmt: skip
@_rewrite(
    "unsqueeze-of-reshape", "Unsqueeze(Reshape(x, s), a) = Reshape(x, t)", "Unsqueeze(Reshape(x, s), a)",
    examples=[
        "s = Constant <value = int64[2] {4, 3}> () r = Reshape (x, s)"
        " i = Constant <value = int64[1] {1}> () z = Unsqueeze (r, i) n = Neg (z) y = Flatten (n)"
    ],
)  # fmt: skip
@_rewrite(
    "squeeze-of-reshape", "Squeeze(Reshape(x, s), a) = Reshape(x, t)", "Squeeze(Reshape(x, s), a)",
    examples=[
        "s = Constant <value = int64[3] {4, 1, 3}> () r = Reshape (x, s)"
        " i = Constant <value = int64[1] {1}> () y = Squeeze (r, i)"
    ],
)  # fmt: skip
@_rewrite(
    "flatten-of-reshape", "Flatten(Reshape(x, s)) = Reshape(x, t)", "Flatten(Reshape(x, s))",
    examples=["s = Constant <value = int64[3] {3, 2, 2}> () r = Reshape (x, s) y = Flatten (r)"],
)  # fmt: skip
@_rewrite(
    "flatten-of-flatten", "Flatten(Flatten(x)) = Reshape(x, t)", "Flatten(Flatten(x))",
    examples=["r = Flatten <axis = 0> (x) y = Flatten <axis = 0> (r)"],
)  # fmt: skip
@_rewrite(
    "flatten-of-unsqueeze", "Flatten(Unsqueeze(x, a)) = Reshape(x, t)", "Flatten(Unsqueeze(x, a))",
    examples=[f"{_AXIS} y = Flatten (u)"],
)  # fmt: skip
@_rewrite(
    "unsqueeze-of-unsqueeze", "Unsqueeze(Unsqueeze(x, a), b) = Reshape(x, t)", "Unsqueeze(Unsqueeze(x, a), c)",
    examples=[f"{_AXIS} z = Unsqueeze (u, i) n = Neg (z) y = Flatten (n)"],
)  # fmt: skip
@_rewrite(
    "squeeze-of-unsqueeze", "Squeeze(Unsqueeze(x, a), b) = Reshape(x, t)", "Squeeze(Unsqueeze(x, a), c)",
    examples=[f"{_AXIS} v = Squeeze (u, i) y = Relu (v)"],
)  # fmt: skip
@_rewrite(
    "unsqueeze-of-squeeze", "Unsqueeze(Squeeze(x, a), b) = Reshape(x, t)", "Unsqueeze(Squeeze(x, a), c)",
    examples=[
        "s = Constant <value = int64[3] {6, 1, 2}> () r = Reshape (x, s) n = Neg (r)"
        " i = Constant <value = int64[1] {1}> () q = Squeeze (n, i) z = Unsqueeze (q, i) m = Neg (z) y = Flatten (m)"
    ],
)  # fmt: skip
def _reshaped_twice(b: DetachedBuilder, m: Match) -> Value | None:
    before, after = m.type("x"), m.result_type()
    if before is None or after is None or not known_equal(before.size, after.size):
        return None  # the first may be an invalid call, which the run reports
    if _is_same_shape(m):
        return m["x"]
    target = _target(m)
    return None if target is None else b.Reshape(m["x"], b.initializer("shape", target))


@_rewrite(
    "reshape-of-transpose", "Reshape(Transpose(x), t) = Reshape(x, t) where only sizes of 1 move",
    "Reshape(turned = Transpose(x), t)",
    examples=[
        "s = Constant <value = int64[3] {6, 1, 2}> () r = Reshape (x, s) n = Neg (r)"
        f" u = Transpose <perm = [1, 0, 2]> (n) {_TO} y = Reshape (u, t)"
    ],
    others=[f"u = Transpose (x) {_TO} y = Reshape (u, t)"],
)  # fmt: skip
@_rewrite(
    "transpose-of-reshape", "Transpose(Reshape(x, s)) = Reshape(x, t) where only sizes of 1 move",
    "turned = Transpose(Reshape(x, s))",
    examples=[
        "s = Constant <value = int64[3] {6, 1, 2}> () r = Reshape (x, s)"
        " u = Transpose <perm = [1, 0, 2]> (r) n = Neg (u) z = Constant <value = int64[2] {6, 2}> () y = Reshape (n, z)"
    ],
    others=["s = Constant <value = int64[2] {3, 4}> () r = Reshape (x, s) y = Transpose (r)"],
)  # fmt: skip
def _moved_ones(b: DetachedBuilder, m: Match) -> Value | None:
    turned, perm = m.result_type("turned"), m.attributes("turned")["perm"]
    if turned is None or turned.shape is None:
        return None
    perm = list(range(len(turned.shape)))[::-1] if perm is None else perm
    if len(perm) != len(turned.shape):
        return None  # an invalid call, which the run reports
    order = [axis for axis, size in zip(perm, turned.shape, strict=True) if size != 1]
    return _reshaped_twice(b, m) if order == sorted(order) else None


@_rewrite(
    "one-size-of-a-shape", "Unsqueeze(Gather(Shape(x), i), 0) = Shape(x, start=i, end=i+1)",
    "Unsqueeze(gather = Gather(shape = Shape(x), $i), $a)", since=15,
    examples=[
        "i = Constant <value = int64 {1}> () a = Constant <value = int64[1] {0}> () s = Shape (x) g = Gather (s, i)"
        " u = Unsqueeze (g, a) c = Cast <to = 1> (u) y = Add (x, c)"
    ],
)  # fmt: skip
def _one_size(b: DetachedBuilder, m: Match) -> Value | None:
    shape, index, rank = m.attributes("shape"), m.constant("i"), m.rank("x")
    if (
        index.ndim
        or rank is None
        or shape["start"]
        or shape["end"] is not None
        or m.attributes("gather")["axis"]
    ):
        return None
    place = int(index) % rank if -rank <= index < rank else None
    return None if place is None else b.Shape(m["x"], start=place, end=place + 1)


@_rewrite(
    "part-of-a-shape", "Slice(Shape(x), s, e) = Shape(x, start=s, end=e)",
    "Slice(shape = Shape(x), $s, $e, $a)", since=15,
    examples=[
        "s = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] {9}> () a = Constant <value = int64[1] {0}> ()"
        " h = Shape (x) u = Slice (h, s, e, a) c = Cast <to = 1> (u) y = Add (x, c)"
    ],
)  # fmt: skip
def _part_of_shape(b: DetachedBuilder, m: Match) -> Value | None:
    shape, rank = m.attributes("shape"), m.rank("x")
    bounds = [m.constant(name).ravel().tolist() for name in ("s", "e")]
    if rank is None or shape["start"] or shape["end"] is not None or not all(len(v) == 1 for v in bounds):
        return None
    (start,), (end,) = bounds
    return b.Shape(m["x"], start=max(start, -rank), end=max(-rank, min(end, rank)))


@_rewrite(
    "slice-of-slice", "Slice(Slice(x, s, e, a), t, f, b) = Slice(x, s+t, e+f, a+b), where no axis is in both",
    "Slice(Slice(x, $s, $e, $a), $t, $f, $b)", shared=False,
    examples=[
        "s = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] {5}> () a = Constant <value = int64[1] {0}> ()"
        " p = Slice (x, s, e, a) y = Slice (p, a, s, s)"
    ],
    others=[
        "s = Constant <value = int64[1] {1}> () e = Constant <value = int64[1] {5}> () a = Constant <value = int64[1] {0}> ()"
        " p = Slice (x, s, e, a) y = Slice (p, s, e, a)"
    ],
)  # fmt: skip
def _slices(b: DetachedBuilder, m: Match) -> Value | None:
    rank = m.rank("x")
    names = ("s", "e", "a", "t", "f", "b")
    s, e, a, t, f, other = (m.constant(name) for name in names)
    if rank is None or len({x.dtype for x in (s, e, a, t, f, other)}) > 1:
        return None
    axes = [int(i) + rank * (i < 0) for i in (*a, *other)]
    if len(set(axes)) < len(axes) or s.shape != e.shape or s.shape != a.shape or t.shape != other.shape:
        return None
    both = [np.concatenate(pair) for pair in ((s, t), (e, f))]
    parts = [*both, np.asarray(axes, a.dtype)]
    names = ("starts", "ends", "axes")
    return b.Slice(m["x"], *(b.initializer(n, p) for n, p in zip(names, parts, strict=True)))


# ---------------------------------------------------------------- linear chains


_ON_X = "w = Constant <value = float[2,3] {1, -2, 3, 4, 5, -6}> ()"
_THREE = "c = Constant <value = float[3] {1, 2, -3}> ()"


@_rewrite(
    "matmul-and-bias", "MatMul(x, w) + c = Gemm(x, w, c) for matrices", "Add(MatMul(x, w), $c)",
    exact=False, shared=False, since=7,
    examples=[f"{_ON_X} {_THREE} p = MatMul (x, w) y = Add (c, p)"],
    others=[f"{_ON_X} c = Constant <value = float[6,1] {{1, 2, 3, 4, 5, 6}}> () p = MatMul (x, w) q = Add (p, c) y = Add (p, q)"],
)  # fmt: skip
def _gemm(b: DetachedBuilder, m: Match) -> Value | None:
    kind, bias = m.type("x"), m.constant("c")
    if m.rank("x") != 2 or m.rank("w") != 2 or kind is None or kind.element.kind != "float":
        return None
    columns = (m.type("w") or kind).shape
    if bias.ndim > 2 or bias.ndim == 0 or (bias.ndim == 2 and bias.shape[0] != 1):
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
                example = f"{before} {_BIAS if bias else ''} {constants or shaped} {inner}"
                _rewrite(
                    name, f"{symbol} of {op} = {op} of other weights", call.format(linear),
                    exact=False, shared=False,
                    examples=[f"{example} y = {call.format('l').replace('$', '').replace('(', ' (')}"],
                    others=[f"{example} n = {call.format('l').replace('$', '').replace('(', ' (')} y = Add (l, n)"],
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
        shift = shift + scale * bias * attributes.pop("beta", 1.0)
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
        "a = Constant <value = float[2] {3, 0.5}> () c = Constant <value = float {5}> () p = Mul (x, a) y = Mul (p, c)"
    ],
)  # fmt: skip
@_rewrite(
    "shifted-twice", "x + a + b = x + (a + b)", "Add(Add(x, $a), $c)", exact=False, shared=False,
    examples=[
        "a = Constant <value = float[2] {3, 0.5}> () c = Constant <value = float {5}> () p = Add (x, a) y = Add (p, c)"
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
    others=[f"{_ON_X} {_THREE} p = MatMul (x, w) q = Mul (c, p) y = Add (p, q)"],
)  # fmt: skip
def _scaled_product(b: DetachedBuilder, m: Match) -> Value | None:
    weights, factor, rank = m.constant("w"), m.constant("c"), m.rank("x")
    if weights.dtype not in _FLOATS or factor.dtype != weights.dtype or weights.ndim != 2 or rank is None:
        return None
    if factor.ndim > 1 or rank < 2 or factor.size not in {1, weights.shape[1]}:
        return None
    scaled = weights.astype(np.float64) * factor
    return b.MatMul(m["x"], b.initializer("weights", scaled.astype(weights.dtype)))


# ---------------------------------------------------------------- operators that mean a pattern


_LAST = "i = Constant <value = int64[1] {-1}> ()"
_NORMAL = "Div(d = Sub(x, mean = {mean}), Sqrt(Add(square = {square}, $e)))"
_NORMAL_EXAMPLE = (
    "k = Constant <value = float {{2}}> () e = Constant <value = float {{0.00001}}> ()"
    " w = Constant <value = float[2] {{3, 0.5}}> () c = Constant <value = float[2] {{1, 2}}> ()"
    " n = {mean} d = Sub (x, n) q = {square} s = {other} t = Add (s, e) r = Sqrt (t) z = Div (d, r)"
    " l = Mul (z, w) y = Add (l, c)"
)


def _layer_normalization() -> Any:
    def add(build: Any) -> Any:
        for which, axes in (("axes", ""), ("axes-operand", ", $i")):
            for power, square in (
                ("pow", "Pow(Sub(x, Mean(x)), $two)"),
                ("mul", "Mul(v = Sub(x, Mean(x)), v)"),
            ):
                if power == "mul":
                    continue
                mean = f"ReduceMean(x{axes})"
                squared = f"ReduceMean({square.replace('Mean(x)', mean)}{axes})"
                pattern = f"Add(Mul({_NORMAL.format(mean=mean, square=squared)}, $w), $c)"
                constant = _LAST if axes else ""
                attribute, more = ("", ", i") if axes else ("<axes = [-1]> ", "")
                example = constant + _NORMAL_EXAMPLE.format(
                    mean=f"ReduceMean {attribute}(x{more})",
                    square="Pow (d, k)",
                    other=f"ReduceMean {attribute}(q{more})",
                )
                _rewrite(
                    f"layer-normalization-by-{which}", "(x - mean) / sqrt(variance + e) * w + c = LayerNormalization(x, w, c)",
                    pattern, exact=False, since=18 if axes else 17, until=None if axes else 18,
                    examples=[example],
                )(build)  # fmt: skip
        return build

    return add


@_layer_normalization()
def _normalized_layer(b: DetachedBuilder, m: Match) -> Value | None:
    kind, scale, bias = m.type("x"), m.constant("w"), m.constant("c")
    if kind is None or kind.element is not FLOAT or kind.rank is None or m.constant("e").size != 1:
        return None
    if scale.shape != bias.shape or scale.ndim != 1 or (m.constant("two") != 2).any():
        return None
    for name in ("mean", "square"):
        attributes = m.attributes(name)
        axes = m.constant("i").tolist() if m.has("i") else attributes.get("axes")
        if axes is None or [a % kind.rank for a in axes] != [kind.rank - 1] or not attributes["keepdims"]:
            return None
    width = (kind.shape or ())[-1]
    if width != scale.shape[0]:
        return None
    return b.LayerNormalization(m["x"], m["w"], m["c"], axis=-1, epsilon=float(m.constant("e").reshape(())))


_HALVES = (
    ("Mul(Mul(x, Add(Erf(scaled = Div(x, $r)), $one)), $half)", "q = Mul (x, a) y = Mul (q, h)"),
    ("Mul(x, Mul(Add(Erf(scaled = Div(x, $r)), $one), $half))", "q = Mul (a, h) y = Mul (x, q)"),
    ("Mul(Mul(x, $half), Add(Erf(scaled = Div(x, $r)), $one))", "q = Mul (x, h) y = Mul (q, a)"),
)
_ERF = (
    "r = Constant <value = float {1.4142135}> () o = Constant <value = float {1}> ()"
    " h = Constant <value = float {0.5}> () d = Div (x, r) f = Erf (d) a = Add (f, o)"
)


def _gelu() -> Any:
    def add(build: Any) -> Any:
        for index, (pattern, end) in enumerate(_HALVES):
            _rewrite(
                f"gelu-{index}", "x * (1 + erf(x / sqrt 2)) / 2 = Gelu(x)", pattern,
                exact=False, since=20, examples=[f"{_ERF} {end}"],
            )(build)  # fmt: skip
            _rewrite(
                f"gelu-by-product-{index}", "x * (1 + erf(x * sqrt 0.5)) / 2 = Gelu(x)",
                pattern.replace("scaled = Div", "Mul"), exact=False, since=20,
                examples=[f"{_ERF.replace('Div', 'Mul').replace('1.4142135', '0.70710677')} {end}"],
            )(build)  # fmt: skip
        return build

    return add


@_gelu()
def _gelu_of(b: DetachedBuilder, m: Match) -> Value | None:
    factor, one, half = (m.constant(name) for name in ("r", "one", "half"))
    expected = math.sqrt(2) if "scaled" in m.nodes else math.sqrt(0.5)
    if not factor.size == one.size == half.size == 1 or max(factor.ndim, one.ndim, half.ndim) > (
        m.rank("x") or 0
    ):
        return None
    if not math.isclose(float(factor.reshape(())), expected, rel_tol=1e-5) or one != 1 or half != 0.5:
        return None
    return b.Gelu(m["x"])


@_rewrite(
    "hard-swish", "x * HardSigmoid(x) = HardSwish(x)", "Mul(x, inner = HardSigmoid(x))", exact=False, since=14,
    examples=["s = HardSigmoid <alpha = 0.16666667, beta = 0.5> (x) y = Mul (x, s)"],
    others=["s = HardSigmoid (x) y = Mul (x, s)"],
)  # fmt: skip
def _hard_swish(b: DetachedBuilder, m: Match) -> Value | None:
    attributes = m.attributes("inner")
    if not math.isclose(attributes["alpha"], 1 / 6, rel_tol=1e-6) or attributes["beta"] != 0.5:
        return None
    return b.HardSwish(m["x"])


@_rewrite(
    "mish", "x * tanh(Softplus(x)) = Mish(x)", "Mul(x, Tanh(Softplus(x)))", exact=False, since=18,
    examples=["s = Softplus (x) t = Tanh (s) y = Mul (x, t)"],
)  # fmt: skip
def _mish(b: DetachedBuilder, m: Match) -> Value | None:
    return b.Mish(m["x"])


@_rewrite(
    "swish", "x * Sigmoid(x) = Swish(x)", "Mul(x, Sigmoid(x))", exact=False, since=24,
    examples=["s = Sigmoid (x) y = Mul (x, s)"],
)  # fmt: skip
def _swish(b: DetachedBuilder, m: Match) -> Value | None:
    return b.Swish(m["x"])


# ---------------------------------------------------------------- shapes and constants of a match


def _is_same_shape(m: Match) -> bool:
    """Return whether the result has the shape of `x`."""
    before, after = m.type("x"), m.result_type()
    old, new = (before and before.shape), (after and after.shape)
    return old is not None and new is not None and len(old) == len(new) and all(map(known_equal, old, new))


def _target(m: Match) -> Array | None:
    """Return the operand of a Reshape of `x` to the shape of the result; None where it is not known enough."""
    before, after = m.type("x"), m.result_type()
    return None if before is None or after is None else reshape_target(before.shape, after.shape)


OPTIMIZATIONS: Sequence[Rewrite] = tuple(_TABLE)
