"""The gradients of convolutions and poolings: strides, gaps, padding, groups, and elements that no window reads."""

import numpy as np
import pytest

import sabir
from support.cases import each_of
from support.gradients import SEED, check, gradient_model

CONVOLUTIONS = [  # operator, attributes, shapes of x and w
    ("Conv", "strides = [2], pads = [1, 2]", "1,2,6", "3,2,3"),
    ("Conv", "strides = [3], dilations = [2]", "2,1,9", "2,1,2"),  # the last elements are not read
    ("Conv", "group = 2, dilations = [2, 1], pads = [2, 0, 1, 1]", "1,4,3,4", "6,2,2,3"),
    ("Conv", 'auto_pad = "SAME_LOWER", strides = [2, 3]', "1,1,4,5", "1,1,3,2"),
    ("Conv", 'auto_pad = "SAME_UPPER", kernel_shape = [2, 3], dilations = [1, 2]', "1,1,3,4", "2,1,2,3"),
    ("Conv", "group = 3", "2,3,2,3", "3,1,1,1"),
    ("Conv", "group = 1", "1,1,2,3,2", "1,1,2,2,1"),
    ("ConvTranspose", "strides = [2], pads = [1, 0], output_padding = [1]", "1,2,3", "2,1,3"),
    ("ConvTranspose", "strides = [1], dilations = [3], output_padding = [2]", "1,1,3", "1,2,2"),
    ("ConvTranspose", "group = 2, strides = [2, 1]", "1,4,2,3", "4,3,1,2"),
    ("ConvTranspose", 'auto_pad = "SAME_UPPER", strides = [2]', "1,1,3", "1,1,4"),
    ("ConvTranspose", "output_shape = [9], strides = [3], output_padding = [1]", "1,1,3", "1,1,4"),
]
POOLINGS = [  # operator, attributes, shape of x
    ("MaxPool", "kernel_shape = [2, 3], strides = [2, 3]", "2,1,5,6"),  # side by side, with a rest
    ("MaxPool", "kernel_shape = [3], strides = [2], pads = [1, 1]", "1,2,7"),
    ("MaxPool", "kernel_shape = [2, 2], storage_order = 1, dilations = [2, 1]", "1,1,4,3"),
    ("AveragePool", "kernel_shape = [2, 2], strides = [2, 2]", "1,2,4,5"),
    ("AveragePool", "kernel_shape = [3, 2], pads = [1, 0, 1, 1], count_include_pad = 1", "1,1,3,4"),
    ("AveragePool", "kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1], ceil_mode = 1", "1,1,4,4"),
    ("AveragePool", 'kernel_shape = [2, 1, 2], auto_pad = "SAME_UPPER", strides = [2, 1, 1]', "1,1,3,2,3"),
    ("LpPool", "kernel_shape = [2, 2], p = 3, pads = [0, 1, 0, 1]", "1,1,3,3"),
    ("LpPool", "kernel_shape = [2], strides = [2], p = 1", "1,2,5"),
]


def numbers(shape, seed=0):
    """Different numbers, in no order and none near 0."""
    size = int(np.prod(shape))
    return ((np.random.default_rng(seed).permutation(size) + 1) / 10 * (-1) ** np.arange(size)).reshape(shape)


def sizes(shape):
    return tuple(map(int, shape.split(",")))


def model_of(op, attributes, x, w=""):
    """The model, with a bias for a convolution; sizes may be numbers or names."""
    rank = ",".join("?" * len(x.split(",")))
    more, inputs = (f", double[{w}] w, double[M] b", "(x, w, b)") if w else ("", "(x)")
    return sabir.parse(
        '<ir_version: 10, opset_import: ["": 21]>\n'
        f"main (double[{x}] x{more}) => (double[{rank}] y) {{ y = {op} <{attributes}> {inputs} }}"
    )


def feeds_of(op, attributes, x, w):
    group = int(attributes.partition("group = ")[2][:1] or 1)
    filters = sizes(w)[0] if op == "Conv" else sizes(w)[1] * group
    return {"x": numbers(sizes(x)), "w": numbers(sizes(w), 1), "b": numbers((filters,), 2)}


@each_of("op, attributes, x, w", CONVOLUTIONS, group=lambda op, *_: op)
def test_convolutions(op, attributes, x, w):
    check(model_of(op, attributes, x, w), feeds_of(op, attributes, x, w), "y", ["x", "w", "b"])


@each_of("op, attributes, x", POOLINGS)
def test_poolings(op, attributes, x):
    check(model_of(op, attributes, x), {"x": numbers(sizes(x))}, "y", ["x"])


@each_of("op, attributes, x, w", CONVOLUTIONS)
def test_a_convolution_whose_sizes_only_a_run_knows(op, attributes, x, w):
    feeds = feeds_of(op, attributes, x, w)
    static = model_of(op, attributes, x, w)
    feeds[SEED] = numbers(sabir.evaluate(static, feeds)["y"].shape, 3)
    named = (",".join(f"{n}{i}" for i, _ in enumerate(sizes(s))) for n, s in (("x", x), ("w", w)))
    open_ = model_of(op, attributes, *named)
    expected, found = (
        sabir.evaluate(gradient_model(m, "y", ["x", "w", "b"]), feeds) for m in (static, open_)
    )
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("stride", "expected"), [(1, [1, 2, 3, 0]), (2, [1, 0, 2, 0])])
def test_the_first_of_equal_maxima_has_the_gradient(stride, expected):
    model = gradient_model(
        model_of("MaxPool", f"kernel_shape = [2], strides = [{stride}]", "1,1,4"), "y", ["x"]
    )
    feeds = {
        "x": np.array([[[3.0, 3.0, 3.0, 1.0]]]),
        SEED: np.arange(1.0, max(expected) + 1).reshape(1, 1, -1),
    }
    np.testing.assert_array_equal(sabir.evaluate(model, feeds)["d_y_d_x"], [[expected]])


def test_a_convolution_without_windows():
    """Neither of known sizes, nor of sizes that only a run decides; other runs of the model have windows."""
    text = """<ir_version: 10, opset_import: ["" : 21]>
        g (float[{x}] x, float[1,1,3,3] w) => (float[1,1,{y}] y) {{ y = Conv <strides = [2, 1]> (x, w) }}"""
    w = np.ones((1, 1, 3, 3), np.float32)
    for sizes, result, shapes in (
        ("1,1,2,2", "0,0", [(2, 2)]),
        ("1,1,H,W", "?,?", [(2, 2), (5, 4), (2, 5), (6, 2)]),
    ):
        model = sabir.differentiate(sabir.parse(text.format(x=sizes, y=result)), "y", ["x", "w"])
        for engine in ("reference", "compiled"):
            session = sabir.Session(model, engine=engine)
            for h, width in shapes:
                image = np.arange(h * width, dtype=np.float32).reshape(1, 1, h, width)
                found = session.run({"x": image, "w": w})
                windows = [(i, j) for i in range(0, h - 2, 2) for j in range(width - 2)]
                d_x, d_w = np.zeros_like(image), np.zeros_like(w)
                for i, j in windows:
                    d_x[..., i : i + 3, j : j + 3] += 1
                    d_w += image[..., i : i + 3, j : j + 3]
                np.testing.assert_array_equal(found["grad_x"], d_x)
                np.testing.assert_array_equal(found["grad_w"], d_w)
