"""The scalar operations of kernels by name, for operands of one type in any number of lanes.

On a processor with fused multiply-add no operation calls a function: the object of a kernel has no undefined
symbols. No operation traps, and each is defined for all operands. Functions of floats are within four units
in the last place of the exact result, most within two, for float and double, and agree with numpy on NaN,
infinity, signed zeros and subnormal numbers. The bits of a result do not depend on the processor or the
number of lanes. Registers do not have signs: where it matters, a name with `_u` is for unsigned integers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit import elementary as _elementary
from sabir.compilation.backends.cpu.emit import exponentials as _exponentials
from sabir.compilation.backends.cpu.emit import logarithms as _logarithms
from sabir.compilation.backends.cpu.emit import powers as _powers
from sabir.compilation.backends.cpu.emit import trigonometry as _trigonometry
from sabir.compilation.backends.cpu.emit.lanes import Lanes, where
from sabir.compilation.backends.cpu.emit.remainders import divide, fmod, mod, remainder
from sabir.loops import WordArithmetic, threefry

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register

_UNARY: dict[str, Callable[[Lanes], Lanes]] = {
    "neg": Lanes.__neg__,
    "abs": _elementary.absolute,
    "sign": _elementary.sign,
    "sign_u": lambda x: where(x.equals(0), x, 1),
    "not": Lanes.__invert__,  # of truth values
    "bitwise_not": Lanes.__invert__,  # of integers
    "isnan": lambda x: x.is_nan,
    "isinf": lambda x: abs(x).equals(math.inf),
    "isinf_pos": lambda x: x.equals(math.inf),
    "isinf_neg": lambda x: x.equals(-math.inf),
    "floor": _elementary.rounding("floor"),
    "ceil": _elementary.rounding("ceil"),
    "trunc": _elementary.rounding("trunc"),
    "round": _elementary.rounding("roundeven"),
    "nearest": _elementary.nearest,
    "sqrt": lambda x: x.sqrt,
    "rsqrt": lambda x: 1.0 / x.sqrt,
    "reciprocal": lambda x: 1.0 / x,
    "exp": _exponentials.exp,
    "exp2": _exponentials.exp2,
    "expm1": _exponentials.expm1,
    "tanh": _exponentials.tanh,
    "order": _elementary.unsigned_order,
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
}
_BINARY: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "add": Lanes.__add__,
    "sub": Lanes.__sub__,
    "mul": Lanes.__mul__,
    "div": divide,
    "div_u": lambda a, b: divide(a, b, signed=False),
    "mod": mod,
    "mod_u": lambda a, b: remainder(a, b, signed=False),
    "fmod": fmod,
    "fmod_u": lambda a, b: remainder(a, b, signed=False),
    "min": _elementary.least,
    "min_u": lambda a, b: where(a.compare("icmp ult", b), a, b),
    "max": _elementary.greatest,
    "max_u": lambda a, b: where(a.compare("icmp ugt", b), a, b),
    "eq": Lanes.equals,
    "ne": Lanes.differs,
    "lt": _elementary.ordered("lt"),
    "le": _elementary.ordered("le"),
    "gt": _elementary.ordered("gt"),
    "ge": _elementary.ordered("ge"),
    "lt_u": lambda a, b: a.compare("icmp ult", b),
    "le_u": lambda a, b: a.compare("icmp ule", b),
    "gt_u": lambda a, b: a.compare("icmp ugt", b),
    "ge_u": lambda a, b: a.compare("icmp uge", b),
    "and": Lanes.__and__,  # of truth values
    "or": Lanes.__or__,
    "xor": Lanes.__xor__,
    "bitwise_and": Lanes.__and__,  # of integers
    "bitwise_or": Lanes.__or__,
    "bitwise_xor": Lanes.__xor__,
    "shl": _elementary.shift("shl"),
    "shr": _elementary.shift("ashr"),
    "shr_u": _elementary.shift("lshr"),
    "pow": _powers.power,
}
_TERNARY: dict[str, Callable[[Lanes, Lanes, Lanes], Lanes]] = {"fma": _elementary.fused, "where": where}


def _rotated(x: Lanes, count: int) -> Lanes:
    return (x << count) | x.unsigned_shift(x.kind.bits - count)


_WORDS: WordArithmetic[Lanes] = WordArithmetic(Lanes.__add__, Lanes.__xor__, _rotated)
_QUATERNARY: dict[str, Callable[[Lanes, Lanes, Lanes, Lanes], Lanes]] = {
    "word": lambda x, y, first, second: threefry(_WORDS, (x, y), (first, second))[0],
    "second_word": lambda x, y, first, second: threefry(_WORDS, (x, y), (first, second))[1],
}


def _emission(formula: Callable[..., Lanes]) -> Callable[[Emitter, tuple[Register, ...]], Register]:
    return lambda e, operands: formula(*(Lanes(e, x) for x in operands)).register


FUNCTIONS: dict[str, Callable[[Emitter, tuple[Register, ...]], Register]] = {
    name: _emission(formula) for name, formula in (_UNARY | _BINARY | _TERNARY | _QUATERNARY).items()
}

_APPROXIMATED = (_exponentials, _logarithms, _powers, _trigonometry)
LONG = frozenset(
    name
    for name, formula in (_UNARY | _BINARY).items()
    if formula.__module__ in {module.__name__ for module in _APPROXIMATED}
)
"""The operations that take tens of instructions: polynomials, and cases of their operands."""
