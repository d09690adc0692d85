"""Remainders of divisions, of floats and of integers."""

from __future__ import annotations

from sabir.compilation.backends.cpu.emit.lanes import Lanes, fma, scaled, where

_STEP = 20  # bits of the quotient that each step determines, exact in every type
_WIDEST = 64  # bits of an integer


def fmod(a: Lanes, b: Lanes) -> Lanes:
    """Emit the remainder with the sign of the dividend."""
    if not a.kind.is_float:
        return remainder(a, b)
    rest, divisor = abs(a), abs(b)
    slot = a.e.variable(rest.register)

    def step() -> Lanes:
        """Subtract a multiple of the divisor, exactly; the last quotient may be 1 too large."""
        rest = Lanes(a.e, a.e.get(slot))
        lead = _exponent(rest) - _exponent(divisor) - _STEP
        unit = scaled(divisor, where(lead > 0, lead, 0))
        rest = fma((rest / unit).intrinsic("trunc"), -unit, rest)
        a.e.assign(slot, rest.register)
        return abs(rest) >= divisor

    a.e.repeat(lambda: a.e.any(step().register))
    left = Lanes(a.e, a.e.get(slot))
    left = where(left < 0.0, left + divisor, left)
    return where(rest < divisor, rest, left).signed_as(a)


def _exponent(x: Lanes) -> Lanes:
    """Return the bits of the exponent of x."""
    return (x.bits >> x.format.fraction) & (2 * x.format.bias + 1)


def mod(a: Lanes, b: Lanes) -> Lanes:
    """Emit the remainder with the sign of the divisor."""
    rest = fmod(a, b)
    if not a.kind.is_float:
        other = ((rest ^ b) < 0) & rest.differs(0)
        return where(other, rest + b, rest)
    other = (rest < 0.0) ^ (b < 0.0)
    return where(rest.equals(0.0), rest.signed_as(b), where(other, rest + b, rest))


def divide(a: Lanes, b: Lanes, *, signed: bool = True) -> Lanes:
    """Emit the quotient, truncated toward zero; a division by 0 is 0, and none traps."""
    if a.kind.is_float:
        return a / b
    nothing = b.equals(0)
    opposite = b.equals(-1) if signed else nothing
    safe = where(nothing | opposite, 1, b)
    q = _quotient(a, safe, signed=signed)
    if signed:
        q = where(opposite, -a, q)
    return where(nothing, 0, q)


def _quotient(a: Lanes, b: Lanes, *, signed: bool) -> Lanes:
    """Return the quotient for a valid divisor; small types are divided as floats, which represent them."""
    if a.kind.bits == _WIDEST:
        return Lanes(a.e, a.e.binary("sdiv" if signed else "udiv", a.register, b.register))
    scalar, wide = ("double", a.kind.scalar) if a.kind.bits == _WIDEST // 2 else ("float", "i32")
    into, back = ("sitofp", "fptosi") if signed else ("uitofp", "fptoui")
    q = (a.convert(into, scalar) / b.convert(into, scalar)).convert(back, wide)
    return q if wide == a.kind.scalar else q.convert("trunc", a.kind.scalar)


def remainder(a: Lanes, b: Lanes, *, signed: bool = True) -> Lanes:
    """Emit the remainder with the sign of the dividend; by 0 it is 0."""
    return where(b.equals(0), 0, a - divide(a, b, signed=signed) * b)
