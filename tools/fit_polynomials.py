"""Write the polynomials of the compiler's scalar functions; mpmath is required (about a minute).

Each polynomial is the best one of its degree under a weight, found by the exchange algorithm of Remez: the
weight turns its error into a relative error of the function that it serves.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import mpmath as mp

if TYPE_CHECKING:
    from collections.abc import Callable

TARGET = Path(__file__).parents[1] / "src/sabir/compilation/backends/cpu/emit/coefficients.py"
HEAD = '''"""Coefficients of polynomials, lowest first; written by tools/fit_polynomials.py, not by hand.

The comment of each one names the function, the interval, and its greatest weighted error after rounding.
"""
'''
GRID, ROUNDS, ENOUGH = 600, 12, 1.02
TINY = mp.mpf("1e-9")


class Fit(NamedTuple):
    """A function to approximate by polynomials of some degrees, one for each type of numbers."""

    name: str
    about: str
    function: Callable[[Any], Any]
    weight: Callable[[Any], Any]
    low: Any
    high: Any
    degrees: dict[str, int]


def nodes(low: Any, high: Any, count: int) -> list[Any]:
    """Return the Chebyshev points of an interval."""
    middle, radius = (low + high) / 2, (high - low) / 2
    return [middle - radius * mp.cos(mp.pi * (i + mp.mpf(0.5)) / count) for i in range(count)]


def best(fit: Fit, function: Callable[[Any], Any], first: int, last: int) -> list[Any]:
    """Return the coefficients of x**first to x**last whose greatest weighted error is least."""
    terms = last - first + 1
    places, points = nodes(fit.low, fit.high, terms + 1), nodes(fit.low, fit.high, GRID)
    values, weights = [function(x) for x in points], [fit.weight(x) for x in points]
    least, found = mp.inf, [mp.mpf(0)] * terms
    for _ in range(ROUNDS):
        matrix, right = mp.matrix(terms + 1, terms + 1), mp.matrix(terms + 1, 1)
        for i, x in enumerate(places):
            weight = fit.weight(x)
            for j in range(terms):
                matrix[i, j] = weight * x ** (first + j)
            matrix[i, terms], right[i] = (-1) ** i, weight * function(x)
        row = list(mp.lu_solve(matrix, right))[:terms]
        errors = [
            w * (y - x**first * mp.polyval(row[::-1], x))
            for x, y, w in zip(points, values, weights, strict=True)
        ]
        worst = max(map(abs, errors))
        if worst < least:
            least, found = worst, row
        tops = peaks(errors, terms + 1)
        if len(tops) <= terms or worst < ENOUGH * min(abs(errors[i]) for i in tops):
            break
        places = [points[i] for i in tops]
    return found


def peaks(errors: list[Any], count: int) -> list[int]:
    """Return the places of the greatest errors between changes of sign, `count` at most."""
    tops = [0]
    for i, error in enumerate(errors):
        if (error >= 0) != (errors[tops[-1]] >= 0):
            tops.append(i)
        elif abs(error) > abs(errors[tops[-1]]):
            tops[-1] = i
    while len(tops) > count:
        tops.pop(0 if abs(errors[tops[0]]) < abs(errors[tops[-1]]) else -1)
    return tops


def rounded(fit: Fit, scalar: str) -> list[float]:
    """Return coefficients of the type; in float the next ones make up for the rounding of each."""
    degree = fit.degrees[scalar]
    if scalar != "float":
        return [float(c) for c in best(fit, fit.function, 0, degree)]
    done: list[float] = []
    for first in range(degree + 1):

        def rest(x: Any) -> Any:
            return fit.function(x) - mp.polyval(done[::-1] or [0], x)

        done.append(struct.unpack("<f", struct.pack("<f", float(best(fit, rest, first, degree)[0])))[0])
    return done


def error(fit: Fit, row: list[float]) -> str:
    """Return the greatest weighted error as a power of two."""
    worst = max(
        abs(fit.weight(x) * (fit.function(x) - mp.polyval(row[::-1], x)))
        for x in nodes(fit.low, fit.high, GRID + 1)
    )
    return f"2^{float(mp.log(worst, 2)):.1f}"


def odd_tail(function: Callable[[Any], Any], series: Any) -> Callable[[Any], Any]:
    """Return (function(t) - t) / t**3 as a function of t**2."""

    def tail(z: Any) -> Any:
        t = mp.sqrt(z)
        return series if z < TINY**2 else (function(t) - t) / (t * z)

    return tail


def fits() -> list[Fit]:
    """Return all polynomials."""
    half = mp.log(2) / 2 * mp.mpf("1.002")
    root = mp.sqrt(2)
    slope = ((root - 1) / (root + 1)) ** 2 * mp.mpf("1.01")
    quarter = (mp.pi / 4) ** 2 * mp.mpf("1.01")
    third = mp.mpf(1) / 3
    return [
        Fit(
            "EXP",
            "(exp(r) - 1 - r) / r^2, r within ln(2)/2; error of exp(r) - 1",
            lambda r: mp.mpf(0.5) if abs(r) < TINY else (mp.expm1(r) - r) / r**2,
            lambda r: abs(r) if abs(r) < TINY else r**2 / abs(mp.expm1(r)),
            -half,
            half,
            {"float": 4, "double": 10, "short": 6},
        ),
        Fit(
            "LOG_FLAT",
            "(log(1+f) - f + f^2/2) / f^3, 1+f from sqrt(1/2) to sqrt(2); error of log",
            lambda f: third - f / 4 if abs(f) < TINY else (mp.log1p(f) - f + f * f / 2) / f**3,
            lambda f: f * f if abs(f) < TINY else abs(f**3 / mp.log1p(f)),
            1 / root - 1,
            root - 1,
            {"float": 7},
        ),
        Fit(
            "LOG",
            "(2 atanh(s) - 2s) / s^3 of z = s^2, s = f / (2+f); error of log",
            lambda z: 2 * odd_tail(mp.atanh, third)(z),
            lambda z: z / 2,
            mp.mpf(0),
            slope,
            {"double": 6, "short": 3},
        ),
        Fit(
            "LOG_TAIL",
            "(2 atanh(s) - 2s - 2/3 s^3) / s^5 of z = s^2; error of log",
            lambda z: (
                mp.mpf(2) / 5 if z < TINY else 2 * (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2
            ),
            lambda z: z * z / 2,
            mp.mpf(0),
            slope,
            {"double": 6},
        ),
        Fit(
            "SIN",
            "(sin(r) - r) / r^3 of r^2, r within pi/4; error of sin",
            odd_tail(mp.sin, -third / 2),
            lambda z: z,
            mp.mpf(0),
            quarter,
            {"float": 2, "double": 5},
        ),
        Fit(
            "COS",
            "(cos(r) - 1 + r^2/2) / r^4 of r^2, r within pi/4; error of cos",
            lambda z: mp.mpf(1) / 24 - z / 720 if z < TINY else (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
            lambda z: z * z * root,
            mp.mpf(0),
            quarter,
            {"float": 2, "double": 5},
        ),
        Fit(
            "ATAN",
            "(atan(t) - t) / t^3 of t^2, t within tan(pi/8); error of atan",
            odd_tail(mp.atan, -third),
            lambda z: z,
            mp.mpf(0),
            mp.tan(mp.pi / 8) ** 2 * mp.mpf("1.001"),
            {"float": 4, "double": 10},
        ),
        Fit(
            "ASIN",
            "(asin(t) - t) / t^3 of t^2, t within 1/2; error of asin",
            odd_tail(mp.asin, third / 2),
            lambda z: z,
            mp.mpf(0),
            mp.mpf(0.25),
            {"float": 4, "double": 12},
        ),
        Fit(
            "SINH",
            "(sinh(t) - t) / t^3 of t^2, t within 1; error of sinh",
            odd_tail(mp.sinh, third / 2),
            lambda z: z,
            mp.mpf(0),
            mp.mpf(1),
            {"float": 3, "double": 6},
        ),
        Fit(
            "ERF",
            "erf(x)/x - 1 of x^2, x within 0.92; error of erf",
            lambda z: (
                2 / mp.sqrt(mp.pi) - 1 if z < TINY**2 else mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1
            ),
            lambda _: mp.mpf(0.9),
            mp.mpf(0),
            mp.mpf("0.92") ** 2,
            {"float": 5, "double": 12},
        ),
        Fit(
            "ERFC_FLOAT",
            "log(erfc(a)), a from 0.92 to 3.93; error of erf",
            lambda a: mp.log(mp.erfc(a)),
            lambda a: mp.erfc(a) / mp.erf(a),
            mp.mpf("0.92"),
            mp.mpf("3.93"),
            {"float": 6},
        ),
        Fit(
            "ERFC_DOUBLE",
            "log(erfc(a)), a from 0.92 to 5.93; error of erf",
            lambda a: mp.log(mp.erfc(a)),
            lambda a: mp.erfc(a) / mp.erf(a),
            mp.mpf("0.92"),
            mp.mpf("5.93"),
            {"double": 19},
        ),
    ]  # fmt: skip


def two_over_pi(words: int) -> list[str]:
    """Return 64 zero bits, then the bits of 2/pi after the point, in words of 64."""
    mp.mp.dps = 64 * words // 3
    bits = int(mp.floor(2 / mp.pi * mp.mpf(2) ** (64 * (words - 1))))
    mp.mp.dps = 45
    return [f"0x{bits >> 64 * (words - 1 - i) & (1 << 64) - 1:016X}" for i in range(words)]


def main() -> None:
    """Fit all, and replace the module."""
    mp.mp.dps = 45
    out = [HEAD]
    for fit in fits():
        rows: list[str] = []
        for scalar, degree in fit.degrees.items():
            row = rounded(fit, scalar)
            rows += [f"    # {scalar}: degree {degree}, error {error(fit, row)}", f'    "{scalar}": (']
            rows += [*(f"        {c!r}," for c in row), "    ),"]
        out += [f"# {fit.about}", f"{fit.name} = {{", *rows, "}", ""]
        print("\n".join(out[-len(rows) - 3 :]))
    words = two_over_pi(21)
    out += [
        "# 64 zero bits, then the bits of 2/pi",
        "TWO_OVER_PI = (",
        *(f"    {word}," for word in words),
        ")",
    ]
    TARGET.write_text("\n".join(out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
