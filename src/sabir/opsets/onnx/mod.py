"""Mod: the remainder of a division, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError, spend_work
from sabir.elements import INT32
from sabir.ir import Builder, Dim, TensorType, Value, is_nonnegative
from sabir.ir import mod as floored
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.numbers import arithmetic
from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS, widened
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    one_of,
)

mod = Operator(
    "Mod", summary="`A - floor(A / B) * B`, with `fmod` the quotient truncated; integers modulo 0 are 0."
)

T = Constraint("T", NUMBERS)

v10 = mod.first(
    10,
    inputs=[
        Input("A", T, "The dividend.", differentiable=True),
        Input("B", T, "The divisor.", differentiable=False),
    ],
    outputs=[Output("C", T, "The shape that both inputs broadcast to.", differentiable=True)],
    attributes=[
        Attribute(
            "fmod",
            "int",
            "The remainder has the sign of the divisor (0) or of the dividend (1).",
            default=0,
            values=one_of(0, 1),
        )
    ],
)
v13 = v10.widen(13, T=BFLOAT16)
v28 = v13.restate(28, "Admits floats with `fmod` 0; before, only integers.")

_FEW = 1 << 14  # elements, whose remainders take a negligible time
NEEDS_FMOD = "floats have no floored remainder before Mod:28; `fmod` must be 1"


@v10.infer
def infer_floored_integers(a: TensorType, b: TensorType, /, *, fmod: int) -> TensorType:
    if not fmod and (a.element.is_float or b.element.is_float):
        raise InferenceError(NEEDS_FMOD)
    return infer(a, b, fmod=fmod)


@v28.infer
def infer(a: TensorType, b: TensorType, /, *, fmod: int) -> TensorType:
    def remainder(x: Dim, y: Dim) -> Dim:
        return floored(x, y) if not fmod or (is_nonnegative(x) and is_nonnegative(y)) else None

    return arithmetic.limited(remainder, a, b)


@v10.evaluate
def evaluate_floored_integers(a: Array, b: Array, /, *, fmod: int) -> Array:
    if not fmod and a.dtype.kind not in "iu":
        raise ValueError(NEEDS_FMOD)
    return evaluate(a, b, fmod=fmod)


@v28.evaluate
def evaluate(a: Array, b: Array, /, *, fmod: int) -> Array:
    rule, kind = np.fmod if fmod else np.mod, a.dtype
    a, b = widened(a), widened(b)
    if kind.kind not in "iu":
        _spend(a, b)
    return rule(a, b).astype(kind, copy=False)


@v28.lower
def lower(a: Expression, b: Expression, /, *, fmod: int) -> Expression:
    return loops.apply("fmod" if fmod else "mod", a, b)


@v10.lower
def lower_floored_integers(a: Expression, b: Expression, /, *, fmod: int) -> Expression:
    if not fmod and a.is_float:
        raise NotLowered(NEEDS_FMOD)
    return lower(a, b, fmod=fmod)


def _spend(a: Array, b: Array) -> None:
    """Count remainders of floats as work: their time grows with the bits of the quotient, up to 2000."""
    count = max(a.size, b.size) if a.size and b.size else 0
    if count > _FEW:
        bits = int(np.frexp(a)[1].max()) - int(np.frexp(b)[1].min())
        spend_work(count * max(0, bits))


@v28.downgrade
def floored_from_fmod(b: Builder, x: Value, y: Value, /, *, fmod: int) -> Value:
    """Emit the remainder with the dividend's sign, plus the divisor where the signs differ."""
    element = x.type.element if isinstance(x.type, TensorType) else None
    if element is None or not element.number:
        raise Unconvertible("the element type is unknown, and Mod:13 takes `fmod` 0 for integers only")
    if fmod or element.is_integer:
        return b.Mod(x, y, fmod=fmod)
    zero = b.initializer("zero", np.array(0, element.dtype))
    rest = b.Mod(x, y, fmod=1)
    off = b.Or(b.And(b.Less(rest, zero), b.Less(zero, y)), b.And(b.Less(zero, rest), b.Less(y, zero)))
    return b.Where(off, b.Add(rest, y), rest)


