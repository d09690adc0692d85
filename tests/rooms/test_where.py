"""Where copies the bits of what it chooses, for many elements as for few."""

import itertools

import ml_dtypes
import numpy as np

import sabir

TYPES = [
    np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.bool_, np.int8, np.uint16, np.int32, np.uint64,
    np.complex64, np.complex128, object,
]  # fmt: skip
SHAPES = [
    ((), ()),
    ((1,), (90, 1)),
    ((90, 90), ()),
    ((), (90, 90)),
    ((90, 90), (90, 90)),
    ((1, 90), (2, 1, 1)),
]


def values(kind, shape, seed):
    """Random bits, among them NaNs of every payload, infinities and zeros of both signs."""
    r, count = np.random.default_rng(seed), int(np.prod(shape))
    if kind is object:
        return np.array([str(n) for n in range(count)], object).reshape(shape)
    if kind is np.bool_:
        return r.integers(0, 2, shape).astype(bool)
    bits = r.integers(0, 256, count * np.dtype(kind).itemsize, np.uint8).view(kind).reshape(shape)
    return np.where(r.integers(0, 4, shape) == 0, bits.dtype.type(0), bits)


def model_of(kind):
    b = sabir.Builder(21)
    element = sabir.ir.ArrayTensor(np.zeros(1, kind)).element
    given = list(itertools.starmap(b.input, zip("cxy", ("bool", str(element), str(element)), strict=True)))
    b.output(b.Where(*given), "z")
    return b.model()


def test_it_copies_bits():
    for kind in TYPES:
        session = sabir.Session(model_of(kind), engine="reference")
        for seed, (first, second) in enumerate(SHAPES):
            x, y = values(kind, first, seed), values(kind, second, seed + 50)
            for shape in ((90, 90), (90, 1)):
                condition = np.random.default_rng(seed).integers(0, 2, shape).astype(bool)
                found = session.run({"c": condition, "x": x, "y": y})["z"]
                c, a, b = np.broadcast_arrays(condition, x, y)
                assert (found.dtype, found.shape) == (x.dtype, c.shape), kind
                expected = np.array([a[i] if c[i] else b[i] for i in np.ndindex(c.shape)], kind)
                if kind is object:
                    assert found.ravel().tolist() == expected.tolist()
                else:
                    assert found.tobytes() == expected.tobytes(), (kind, first, second)


def test_any_byte_but_zero_is_true():
    condition = np.tile(np.arange(256, dtype=np.uint8), 20)
    x = np.ones(condition.shape, np.float32)
    session = sabir.Session(model_of(np.float32), engine="reference")
    for y in (np.float32(0), np.float32(-0.0)):
        found = session.run({"c": condition.view(bool), "x": x, "y": y})["z"]
        assert found.tobytes() == np.where(condition != 0, x, y).tobytes()


def test_zeros_of_both_signs():
    condition = np.array(list(itertools.islice(itertools.cycle([True, False]), 5000)))
    session = sabir.Session(model_of(np.float64), engine="reference")
    for y in (0.0, -0.0):
        found = session.run({"c": condition, "x": np.full(5000, np.nan), "y": np.float64(y)})["z"]
        assert np.isnan(found[::2]).all()
        assert (np.signbit(found[1::2]) == np.signbit(y)).all()
