"""Parts of emission: formats of floats, polynomials, shares of jobs, codes of small floats, exact integers."""

import math
import struct

import numpy as np
import pytest

from sabir.compilation.backends.cpu.emit import coefficients
from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body
from sabir.compilation.backends.cpu.emit.elementary import order, unsigned_order
from sabir.compilation.backends.cpu.emit.emitter import Emitter
from sabir.compilation.backends.cpu.emit.folds import start_of
from sabir.compilation.backends.cpu.emit.jobs import jobs, strips
from sabir.compilation.backends.cpu.emit.lanes import DOUBLE, FLOAT, Lanes
from sabir.compilation.backends.cpu.emit.nest import ANY, NEXT, Access, ConstantStep, Nest
from sabir.compilation.backends.cpu.emit.remainders import divide, fmod, mod, remainder
from sabir.compilation.backends.cpu.emit.small_floats import SMALL_FLOATS, decoded, encoded
from sabir.elements import element
from support import kernels as harness
from support.kernels import nest_values, run_kernel
from support.vector_kernels import Kernel

RANDOM = np.random.default_rng(8)


def apply(function, *arrays):
    """Apply a formula on registers to arrays, eight lanes at a time."""
    names = {"f4": "float", "f8": "double", "i4": "i32", "i8": "i64", "i1": "i8"}
    scalars = [names[x.dtype.str[1:]] for x in arrays]
    emit = lambda e, inputs: [function(*(Lanes(e, x) for x in inputs)).register]  # ruff: ignore[lambda-assignment]  a formula
    (found,) = Kernel("host", emit, scalars, 8)(*arrays)
    return found


# ---------------------------------------------------------------- formats and polynomials


@pytest.mark.parametrize(("form", "dtype", "code"), [(FLOAT, np.float32, "<f"), (DOUBLE, np.float64, "<d")])
def test_formats(form, dtype, code):
    info = np.finfo(dtype)
    assert form.least == info.tiny
    assert form.nearest(1 / 3) == dtype(1) / dtype(3)
    assert form.pattern(-0.0) == 1 << info.bits - 1
    assert form.pattern(1.5) == int.from_bytes(struct.pack(code, 1.5), "little")
    whole = dtype(form.magic) + dtype(5.4)
    assert whole - dtype(form.magic) == 5


def polynomial(row, x):
    return sum(c * x**n for n, c in enumerate(row))


@pytest.mark.parametrize(("row", "bits"), [("float", 25), ("double", 51), ("short", 36)])
def test_polynomials_of_exponentials(row, bits):
    r = np.linspace(-math.log(2) / 2, math.log(2) / 2, 401, dtype=np.longdouble)
    found = 1 + r + r * r * polynomial([np.longdouble(c) for c in coefficients.EXP[row]], r)
    assert abs(found / np.exp(r) - 1).max() < 2.0**-bits


def test_the_digits_of_two_over_pi():
    zeros, first, *_ = coefficients.TWO_OVER_PI
    assert zeros == 0
    assert first / 2**64 == 2 / math.pi


# ---------------------------------------------------------------- jobs


@pytest.mark.parametrize("shares", [1, 3, 7])
@pytest.mark.parametrize("sizes", [(5, 4, 3), (1, 1, 2), (0, 4, 3)])
def test_each_job_is_done_by_one_share(monkeypatch, sizes, shares):
    nest = Nest(
        3,
        (False,) * 3,
        2,
        (Access("int64", (ANY, ANY, NEXT)),),
        (ConstantStep("int64", 1),),
        ((0, 0),),
        lanes=4,
    )

    def text(_):
        body = Body(nest, Arguments(Emitter(), nest.signature))
        e = body.e
        with jobs(body, [0, 1], body.sizes[2]) as (indices, (last,)):
            place = body.start(0)
            for axis, index in enumerate((indices[0], indices[1], last)):
                place = e.offset(place, e.mul(index, body.step(0, axis)))
            e.store(e.add(e.load(place, last.kind), 1), place)
        return e.text()

    monkeypatch.setattr(harness, "text_of", text)
    found = np.zeros(sizes, np.int64)
    strides = [8 * sizes[1] * sizes[2], 8 * sizes[2]]
    run_kernel(nest, nest_values(sizes, (found, strides)), shares=shares)
    assert (found == 1).all()


