"""Powers: |x|**y = exp(y * log|x|), with a logarithm of more digits than the result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit import coefficients as table
from sabir.compilation.backends.cpu.emit.exponentials import LN2_DIGITS, split
from sabir.compilation.backends.cpu.emit.lanes import (
    Long,
    clamped,
    fma,
    polynomial,
    product_of,
    scaled,
    sum_of,
    where,
)
from sabir.compilation.backends.cpu.emit.logarithms import parts, parts_of_any

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.lanes import Lanes

_TWO_THIRDS = 2 / 3, 3.700743415417188e-17  # their sum is 2/3 with twice the bits
_BOUND = 750.0  # beyond, exp is 0 or infinite
_BOUND_FLOAT = 110.0


def power(x: Lanes, y: Lanes) -> Lanes:
    """Emit x**y, with the special cases of C."""
    a = abs(x)
    magnitude = _power32(a, y) if x.kind.scalar == "float" else _power64(a, y)
    whole = y.intrinsic("trunc").equals(y)
    half = y * 0.5
    odd = half.intrinsic("trunc").differs(half)  # matters for integers only
    negative = magnitude.bits | (x.bits & x.format.pattern(-0.0))
    z = where(whole & odd, negative.floats(x.format), magnitude)
    z = where((x < 0.0) & (a < math.inf) & ~whole, math.nan, z)
    return where(y.equals(0.0) | x.equals(1.0), 1.0, z)


def _power32(a: Lanes, y: Lanes) -> Lanes:
    """Return a**y of floats, in double, by polynomials with half of its digits."""
    wide = a.convert("fpext", "double")
    k, m = parts(wide)
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    log = fma(k, LN2_DIGITS[0], fma(s * z, polynomial(z, table.LOG["short"]), s + s))
    log = _of_ends(wide, log)
    exponent = clamped(log * y.convert("fpext", "double"), -_BOUND_FLOAT, _BOUND_FLOAT)
    exponent = where(wide.equals(1.0), 0.0, exponent)
    n, q = split(exponent, row=table.EXP["short"])
    return scaled(q + 1.0, n).convert("fptrunc", "float")


def _of_ends(a: Lanes, log: Lanes) -> Lanes:
    """Return logarithms that are also right for 0, infinity and NaN."""
    log = where(a < math.inf, log, a)
    return where(a.equals(0.0), -math.inf, log)


def _power64(a: Lanes, y: Lanes) -> Lanes:
    """Return a**y of doubles, by a logarithm that is a sum of two."""
    high, low = _long_log(a)
    high = _of_ends(a, high)
    product, lost = product_of(y, high)
    bounded = clamped(product, -_BOUND, _BOUND)
    lost = where(bounded.equals(product), fma(y, low, lost), 0.0)
    one = a.equals(1.0)  # where the product may be NaN
    n, q = split(where(one, 0.0, bounded), low=where(one, 0.0, lost))
    return scaled(q + 1.0, n)


def _long_log(a: Lanes) -> Long:
    """Return log(a) as a sum: k * ln(2) + 2s + 2/3 s**3 + the rest of the series of atanh."""
    k, m = parts_of_any(a)
    s = _long_argument(m)
    square = s.times(s)
    cube = square.times(s)
    third = cube.times(_TWO_THIRDS)
    rest = cube.high * square.high * polynomial(square.high, table.LOG_TAIL["double"])
    shift, shift_low = product_of(k, LN2_DIGITS[0])
    main, lost = sum_of(shift, s.high + s.high)
    main, more = sum_of(main, third.high)
    low = fma(k, LN2_DIGITS[1], shift_low) + (s.low + s.low)
    return Long(*sum_of(main, (low + (third.low + rest)) + (lost + more)))


def _long_argument(m: Lanes) -> Long:
    """Return s = (m - 1) / (m + 1) as a sum."""
    above, below = m - 1.0, m + 1.0
    lost = m - (below - 1.0)  # of the lower sum; the upper one is exact
    s = above / below
    return Long(s, fma(-s, lost, fma(-s, below, above)) / below)
