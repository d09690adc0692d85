"""Casts of kernels equal those of Cast, bit for bit, between all pairs of element types."""

import numpy as np
import pytest

from sabir.compilation.backends.cpu.emit.casts import SCALARS, cast
from sabir.elements import element
from sabir.opsets.families.numbers.casting import converted
from support.vector_kernels import LANES, TARGETS, Kernel

SMALL = [kind for kind in SCALARS if element(kind).is_float and element(kind).bits <= 8]


def edges(dtype):
    """Return numbers around every limit and every rounding, of a type."""
    random = np.random.default_rng(5)
    if dtype == np.bool_:
        return np.array([True, False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        powers = [1 << n for n in range(info.bits - 1)]
        near = [0, info.min, info.max, *(p + d for p in powers for d in (-1, 0, 1))]
        near += [-v for v in near if v > 0 and dtype.kind == "i"]
        near = [v for v in near if info.min <= v <= info.max]
        some = random.integers(info.min, info.max, 2000, dtype, endpoint=True)
        return np.concatenate([np.array(near, dtype), some, some >> dtype.type(info.bits // 2)])
    if (
        element(dtype).is_integer or dtype.itemsize == 1
    ):  # of 8 bits and fewer, whose kind numpy does not know
        return np.arange(1 << element(dtype).bits).astype(np.uint8).view(dtype)
    bits = np.dtype(f"u{dtype.itemsize}")
    anything = random.integers(0, np.iinfo(bits).max, 4000, bits, endpoint=True).view(dtype)
    with np.errstate(over="ignore"):
        powers = 2.0 ** np.arange(-30, 70)
        near = np.concatenate([[0, np.inf, np.nan, 65519.999, 65520, 2.0**-25, 6e-8], powers, powers / 2 * 3])
        near = np.concatenate([near, near - 1, near + 1, near * (1 + 2.0**-11), near * (1 + 2.0**-30)])
        near = near.astype(dtype)
        near = np.concatenate([
            near,
            np.nextafter(near, dtype.type(0)),
            np.nextafter(near, dtype.type(np.inf)),
        ])
        random_near = (random.uniform(-1, 1, 4000) * 10 ** random.uniform(-9, 20, 4000)).astype(dtype)
    return np.concatenate([near, -near, anything, random_near])


@pytest.mark.parametrize("source", SCALARS)
def test_casts(source):
    x = edges(element(source).dtype)
    with np.errstate(all="ignore"):
        exact = {target: converted(x, element(target), saturate=False) for target in SCALARS}
    for where, lanes in ((t, n) for t in TARGETS for n in (LANES[t], 1)):
        results = Kernel(
            where, lambda e, xs: [cast(e, xs[0], source, t) for t in SCALARS], [SCALARS[source]], lanes
        )(x)
        for target, result in zip(SCALARS, results, strict=True):
            right = exact[target]
            y = result.view(right.dtype)
            if target in SMALL:
                y, right = y.view(np.uint8), right.view(np.uint8)
            elif target in {"bfloat16", "int4", "uint4", "int2", "uint2"}:  # numpy does not know their kind
                y, right = y.astype(np.float32), right.astype(np.float32)
            wrong = y != right
            if y.dtype.kind == "f":
                wrong |= np.signbit(y) != np.signbit(right)
                wrong &= ~(np.isnan(y) & np.isnan(right))
            assert not wrong.any(), (target, where, x[wrong][:3], y[wrong][:3], right[wrong][:3])


def test_small_floats_at_every_boundary():
    """All float16, and floats at each number of each format, at each midpoint, and beside both."""
    with np.errstate(invalid="ignore"):  # signalling NaN, on Arm
        found = [np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)]
    for kind in SMALL:
        codes = np.arange(1 << element(kind).bits).astype(np.uint8).view(element(kind).dtype)
        numbers = np.unique(codes.astype(np.float64))
        numbers = numbers[np.isfinite(numbers)]
        near = np.concatenate([numbers, (numbers[1:] + numbers[:-1]) / 2, numbers * 1.5]).astype(np.float32)
        near = np.concatenate([near, -near])
        found += [near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))]
    x = np.concatenate([*found, np.float32([np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38])])
    with np.errstate(all="ignore"):
        exact = [converted(x, element(kind), saturate=False) for kind in SMALL]
    for where in TARGETS:
        results = Kernel(
            where, lambda e, xs: [cast(e, xs[0], "float", t) for t in SMALL], ["float"], LANES[where]
        )(x)
        for kind, result, right in zip(SMALL, results, exact, strict=True):
            wrong = result.view(np.uint8) != right.view(np.uint8)
            assert not wrong.any(), (kind, where, x[wrong][:3], result[wrong][:3], right[wrong][:3])
