"""Shapes and known contents with symbols, through operators that pad, pick, scatter and resample."""

import numpy as np
import pytest

from sabir.base import InferenceError
from sabir.inference import Inference
from sabir.ir import Builder, parse_dim, tensor_type

N, M, H, W = map(parse_dim, "NMHW")


def kinds(build, opset=21):
    """The types of what `build` makes of an image [N, 3, H, W]."""
    b = Builder(opset, check=False)
    b.output(build(b, b.input("x", "float", ["N", 3, "H", "W"])))
    engine = Inference(b.model(), strict=True)
    engine.run()
    return engine.types[b.graph.outputs[0]]


def ints(b, *values):
    return b.initializer("c", np.array(values, np.int64))


def floats(b, *values):
    return b.initializer("c", np.array(values, np.float32))


def batch(b):
    """A known vector of one symbol."""
    return b.Shape(b.input("y", "float", ["M"]))


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda b, x: b.Pad(x, ints(b, 1, 0, 0, 2, 1, 0, 1, -1)), (N + 2, 3, H + 1, W + 1)),
        (lambda b, x: b.Pad(x, ints(b, 1, 2), None, ints(b, -1)), (N, 3, H, W + 3)),
        (lambda b, x: b.Pad(x, b.input("p", "int64", [2]), None, ints(b, 0)), (None, 3, H, W)),
        (lambda b, x: b.Tile(x, ints(b, 3, 2, 1, 0)), (3 * N, 6, H, 0)),
        (lambda b, x: b.Resize(x, None, floats(b, 1, 1, 2, 0.5)), (N, 3, 2 * H, W // 2)),
        (lambda b, x: b.Resize(x, None, floats(b, 1, 1, 1, 0.6)), (N, 3, H, None)),
        (
            lambda b, x: b.Resize(x, None, None, b.Concat(ints(b, 8), batch(b), axis=0), axes=[2, 3]),
            (N, 3, 8, M),
        ),
        (
            lambda b, x: b.Resize(
                x, None, None, ints(b, 8, 8), axes=[2, 3], keep_aspect_ratio_policy="not_larger"
            ),
            (N, 3, None, None),
        ),
        (lambda b, x: b.TopK(x, batch(b), outputs=2)[1], (N, 3, H, M)),
        (lambda b, x: b.NonZero(x), (4, None)),
        (lambda b, x: b.Compress(x, b.initializer("m", np.array([True, False, True])), axis=1), (N, 2, H, W)),
        (
            lambda b, x: b.DepthToSpace(b.Pad(x, ints(b, 0, 1), None, ints(b, 1)), blocksize=2),
            (N, 1, 2 * H, 2 * W),
        ),
        (lambda b, x: b.SpaceToDepth(x, blocksize=2), (N, 12, H // 2, W // 2)),
        (lambda b, x: b.CenterCropPad(x, batch(b), axes=[-1]), (N, 3, H, M)),
        (lambda b, x: b.AffineGrid(b.input("t", "float", ["N", 2, 3]), b.Shape(x)), (N, H, W, 2)),
        (lambda b, x: b.GridSample(x, b.input("g", "float", ["N", 5, "M", 2])), (N, 3, 5, M)),
        (lambda b, x: b.Unique(x, axis=1, outputs=4)[2], (3,)),
        (lambda b, x: b.OneHot(b.Cast(x, to=7), ints(b, 9), floats(b, 0, 1), axis=1), (N, 9, 3, H, W)),
    ],
)
def test_shapes(build, shape):
    assert kinds(build).shape == shape


@pytest.mark.parametrize(
    ("build", "known"),
    [
        (lambda b, s: b.Tile(s, ints(b, 2)), (N, 3, H, W) * 2),
        (lambda b, s: b.Pad(s, ints(b, 1, -1), ints(b, 7)), (7, N, 3, H)),
        (lambda b, s: b.Pad(s, ints(b, 1, 0), mode="edge"), (N, N, 3, H, W)),
        (lambda b, s: b.ScatterND(s, b.initializer("i", np.array([[1]])), batch(b)), (N, M, H, W)),
        (lambda b, s: b.ScatterElements(s, ints(b, -1, 0), b.Tile(batch(b), ints(b, 2))), (M, 3, H, M)),
        (lambda b, s: b.Compress(s, b.initializer("m", np.array([True, False, True]))), (N, H)),
        (lambda b, s: b.NonZero(b.Add(s, ints(b, 1))), (0, 1, 2, 3)),
        (lambda b, s: b.Size(s), (4,)),
    ],
)
def test_contents(build, known):
    assert kinds(lambda b, x: build(b, b.Shape(x))).known == known


def test_the_size_of_a_symbolic_tensor():
    assert kinds(lambda b, x: b.Size(x)).known == (3 * N * H * W,)


def test_whether_a_symbol_is_zero_is_not_guessed():
    assert kinds(lambda b, x: b.NonZero(b.Shape(x))).shape == (1, None)


@pytest.mark.parametrize(
    "build",
    [
        lambda b, x: b.Pad(x, ints(b, 0, 0)),
        lambda b, x: b.Pad(x, ints(b, 0, -2, 0, 0, 0, -2, 0, 0)),
        lambda b, x: b.Tile(x, ints(b, 1, 2)),
        lambda b, x: b.Resize(x, None, floats(b, 1, 2)),
        lambda b, x: b.Resize(x),
        lambda b, x: b.TopK(x, ints(b, 4), axis=1, outputs=2)[0],
        lambda b, x: b.DepthToSpace(x, blocksize=2),
        lambda b, x: b.GridSample(x, b.input("g", "float", ["N", 5, 6, 3])),
        lambda b, x: b.ScatterElements(
            x, b.input("i", "int64", [1, 4, 1, 1]), b.input("u", "float", [1, 4, 1, 1])
        ),
        lambda b, x: b.AffineGrid(b.input("t", "float", ["N", 3, 4]), b.Shape(x)),
    ],
)
def test_contradictions(build):
    with pytest.raises(InferenceError):
        kinds(build)


def test_an_unknown_rank_stays_unknown():
    b = Builder(21)
    x = b.input("x", tensor_type("float", None))
    for value in (
        b.Pad(x, ints(b, 1, 1), None, ints(b, 0)),
        b.Trilu(x),
        b.GridSample(x, x),
        b.Resize(x, None, x),
    ):
        b.output(value)
    engine = Inference(b.model(), strict=True)
    engine.run()
    assert [engine.types[v].shape for v in b.graph.outputs] == [None] * 4