@v10.downgrade
def from_quotient(b: Builder, x: Value, y: Value, /, *, fmod: int) -> Value:
    """Subtract the truncated quotient's multiple; a remainder on the other side of 0 moves by the divisor."""
    kind = element_of(x)
    if not kind.is_integer:
        raise Unconvertible("no older operator computes the remainder of floats, and a quotient is rounded")
    if f"tensor({kind})" not in LARGE_INTEGERS:  # a wider type holds all quotients
        x, y = (b.Cast(v, to=INT32.number) for v in (x, y))
    numbers = Numbers.like(b, x)
    number = numbers.element.number
    divisor = b.Add(y, b.Cast(_is_zero(b, y, numbers), to=number))  # x modulo 0 is 0, as modulo 1
    rest = b.Sub(x, b.Mul(b.Div(x, divisor), divisor))
    if not fmod and kind.is_signed:
        below = b.Xor(numbers.op("Less", rest, 0), numbers.op("Less", divisor, 0))
        moves = b.And(below, b.Not(_is_zero(b, rest, numbers)))
        rest = b.Add(rest, b.Mul(b.Cast(moves, to=number), divisor))
    return rest if numbers.element is kind else b.Cast(rest, to=kind.number)


def _is_zero(b: Builder, x: Value, numbers: Numbers) -> Value:
    if numbers.element.is_signed:
        return numbers.op("Equal", x, 0)
    return numbers.op("Less", x, 1)  # Equal:7 does not admit unsigned integers


@v13.gradient
def gradient(g: Gradient, a: Value, b: Value, /) -> tuple[Value, Value]:
    """The quotient, which rounding keeps whole, is a constant."""
    quotient = g.Round(g.Div(g.Sub(a, g.y()), b))
    return g.fit(g.dy, a), g.fit(g.Neg(g.Mul(g.dy, quotient)), b)


@mod.examples
def integers() -> Iterator[Example]:
    a, b = np.array([-7, 7, -7, 7, 5, -6]), np.array([3, 3, -3, -3, 0, 3])
    floor, truncated = np.array([2, 1, -1, -2, 0, 0]), np.array([-1, 1, -1, 1, 0, 0])  # by hand
    for opset in (10, 13, 28):
        for kind in (np.int8, np.int32, np.int64):
            yield Example(opset, a.astype(kind), b.astype(kind), expect=[floor.astype(kind)])
            yield Example(opset, a.astype(kind), b.astype(kind), fmod=1, expect=[truncated.astype(kind)])
        rows = np.array([[5], [2**64 - 1]], np.uint64)
        yield Example(opset, rows, [4, 0], expect=[[[1, 0], [3, 0]]])
        yield Example(opset, -(2**63), -1, expect=[0])
        yield Example(opset, np.zeros((0, 2), np.int16), 2, expect=[np.zeros((0, 2), np.int16)])


@mod.examples
def floats() -> Iterator[Example]:
    inf, nan = np.inf, np.nan
    a = np.array([-7.5, 7.5, -7.5, 7.5, inf, 1, nan, 2, -2], np.float32)
    b = np.array([2, 2, -2, -2, 2, 0, 1, inf, inf], np.float32)
    truncated = np.array([-1.5, 1.5, -1.5, 1.5, nan, nan, nan, 2, -2], np.float32)
    floor = np.array([0.5, 1.5, -1.5, -0.5, nan, nan, nan, 2, inf], np.float32)
    for opset in (10, 13, 28):
        for kind in (np.float16, np.float32, np.float64):
            yield Example(opset, a.astype(kind), b.astype(kind), fmod=1, expect=[truncated.astype(kind)])
    for kind in (np.float16, np.float32, np.float64, ml_dtypes.bfloat16):
        yield Example(28, a.astype(kind), b.astype(kind), expect=[floor.astype(kind)])
        yield Example(28, a.astype(kind), b.astype(kind), fmod=1, expect=[truncated.astype(kind)])
    yield Example(13, [5, -5], ml_dtypes.bfloat16(3), fmod=1, expect=[[2, -2]])
