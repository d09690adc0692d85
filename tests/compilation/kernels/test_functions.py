"""Functions of floats against numpy with more digits."""

import math

import numpy as np
import pytest

from sabir.compilation.backends.cpu.emit.emitter import Emitter, Kind
from support.vector_kernels import UNARY, compiled, kernels

EXACT = np.finfo(np.longdouble).nmant > 52  # long double has more digits here
FLOATS = {"float": np.float32, "double": np.float64}


def specials(dtype):
    info = np.finfo(dtype)
    ends = [info.tiny, info.smallest_subnormal, info.max, math.inf, 1 - info.epsneg, 1 + info.eps]
    both = [
        0.0,
        *ends,
        0.5,
        1,
        1.5,
        2,
        2.5,
        3,
        7.5,
        100,
        1e5,
        1e-5,
        1e30,
        2**24 - 1,
        2**31,
        2.0**53 - 1,
        2.0**63,
    ]
    return np.array([math.nan, *both, *(-v for v in both)], dtype)


def spread(dtype, count, seed=0):
    """Return floats of all exponents, then some around 0, around 1 and of middle size."""
    random = np.random.default_rng(seed)
    integer = np.dtype(f"u{np.dtype(dtype).itemsize}")
    most = np.iinfo(integer).max
    parts = [random.integers(0, most, count, integer, endpoint=True).view(dtype)]
    parts += [random.uniform(-scale, scale, count) for scale in (1, 10, 100, 800)]
    parts += [random.choice([-1, 1], count) * 10 ** random.uniform(-9, 6, count)]
    parts += [1 + random.choice([-1, 1], count) * 10 ** random.uniform(-8, 0, count)]
    return np.concatenate([specials(dtype), *(p.astype(dtype) for p in parts)])


def misses(y, exact):
    """Return the distance from exact results in units of the last place; infinite where the kind of number differs."""
    with np.errstate(all="ignore"):
        near = exact.astype(y.dtype)
        finite = np.isfinite(near)
        unit = np.spacing(np.abs(np.where(finite, near, 1)))
        distance = np.abs(y.astype(exact.dtype) - exact) / unit
        same = (y == near) | (np.isnan(y) & np.isnan(near))
        # one unit more than the greatest number is infinity
        distance = np.where(finite & np.isfinite(y), distance, np.where(same, 0, np.inf))
        return np.where((near == 0) & (y == 0) & (np.signbit(near) != np.signbit(y)), np.inf, distance)


def check(name, compiled_ones, operands, exact, bound):
    """Check the errors of the first kernel, and that the others give the same bits."""
    first = None
    for where, kernel in compiled_ones:
        step = 1 if kernel.lanes > 1 else 8
        (y,) = kernel(*(np.ascontiguousarray(x[::step]) for x in operands))
        if first is None:
            first, error = y, misses(y, exact)
            worst = error.argmax()
            example = [x[worst] for x in operands], y[worst], exact[worst]
            assert error[worst] <= bound, (name, where, *example, error[worst])
        assert np.array_equal(y, first[::step], equal_nan=True), (name, where)


@pytest.mark.parametrize("scalar", FLOATS)
def test_functions_are_within_their_bounds(scalar):
    x = spread(FLOATS[scalar], 150_000 if scalar == "float" else 10_000)
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64 if scalar == "float" else np.longdouble)
        exact = {name: function(wide) for name, (function, _) in UNARY.items()}
    for name, (_, limit) in UNARY.items():
        doubtful = scalar == "double" and (name == "erf" or not EXACT)  # the reference itself is a double
        bound = limit + doubtful
        check(name, kernels([name], [scalar]), (x,), exact[name], bound)


@pytest.mark.parametrize("scalar", FLOATS)
def test_powers_are_within_their_bounds(scalar):
    dtype = FLOATS[scalar]
    edges = specials(dtype)
    count = 100_000 if scalar == "float" else 10_000
    some, random = spread(dtype, count, seed=1), np.random.default_rng(2)
    pairs = [np.repeat(edges, edges.size), some, np.abs(some), random.uniform(-20, 20, some.size)]
    powers = [np.tile(edges, edges.size), random.permutation(some), random.uniform(-90, 90, some.size)]
    powers.append(random.integers(-40, 40, some.size))
    x, y = (np.concatenate([part.astype(dtype) for part in parts]) for parts in (pairs, powers))
    wide = np.float64 if scalar == "float" else np.longdouble
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(wide), y.astype(wide))
        # of infinity and 0 by doubles: powl of glibc is wrong for some large powers
        exact = np.where(np.isfinite(x) & (x != 0), exact, np.power(x, y))
    bound = 0.51 if scalar == "float" else 1.3 if EXACT else 2.3
    check("pow", kernels(["pow"], [scalar] * 2), (x, y), exact, bound)


def test_subnormal_results_are_rounded_once():
    x = np.linspace(-104, -87, 10_001).astype(np.float32)
    for _, kernel in kernels(["exp", "sigmoid"], ["float"]):
        for y in kernel(x):
            assert misses(y, np.exp(x.astype(np.float64))).max() <= 1.1


def test_large_angles_lose_no_digits():
    # mpmath, with 400 digits; the first one is the double that is nearest to a multiple of pi/2
    x = np.array([6381956970095103 * 2.0**797, 1e22, 2.0**1023])
    sines = np.array([1.0, -0.8522008497671888, 0.563127779850884])
    cosines = np.array([-4.687165924254628e-19, 0.523214785395139, -0.826369834614148])
    for _, kernel in kernels(["sin", "cos"], ["double"]):
        for y, exact in zip(kernel(x), (sines, cosines), strict=True):
            assert misses(y, exact).max() <= 1


def test_a_call_out_of_the_object_is_found():
    e = Emitter()
    x = e.load(e.argument(0, "ptr"), Kind("float", 8))
    e.store(e.intrinsic("exp", x), e.argument(0, "ptr"))
    with pytest.raises(AssertionError, match="expf"):
        compiled(e.text("kernel"), "host")