@pytest.mark.parametrize("shares", [1, 4])
@pytest.mark.parametrize("columns", [1, 64, 1000])
def test_strips_cover_the_inner_axis(monkeypatch, columns, shares):
    nest = Nest(
        2, (False,) * 2, 1, (Access("int64", (ANY, NEXT)),), (ConstantStep("int64", 1),), ((0, 0),), lanes=4
    )

    def text(_):
        body = Body(nest, Arguments(Emitter(), nest.signature))
        e = body.e
        with strips(body, [0], 256) as (indices, start, stop), e.loop(start, stop) as column:
            row = e.offset(body.start(0), e.mul(indices[0], body.step(0, 0)))
            place = e.offset(row, e.mul(column, 8))
            e.store(e.add(e.load(place, column.kind), 1), place)
        return e.text()

    monkeypatch.setattr(harness, "text_of", text)
    found = np.zeros((3, columns), np.int64)
    run_kernel(nest, nest_values([3, columns], (found, [8 * columns])), shares=shares)
    assert (found == 1).all()


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min"])
def test_folds_begin_with_what_changes_nothing(op):
    function = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[op]
    for kind in ("float", "double", "int32", "uint8"):
        dtype = element(kind).dtype
        start = np.array(start_of(op, kind)).astype(dtype)
        numbers = np.array([0, 1, 3, 100]).astype(dtype)
        np.testing.assert_array_equal(function(start, numbers), numbers)


def test_the_order_of_floats_as_integers():
    x = np.float32([-np.inf, -3, -1e-40, -0.0, 0.0, 1e-40, 2, np.inf, np.nan])
    keys = apply(order, x).astype(np.int64)
    assert keys[3] == keys[4]
    assert (np.diff(keys)[[0, 1, 2, 4, 5, 6, 7]] > 0).all()
    unsigned = apply(unsigned_order, x).view(np.uint32).astype(np.int64)
    np.testing.assert_array_equal(unsigned - unsigned[4], keys - keys[4])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_exact_quotients(dtype):
    info = np.iinfo(dtype)
    a = RANDOM.integers(info.min, info.max, 200, dtype, endpoint=True)
    b = RANDOM.integers(-50, 50, 200, dtype)
    b[b == 0] = 7
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]  # rounded to 0
    np.testing.assert_array_equal(apply(divide, a, b), np.array(quotients, dtype))
    np.testing.assert_array_equal(apply(remainder, a, b), np.fmod(a, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_remainders_of_floats(dtype):
    a = (RANDOM.standard_normal(400) * 10.0 ** RANDOM.integers(-9, 30, 400)).astype(dtype)
    b = (RANDOM.standard_normal(400) * 10.0 ** RANDOM.integers(-9, 9, 400)).astype(dtype)
    np.testing.assert_array_equal(apply(fmod, a, b), np.fmod(a, b))
    small = np.abs(a) < 1e6
    np.testing.assert_allclose(
        apply(mod, a[small], b[small]), np.mod(a[small], b[small]), rtol=1e-5, atol=1e-12
    )


@pytest.mark.parametrize("kind", SMALL_FLOATS)
def test_codes_of_small_floats(kind):
    dtype = element(kind).dtype
    codes = np.arange(1 << element(kind).bits).astype(np.uint8)
    exact = codes.view(dtype).astype(np.float32)
    form = SMALL_FLOATS[kind]
    found = apply(lambda x: decoded(x, form), codes.view(np.int8))
    np.testing.assert_array_equal(found, exact)
    finite = exact[np.isfinite(exact)]
    back = apply(lambda x: encoded(x, form), finite)
    np.testing.assert_array_equal(back.view(np.uint8).view(dtype).astype(np.float32), finite)
