"""The table of rewrites. Each is proved by its examples: tests run both sides, special values included."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import known_equal
from sabir.simplification._declaring import declaring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array, Value
    from sabir.patterns import Match, RewriteRule
    from sabir.rewriting import DetachedBuilder

_TABLE: list[RewriteRule] = []
_rewrite = declaring(_TABLE)
_MOST_POWER = 100
_ONE = "c = Constant <value_float = 1.0> ()"


# ---------------------------------------------------------------- calls that change nothing


@_rewrite(
    "identity", "Identity(x) = x", "Identity(x)",
    examples=["a = Identity (x) y = Relu (a)"],
    near_misses=["y = Identity (x)"],
)  # fmt: skip
def _identity(_b: DetachedBuilder, m: Match) -> Value | None:
    # an output of a graph that is also another value needs its Identity
    (y,) = m.root.outputs
    return None if y is None or y.is_output else m["x"]


@_rewrite(
    "cast-to-own-type", "Cast(x, to=type of x) = x", "Cast(x)",
    examples=["a = Cast <to = 1> (x) y = Relu (a)"],
    near_misses=["a = Cast <to = 11> (x) b = Relu (a) y = Cast <to = 1> (b)"],
)  # fmt: skip
def _cast(_b: DetachedBuilder, m: Match) -> Value | None:
    kind = m.type("x")
    return m["x"] if kind is not None and kind.element.number == m.attributes()["to"] else None


@_rewrite(
    "multiplied-by-one", "x * 1 = x", f"Mul(x, {_ONE})",
    examples=["c = Constant <value = float[1] {1}> () a = Mul (c, x) y = Neg (a)"],
    near_misses=[
        "c = Constant <value = float[1,1,1] {1}> () a = Mul (x, c) y = Neg (a)",
        "c = Constant <value = float[1] {-1}> () a = Mul (x, c) y = Neg (a)",
    ],
)  # fmt: skip
@_rewrite(
    "divided-by-one", "x / 1 = x", f"Div(x, {_ONE})",
    examples=["c = Constant <value = float {1}> () a = Div (x, c) y = Neg (a)"],
    near_misses=["c = Constant <value = float {3}> () a = Div (x, c) y = Neg (a)"],
)  # fmt: skip
@_rewrite(
    "power-of-one", "x ** 1 = x", f"Pow(x, {_ONE})",
    examples=["c = Constant <value = float {1}> () a = Pow (x, c) y = Neg (a)"],
    near_misses=["c = Constant <value = float {2}> () a = Pow (x, c) y = Neg (a)"],
)  # fmt: skip
def _by_one(_b: DetachedBuilder, m: Match) -> Value | None:
    return m["x"] if _is_scalar(m, 1) else None


@_rewrite(
    "zero-subtracted", "x - 0 = x", "Sub(x, $c)",
    examples=["c = Constant <value = float {0}> () a = Sub (x, c) y = Neg (a)"],
    near_misses=["c = Constant <value = float {-0.0}> () a = Sub (x, c) y = Neg (a)"],  # -0 - -0 is 0
)  # fmt: skip
def _minus_zero(_b: DetachedBuilder, m: Match) -> Value | None:
    return m["x"] if _is_scalar(m, 0) and not np.signbit(m.constant("c")).any() else None


@_rewrite(
    "no-pads", "Pad(x, 0) = x", "Pad(x, $pads)",
    examples=["p = Constant <value = int64[4] {0,0,0,0}> () a = Pad (x, p) y = Relu (a)"],
    near_misses=[
        "p = Constant <value = int64[4] {0,1,0,0}> () a = Pad (x, p) y = Relu (a)",
        "p = Constant <value = int64[2] {0,0}> () a = Pad (x, p) y = Relu (a)",  # invalid
    ],
)  # fmt: skip
def _no_pads(_b: DetachedBuilder, m: Match) -> Value | None:
    # other numbers of pads are an invalid call, which the run reports
    rank, pads = m.rank("x"), m.constant("pads")
    return None if rank is None or pads.shape != (2 * rank,) or pads.any() else m["x"]


@_rewrite(
    "concat-of-one", "Concat(x) = x", "Concat(x)",
    examples=["a = Concat <axis = 0> (x) y = Relu (a)"],
    near_misses=["a = Concat <axis = 2> (x) y = Relu (a)"],  # invalid
)  # fmt: skip
def _one_part(_b: DetachedBuilder, m: Match) -> Value | None:
    rank, axis = m.rank("x"), m.attributes()["axis"]
    axis = 1 if axis is None else axis
    return m["x"] if rank is not None and -rank <= axis < rank else None


@_rewrite("sum-of-one", "Sum(x) = x", "Sum(x)", examples=["a = Sum (x) y = Relu (a)"])
@_rewrite("max-of-one", "Max(x) = x", "Max(x)", examples=["a = Max (x) y = Relu (a)"])
@_rewrite("min-of-one", "Min(x) = x", "Min(x)", examples=["a = Min (x) y = Relu (a)"])
def _only_operand(_b: DetachedBuilder, m: Match) -> Value | None:
    return m["x"]


# ---------------------------------------------------------------- calls that undo or repeat the one before


_CUBE = "s = Constant <value = int64[3] {3, 2, 2}> () r = Reshape (x, s)"
_FLAT = "s = Constant <value = int64[1] {12}> () a = Reshape (x, s)"
_WIDE = "s = Constant <value = int64[2] {4, 3}> () a = Reshape (x, s)"
_TALL = "s = Constant <value = int64[3] {6, 1, 2}> () a = Reshape (x, s)"


@_rewrite(
    "transpose-of-transpose", "Transpose(Transpose(x, p), q) = Transpose(x, p[q])",
    "Transpose(inner = Transpose(x))",
    examples=[
        "a = Transpose <perm = [1, 0]> (x) y = Transpose <perm = [1, 0]> (a)",
        "a = Transpose (x) y = Transpose (a)",
        f"{_CUBE} a = Transpose <perm = [1, 2, 0]> (r) b = Transpose <perm = [2, 1, 0]> (a) y = Flatten (b)",
    ],
)  # fmt: skip
def _transposes(b: DetachedBuilder, m: Match) -> Value | None:
    rank = m.rank("x")
    if rank is None:
        return None
    backwards = list(range(rank))[::-1]
    first = m.attributes("inner")["perm"] or backwards
    second = m.attributes()["perm"] or backwards
    if not sorted(first) == sorted(second) == backwards[::-1]:
        return None  # an invalid call: the run reports it
    perm = [first[axis] for axis in second]
    return m["x"] if perm == sorted(perm) else b.Transpose(m["x"], perm=perm)


@_rewrite(
    "reshape-of-reshape",
    "Reshape(Reshape(x, s), t) = Reshape(x, t), where a 0 in t copies the same size of x",
    "Reshape(inner = Reshape(x, s), $t)",
    examples=[
        f"{_FLAT} t = Constant <value = int64[2] {{6, -1}}> () y = Reshape (a, t)",
        f"{_TALL} t = Constant <value = int64[2] {{0, -1}}> () y = Reshape (a, t)",
    ],
    near_misses=[
        f"{_WIDE} t = Constant <value = int64[2] {{0, -1}}> () y = Reshape (a, t)",
    ],
)  # fmt: skip
def _reshapes(b: DetachedBuilder, m: Match) -> Value | None:
    before, between = m.type("x"), m.result_type("inner")
    if before is None or between is None or not known_equal(before.size, between.size):
        return None  # the first may be an invalid call, which the run reports
    copied = [i for i, size in enumerate(m.constant("t").ravel()) if size == 0]
    if copied and m.attributes().get("allowzero"):
        return None
    old, new = before.shape or (), between.shape or ()
    if all(i < min(len(old), len(new)) and known_equal(old[i], new[i]) for i in copied):
        return b.Reshape(m["x"], m["t"])
    return None


@_rewrite(
    "reshape-to-own-shape", "Reshape(x, shape of x) = x", "Reshape(x, t)",
    examples=["t = Constant <value = int64[2] {0, -1}> () a = Reshape (x, t) y = Relu (a)"],
    near_misses=["t = Constant <value = int64[2] {2, -1}> () a = Reshape (x, t) y = Relu (a)"],
)  # fmt: skip
def _kept_shape(_b: DetachedBuilder, m: Match) -> Value | None:
    before, after = m.type("x"), m.result_type()
    old, new = (before.shape, after.shape) if before is not None and after is not None else (None, None)
    if old is None or new is None or len(old) != len(new):
        return None
    return m["x"] if all(map(known_equal, old, new)) else None


@_rewrite(
    "negated-twice", "-(-x) = x", "Neg(Neg(x))",
    examples=["a = Neg (x) b = Neg (a) y = Sqrt (b)"],
)  # fmt: skip
@_rewrite(
    "not-not", "not not x = x", "Not(Not(x))",
    examples=["c = Less (x, x) a = Not (c) b = Not (a) y = Where (b, x, x)"],
)  # fmt: skip
def _undone(_b: DetachedBuilder, m: Match) -> Value | None:
    return m["x"]


@_rewrite(
    "relu-of-relu", "Relu(Relu(x)) = Relu(x)", "Relu(inner = Relu(x))",
    examples=["a = Relu (x) b = Relu (a) y = Neg (b)"],
)  # fmt: skip
@_rewrite(
    "abs-of-abs", "Abs(Abs(x)) = Abs(x)", "Abs(inner = Abs(x))",
    examples=["a = Abs (x) b = Abs (a) y = Neg (b)"],
)  # fmt: skip
@_rewrite(
    "floor-of-floor", "Floor(Floor(x)) = Floor(x)", "Floor(inner = Floor(x))",
    examples=["a = Floor (x) b = Floor (a) y = Neg (b)"],
)  # fmt: skip
@_rewrite(
    "ceil-of-ceil", "Ceil(Ceil(x)) = Ceil(x)", "Ceil(inner = Ceil(x))",
    examples=["a = Ceil (x) b = Ceil (a) y = Neg (b)"],
)  # fmt: skip
@_rewrite(
    "round-of-round", "Round(Round(x)) = Round(x)", "Round(inner = Round(x))",
    examples=["a = Round (x) b = Round (a) y = Neg (b)"],
)  # fmt: skip
def _repeated(_b: DetachedBuilder, m: Match) -> Value | None:
    return m.nodes["inner"].outputs[0]


# ---------------------------------------------------------------- constants


@_rewrite(
    "divided-by-a-power-of-two", "x / 2**n = x * 2**-n", "Div(x, $c)",
    examples=["c = Constant <value = float {8}> () y = Div (x, c)"],
    near_misses=[
        "c = Constant <value = float {3}> () y = Div (x, c)",
        "c = Constant <value = float {0}> () y = Div (x, c)",
    ],
)  # fmt: skip
def _by_power(b: DetachedBuilder, m: Match) -> Value | None:
    constant = m.constant("c")
    if constant.dtype not in {np.dtype(np.float32), np.dtype(np.float64)} or constant.size != 1:
        return None
    if m.root.attributes:  # `broadcast` and `axis`, before opset 7
        return None
    fraction, power = math.frexp(float(constant.reshape(())))
    # near the ends of the range one side would round and the other not
    if abs(fraction) * 2 != 1 or abs(power) > _MOST_POWER:
        return None
    return b.Mul(m["x"], b.initializer("reciprocal", np.asarray(1 / constant, constant.dtype)))


_SCALE = "s = Constant <value = float[2] {3, 0.5}> ()"
_NORMALIZED = (
    f"{_SCALE} t = Constant <value = float[2] {{-1, 2}}> () m = Constant <value = float[2] {{0.5, 4}}> ()"
    " v = Constant <value = float[2] {2, 9}> ()"
)
_IMAGE = "i = Constant <value = int64[4] {1, 3, 2, 2}> () p = Reshape (x, i)"
_FILTERS = (
    "w = Constant <value = float[2,3,1,1] {1, -2, 3, 4, 5, -6}> () c = Constant <value = float[2] {1, 2}> ()"
)
_CONVOLVED = f"{_IMAGE} {_FILTERS} {_NORMALIZED} a = Conv (p, w)"


@_rewrite(
    "normalized-convolution", "BatchNormalization(Conv(x, w)) = Conv(x, w * scale) + shift",
    "BatchNormalization(conv = Conv(x, $w), $scale, $shift, $mean, $variance)",
    exact=False, shared=False,
    examples=[f"{_CONVOLVED} y = BatchNormalization (a, s, t, m, v)"],
    near_misses=[
        f"{_CONVOLVED} n = BatchNormalization (a, s, t, m, v) y = Add (n, a)",
    ],
)  # fmt: skip
@_rewrite(
    "normalized-convolution-with-bias", "BatchNormalization(Conv(x, w, b)) = Conv(x, w * scale, b') ",
    "BatchNormalization(conv = Conv(x, $w, $bias), $scale, $shift, $mean, $variance)",
    exact=False, shared=False,
    examples=[f"{_IMAGE} {_FILTERS} {_NORMALIZED} a = Conv (p, w, c) y = BatchNormalization (a, s, t, m, v)"],
)  # fmt: skip
def _normalized_convolution(b: DetachedBuilder, m: Match) -> Value | None:
    found = normalization(m, ("scale", "shift", "mean", "variance"))
    weights = m.constant("w")
    if found is None or weights.dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
        return None
    scale, shift = found
    if not scale.shape == shift.shape == weights.shape[:1]:
        return None
    if m.has("bias"):
        shift += scale * m.constant("bias").astype(np.float64)
    scaled = weights.astype(np.float64) * scale.reshape(-1, *[1] * (weights.ndim - 1))
    attributes = {k: v for k, v in m.attributes("conv").items() if v is not None}
    return b.Conv(
        m["x"],
        b.initializer("weights", scaled.astype(weights.dtype)),
        b.initializer("bias", shift.astype(weights.dtype)),
        **attributes,
    )


def normalization(m: Match, names: Sequence[str]) -> tuple[Array, Array] | None:
    """Return the scale and the shift of a BatchNormalization in inference, in double precision.

    `names` are those of the constants: scale, shift, mean and variance.
    """
    attributes = m.attributes()
    if attributes.get("training_mode", 0) or not attributes.get("is_test", 1):
        return None
    scale, shift, mean, variance = (m.constant(name).astype(np.float64) for name in names)
    if not scale.shape == shift.shape == mean.shape == variance.shape:
        return None  # an invalid call, which the run reports
    factor = scale / np.sqrt(variance + attributes["epsilon"])
    return factor, shift - mean * factor


def _is_scalar(m: Match, number: int) -> bool:
    """Return whether the constant `$c` is one number, this one, and leaves the shape of `x` alone."""
    constant, rank = m.constant("c"), m.rank("x")
    if constant.size != 1 or constant.dtype.kind not in "fiu":
        return False
    if rank is None or constant.ndim > rank:
        return False
    return bool((constant == number).all())


REWRITES: Sequence[RewriteRule] = tuple(_TABLE)
