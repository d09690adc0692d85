"""The scalar operations of kernels by name, for operands of one type in any number of lanes.

No operation calls a function: the object of a kernel has no undefined symbols. Functions of floats are within
four units in the last place of the exact result, mostly within two, of float and of double, and agree with numpy
on NaN, infinity, signed zeros and subnormal numbers. Registers do not know the sign of integers: a name
with `_u` is for unsigned ones where that makes a difference. No operation traps or is undefined for any operand.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.compilation.kernels import _exponentials, _logarithms, _powers, _remainders, _trigonometry
from sabir.compilation.kernels._lanes import Lanes, fma, where

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.kernels._emitter import Emitter, Register


def _absolute(x: Lanes) -> Lanes:
    if x.kind.is_float:
        return abs(x)
    return where(x < 0, -x, x)  # of the least integer itself, as in numpy


def _sign(x: Lanes) -> Lanes:
    """Return -1, 0 or 1; NaN of NaN."""
    positive = where(x > 0, x.like(1), x.like(0))
    return where(x < 0, -1, where(x.is_nan, x, positive) if x.kind.is_float else positive)


def _least(a: Lanes, b: Lanes) -> Lanes:
    y = where(b < a, b, a)  # `a` where one is NaN
    return where(b.is_nan, b, y) if a.kind.is_float else y


def _greatest(a: Lanes, b: Lanes) -> Lanes:
    y = where(b > a, b, a)
    return where(b.is_nan, b, y) if a.kind.is_float else y


def _fused(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return fma(a, b, c) if a.kind.is_float else a * b + c


def _ordered(predicate: str) -> Callable[[Lanes, Lanes], Lanes]:
    """Return a comparison that is false for NaN; truth values are ordered as 0 and 1."""

    def compare(a: Lanes, b: Lanes) -> Lanes:
        if a.kind.is_float:
            return a.compare(f"fcmp o{predicate}", b)
        return a.compare(f"icmp {'u' if a.kind.bits == 1 else 's'}{predicate}", b)

    return compare


def _unsigned(predicate: str) -> Callable[[Lanes, Lanes], Lanes]:
    return lambda a, b: a.compare(f"icmp u{predicate}", b)


def _is_infinite(*limits: float) -> Callable[[Lanes], Lanes]:
    def test(x: Lanes) -> Lanes:
        return abs(x).equals(math.inf) if len(limits) > 1 else x.equals(limits[0])

    return test


def _shift(op: str) -> Callable[[Lanes, Lanes], Lanes]:
    """Return a shift by any count: one beyond the width, or below 0, moves all bits out."""

    def shift(x: Lanes, count: Lanes) -> Lanes:
        last = x.kind.bits - 1
        beyond = count.compare("icmp ugt", last)
        count = where(beyond, last, count)
        if op == "ashr":
            return x >> count  # only copies of the sign are left
        return where(beyond, 0, x << count if op == "shl" else x.unsigned_shift(count))

    return shift


def _rounding(name: str) -> Callable[[Lanes], Lanes]:
    return lambda x: x.intrinsic(name) if x.kind.is_float else x


_FORMULAS: dict[str, Callable[..., Lanes]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _remainders.divide,
    "div_u": lambda a, b: _remainders.divide(a, b, signed=False),
    "mod": _remainders.mod,
    "mod_u": lambda a, b: _remainders.integer_remainder(a, b, signed=False),
    "fmod": _remainders.fmod,
    "fma": _fused,
    "neg": lambda x: -x,
    "abs": _absolute,
    "sign": _sign,
    "sign_u": lambda x: where(x.equals(0), x, 1),
    "min": _least,
    "min_u": lambda a, b: where(a.compare("icmp ult", b), a, b),
    "max": _greatest,
    "max_u": lambda a, b: where(a.compare("icmp ugt", b), a, b),
    "eq": lambda a, b: a.equals(b),
    "ne": lambda a, b: a.differs(b),
    "lt": _ordered("lt"),
    "le": _ordered("le"),
    "gt": _ordered("gt"),
    "ge": _ordered("ge"),
    "lt_u": _unsigned("lt"),
    "le_u": _unsigned("le"),
    "gt_u": _unsigned("gt"),
    "ge_u": _unsigned("ge"),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: ~a,
    "and_": lambda a, b: a & b,
    "or_": lambda a, b: a | b,
    "xor_": lambda a, b: a ^ b,
    "not_": lambda a: ~a,
    "shl": _shift("shl"),
    "shr": _shift("ashr"),
    "shr_u": _shift("lshr"),
    "where": where,
    "isnan": lambda x: x.is_nan,
    "isinf": _is_infinite(math.inf, -math.inf),
    "isinf_pos": _is_infinite(math.inf),
    "isinf_neg": _is_infinite(-math.inf),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "round": _rounding("roundeven"),
    "sqrt": lambda x: x.sqrt,
    "rsqrt": lambda x: 1.0 / x.sqrt,
    "reciprocal": lambda x: 1.0 / x,
    "exp": _exponentials.exp,
    "exp2": _exponentials.exp2,
    "expm1": _exponentials.expm1,
    "tanh": _exponentials.tanh,
    "sigmoid": _exponentials.sigmoid,
    "sinh": _exponentials.sinh,
    "cosh": _exponentials.cosh,
    "erf": _exponentials.erf,
    "log": _logarithms.log,
    "log2": _logarithms.log2,
    "log1p": _logarithms.log1p,
    "softplus": _logarithms.softplus,
    "asinh": _logarithms.asinh,
    "acosh": _logarithms.acosh,
    "atanh": _logarithms.atanh,
    "sin": _trigonometry.sin,
    "cos": _trigonometry.cos,
    "tan": _trigonometry.tan,
    "asin": _trigonometry.asin,
    "acos": _trigonometry.acos,
    "atan": _trigonometry.atan,
    "pow": _powers.power,
}


def _emission(formula: Callable[..., Lanes]) -> Callable[[Emitter, tuple[Register, ...]], Register]:
    return lambda e, operands: formula(*(Lanes(e, x) for x in operands)).register


FUNCTIONS: dict[str, Callable[[Emitter, tuple[Register, ...]], Register]] = {
    name: _emission(formula) for name, formula in _FORMULAS.items()
}
