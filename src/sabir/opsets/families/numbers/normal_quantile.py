"""The probit: the quantile function of the standard normal distribution, to float64 accuracy.

Wichura's algorithm AS 241 (Applied Statistics 37, 1988): one rational function for the middle, two for the
tails. The coefficients are facts of numerics, highest power first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.opsets.families.numbers.pointwise import pointwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Expression
    from sabir.opsets.typing import Array

_MIDDLE, _MIDDLE_SQUARE = 0.425, 0.180625
_NEAR, _NEAR_FROM, _FAR_FROM = 5.0, 1.6, 5.0

_A = (
    2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
    13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.3871328727963666080,
)  # fmt: skip
_B = (
    5226.4952788528545610, 28729.085735721942674, 39307.895800092710610, 21213.794301586595867,
    5394.1960214247511077, 687.18700749205790830, 42.313330701600911252, 1.0,
)  # fmt: skip
_C = (
    7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
    1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590,
    1.42343711074968357734,
)  # fmt: skip
_D = (
    1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
    1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940,
    2.05319162663775882187, 1.0,
)  # fmt: skip
_E = (
    2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
    2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580,
    5.46378491116411436990, 6.65790464350110377720,
)  # fmt: skip
_F = (
    2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
    7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922737805310e-1,
    5.99832206555887937690e-1, 1.0,
)  # fmt: skip


def normal_quantile(p: Array) -> Array:
    """Return z with P(Z <= z) = p in float64; infinite at 0 and 1, NaN outside [0, 1]."""
    return _quantile(np.asarray(p, np.float64))


@pointwise
def _quantile(p: Array) -> Array:
    from_half = p - 0.5
    middle = from_half * _ratio(_A, _B, _MIDDLE_SQUARE - from_half * from_half)
    tail = np.sqrt(-np.log(np.minimum(p, 1 - p)))
    near, far = _ratio(_C, _D, tail - _NEAR_FROM), _ratio(_E, _F, tail - _FAR_FROM)
    outer = np.where(np.isinf(tail), tail, np.where(tail <= _NEAR, near, far))
    return np.where(np.abs(from_half) <= _MIDDLE, middle, np.copysign(outer, from_half))


def lowered(p: Expression) -> Expression:
    """Return the same of an expression of doubles."""
    from_half = loops.apply("sub", p, 0.5)
    square = loops.apply(
        "sub", loops.number("double", _MIDDLE_SQUARE), loops.apply("mul", from_half, from_half)
    )
    middle = loops.apply("mul", from_half, _lowered_ratio(_A, _B, square))
    least = loops.apply("min", p, loops.apply("sub", loops.number("double", 1), p))
    tail = loops.apply("sqrt", loops.apply("neg", loops.apply("log", least)))
    near = _lowered_ratio(_C, _D, loops.apply("sub", tail, _NEAR_FROM))
    far = _lowered_ratio(_E, _F, loops.apply("sub", tail, _FAR_FROM))
    outer = loops.where(loops.apply("le", tail, _NEAR), near, far)
    outer = loops.where(loops.apply("isinf_pos", tail), tail, outer)
    outer = loops.where(loops.apply("lt", from_half, 0), loops.apply("neg", outer), outer)
    return loops.where(loops.apply("le", loops.apply("abs", from_half), _MIDDLE), middle, outer)


def _lowered_ratio(above: Sequence[float], below: Sequence[float], r: Expression) -> Expression:
    return loops.apply("div", _lowered_polynomial(above, r), _lowered_polynomial(below, r))


def _lowered_polynomial(coefficients: Sequence[float], r: Expression) -> Expression:
    first, *others = coefficients
    found: Expression = loops.number("double", first)
    for c in others:
        found = loops.apply("add", loops.apply("mul", found, r), c)
    return found


def _ratio(above: Sequence[float], below: Sequence[float], r: Array) -> Array:
    return np.polyval(above, r) / np.polyval(below, r)
