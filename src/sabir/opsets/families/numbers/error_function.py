"""The error function on arrays, by approximations in numpy.

float64 uses the intervals and polynomials of Sun's fdlibm (the coefficients are facts of numerics), with an
error of about one unit in the last place. float32 uses the hyperbolic tangent of a polynomial fitted for this
module, with an error of two units at most: numpy computes the tangent in vectors, and it is 1 where erf is.
Both run block by block, so that the temporaries stay in cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import new_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.opsets.typing import Array

_BLOCK = 1 << 15  # elements; some temporaries of this size fit the second-level cache

# erf(x) = tanh(x + x * P(x*x)), relative error below 5e-8 before rounding; from 4 on both round to 1
_LARGEST_SQUARE = 16.0
_P = (
    0.128379213, 0.102770966, -0.000200454797, -0.000606523677, 7.8623453e-05, -2.66088438e-06,
    -3.61400141e-07, 3.96065449e-08, -1.13470986e-09,
)  # fmt: skip

# fdlibm, lowest power first: |x| < 0.84375, < 1.25, < 1/0.35, < 6
_SMALL, _MIDDLE, _LARGE, _ONE = 0.84375, 1.25, 1 / 0.35, 6.0
_ERX = 8.45062911510467529297e-01
_PP = (
    1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02,
    -5.77027029648944159157e-03, -2.37630166566501626084e-05,
)  # fmt: skip
_QQ = (
    1.0, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03,
    1.32494738004321644526e-04, -3.96022827877536812320e-06,
)  # fmt: skip
_PA = (
    -2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01,
    3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
)  # fmt: skip
_QA = (
    1.0, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02,
    1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02,
)  # fmt: skip
_RA = (
    -9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01,
    -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02,
    -8.12874355063065934246e+01, -9.81432934416914548592e+00,
)  # fmt: skip
_SA = (
    1.0, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02,
    6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02,
    6.57024977031928170135e+00, -6.04244152148580987438e-02,
)  # fmt: skip
_RB = (
    -9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01,
    -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03,
    -4.83519191608651397019e+02,
)  # fmt: skip
_SB = (
    1.0, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03,
    3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02,
    -2.24409524465858183362e+01,
)  # fmt: skip


def erf(x: Array) -> Array:
    """Return the error function of float64 in float64, of anything narrower in float32."""
    rule, dtype = (_double, np.float64) if x.dtype == np.float64 else (_single, np.float32)
    row: Array = np.ascontiguousarray(x, dtype).reshape(-1)
    if row.size <= _BLOCK:
        return rule(row).reshape(x.shape)
    out = new_array(row.shape, row.dtype)
    for start in range(0, row.size, _BLOCK):
        out[start : start + _BLOCK] = rule(row[start : start + _BLOCK])
    return out.reshape(x.shape)


def _single(x: Array) -> Array:
    """Return erf in float32; the largest part of the argument is added last, so that it is rounded once."""
    square = x * x
    out = _polynomial(_P, np.minimum(square, _LARGEST_SQUARE, out=square))
    out *= x
    out += x
    return np.tanh(out, out=out)


def _double(x: Array) -> Array:
    size = np.abs(x)
    if size.max(initial=0.0) < _SMALL:
        return _near_zero(x)
    out = np.where(np.isnan(x), x, np.sign(x))
    for rule, low, high in (
        (_near_zero, 0.0, _SMALL),
        (_near_one, _SMALL, _MIDDLE),
        (_tail, _MIDDLE, _LARGE),
        (_far_tail, _LARGE, _ONE),
    ):
        inside = np.flatnonzero((size >= low) & (size < high))
        if inside.size:
            out[inside] = rule(x[inside])
    return out


def _near_zero(x: Array) -> Array:
    z = x * x
    return x + x * (_polynomial(_PP, z) / _polynomial(_QQ, z))


def _near_one(x: Array) -> Array:
    s = np.abs(x) - 1.0
    return np.copysign(_ERX + _polynomial(_PA, s) / _polynomial(_QA, s), x)


def _tail(x: Array) -> Array:
    return _complement(x, _RA, _SA)


def _far_tail(x: Array) -> Array:
    return _complement(x, _RB, _SB)


def _complement(x: Array, above: Sequence[float], below: Sequence[float]) -> Array:
    """Return 1 - erfc(|x|) with the sign of x; the square is split so that its exponential is exact."""
    size = np.abs(x)
    s = 1.0 / (size * size)
    head = size.astype(np.float32).astype(np.float64)
    ratio = _polynomial(above, s) / _polynomial(below, s)
    erfc = np.exp(-head * head - 0.5625) * np.exp((head - size) * (head + size) + ratio) / size
    return np.copysign(1.0 - erfc, x)


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """Return the value by Horner's rule, in place; lowest power first."""
    out = x * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        out += coefficient
        out *= x
    out += coefficients[0]
    return out
