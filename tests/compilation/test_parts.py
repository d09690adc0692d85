"""Tensors that are joined or padded only to be joined or padded again: each part is written once."""

import numpy as np
import pytest

import sabir
from support.lowered import kernels_only

RANDOM = np.random.default_rng(5)


def model_of(build, *shapes):
    b = sabir.Builder(opsets={"": 21})
    values = [b.input(f"x{i}", "float", list(shape)) for i, shape in enumerate(shapes)]
    results = build(b, *values)
    for name, y in zip("yz", results if isinstance(results, tuple) else (results,), strict=False):
        b.output(y, name)
    return b.model()


def framed(b, x):
    """With one more element at both ends of the last two axes."""
    return b.Pad(x, np.array([0, 0, 1, 1, 0, 0, 1, 1]))


def twice(b, part, y):
    return b.Concat(part, y, part, axis=2)


def beside(b, part, y):
    return b.Concat(part, y, axis=2), part


# what is computed, and how many kernels: one for each part, and for each side of a frame with a number
MODELS = {
    "joined twice": (lambda b, x, y: b.Concat(b.Concat(b.Relu(x), y, axis=1), b.Neg(x), axis=1), 3),
    "joined along two axes": (lambda b, x, y: b.Concat(b.Concat(x, y, axis=1), b.Concat(y, x, axis=1), axis=2), 4),
    "joined and padded": (lambda b, x, y: framed(b, b.Concat(b.Relu(x), y, axis=1)), 2 + 4),
    "reflected": (lambda b, x, y: b.Pad(b.Add(x, y), np.array([0, 0, 1, 2, 0, 0, 0, 1]), mode="reflect"), 4),
    "stacked": (lambda b, x, y: b.Concat(*(b.Unsqueeze(b.Relu(v), [1]) for v in (x, y)), axis=1), 2),
    "joined in other shapes": (
        lambda b, x, y: b.Concat(b.Reshape(b.Concat(x, y, axis=3), [2, 3, -1]), b.Reshape(x, [2, 3, -1]), axis=2), 3),
    "one part twice": (lambda b, x, y: twice(b, b.Concat(x, y, axis=2), y), 4),
    "a part that is a result": (lambda b, x, y: beside(b, b.Concat(x, y, axis=2), y), 4),
}  # fmt: skip


@pytest.mark.parametrize("filters", [1, 2])
def test_products_write_parts_of_other_shapes(filters):
    x, w = (RANDOM.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 4, 5), (3, filters, 3, 2)))
    model = model_of(lambda b, x: b.ConvTranspose(x, w, strides=[2, 2]), (2, 3, "H", 5))
    want = sabir.Session(model, engine="reference").run({"x0": x})["y"]
    np.testing.assert_allclose(kernels_only(model, {"x0": x})["y"], want, atol=1e-5)
    stacked = model_of(lambda b, x: b.Concat(*(b.Unsqueeze(b.MatMul(x, v), [-1]) for v in (w[0, 0].T, w[1, 0].T)), axis=-1),
        (4, 2))  # fmt: skip
    feeds = {"x0": x[0, 0, :, :2].copy()}
    want = sabir.Session(stacked, engine="reference").run(feeds)["y"]
    np.testing.assert_allclose(kernels_only(stacked, feeds)["y"], want, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_parts_are_written_once(name):
    build, count = MODELS[name]
    feeds = {f"x{i}": RANDOM.standard_normal((2, 3, 4, 5)).astype(np.float32) for i in range(2)}
    for shape in ((2, 3, 4, 5), (2, 3, "H", 5)):
        model = model_of(build, shape, shape)
        found = kernels_only(model, feeds)
        for output, y in sabir.Session(model, engine="reference").run(feeds).items():
            np.testing.assert_allclose(found[output], y, rtol=1e-6)
        assert (
            len(
                sabir
                .Session(model, engine="compiled")
                .explain({k: v.shape for k, v in feeds.items()})
                .kernels
            )
            == count
        )
