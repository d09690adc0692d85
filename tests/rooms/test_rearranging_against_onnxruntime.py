# ruff: file-ignore[suspicious-non-cryptographic-random-usage]  seeds make the cases, nothing is secret
"""Padding, picking, scattering and resampling of random tensors, against onnxruntime."""

import random
from typing import Any

import numpy as np
import pytest

from sabir import dumps
from sabir.evaluation import Runner
from sabir.ir import Attribute, Builder, minimum_ir, tensor_type

onnxruntime = pytest.importorskip("onnxruntime")

COORDINATES = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]


def compare(operator, opset, *inputs, outputs=1, tolerance=1e-4, **facts):
    b = Builder(opset)
    values, feeds = [], {}
    for i, x in enumerate(inputs):
        values.append(None if x is None else b.input(f"i{i}", tensor_type(x.dtype, x.shape)))
        if x is not None:
            feeds[f"i{i}"] = x
    attributes: dict[str, Any] = {
        n: Attribute(n, "ints", tuple(v)) if isinstance(v, list) else v for n, v in facts.items()
    }
    made = b.op(operator, *values, outputs=outputs, **attributes)
    for i, value in enumerate(made if isinstance(made, tuple) else (made,)):
        b.output(value, f"o{i}", tensor_type("int64" if i else "float"))
    if operator == "NonMaxSuppression":
        b.graph.outputs[0].type = tensor_type("int64")
    model = b.model(ir_version=minimum_ir(21))
    quiet = onnxruntime.SessionOptions()
    quiet.intra_op_num_threads = 1
    expected = onnxruntime.InferenceSession(dumps(model), quiet).run(None, feeds)

    got = Runner(model).run(feeds)

    for ours, theirs in zip(got.values(), expected, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def some(numbers, *shape):
    return numbers.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("seed", range(20))
def test_pad(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    shape = [draw.randint(2, 5) for _ in range(draw.randint(1, 3))]
    pads = np.array([draw.randint(-1, n - 2) for n in shape * 2])
    axes = np.array(draw.sample(range(len(shape)), len(shape)))

    x = some(numbers, *shape)

    if ((np.array(shape) + pads[: len(shape)] + pads[len(shape) :]) > 0).all():
        compare(
            "Pad", 11, x, pads, np.array(7, np.float32), mode=draw.choice(["constant", "edge", "reflect"])
        )
        compare("Pad", 19, x, np.concatenate([pads[axes], pads[axes + len(shape)]]), None, axes, mode="wrap")


@pytest.mark.parametrize("seed", range(20))
def test_top_k_with_ties(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    size = draw.choice([7, 900])
    x = numbers.integers(0, 50, (3, size)).astype(np.float32)

    compare("TopK", 11, x, np.array([draw.randint(0, 7)]), outputs=2, largest=seed % 2)
    compare("TopK", 11, x.T.copy(), np.array([5]), outputs=2, axis=0, largest=seed % 2)


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
def test_scatters_with_duplicates(reduction):
    numbers = np.random.default_rng(1)
    x = some(numbers, 4, 5, 3)

    places = numbers.integers(-5, 5, (3, 7, 2))
    compare("ScatterElements", 18, x, places, some(numbers, 3, 7, 2), axis=1, reduction=reduction)
    tuples = numbers.integers(-4, 4, (6, 2))
    compare("ScatterND", 18, x, tuples, some(numbers, 6, 3), reduction=reduction)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_resize(mode, coordinates):
    draw, numbers = random.Random(mode + coordinates), np.random.default_rng(3)
    for _ in range(5):
        x = some(numbers, 1, 2, draw.randint(1, 8), draw.randint(1, 8))
        facts = {
            "mode": mode,
            "coordinate_transformation_mode": coordinates,
            "nearest_mode": draw.choice(ROUNDINGS),
        }
        if mode == "cubic":
            facts.update(exclude_outside=draw.randint(0, 1), cubic_coeff_a=draw.choice([-0.5, -0.75]))
        if mode != "nearest":
            facts["antialias"] = draw.randint(0, 1)
        sizes = np.array([draw.randint(1, 12), draw.randint(1, 12)])

        compare("Resize", 19, x, None, None, sizes, axes=[2, 3], **facts)


def test_resize_by_scales():
    numbers = np.random.default_rng(5)
    x = some(numbers, 1, 1, 8, 4)
    for scales in ([1, 1, 2, 1.5], [1, 1, 0.5, 0.75], [1, 1, 1, 0.25]):
        for mode in ("nearest", "linear"):
            compare("Resize", 10, x, np.array(scales, np.float32), mode=mode)
            compare("Resize", 13, x, None, np.array(scales, np.float32), mode=mode)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample(mode, padding):
    numbers = np.random.default_rng(7)
    for aligned in (0, 1):
        facts = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
        compare("GridSample", 20, some(numbers, 2, 3, 4, 5), 1.3 * some(numbers, 2, 6, 3, 2), **facts)
        if mode != "cubic":  # which onnxruntime has for images only
            compare(
                "GridSample", 20, some(numbers, 1, 2, 3, 4, 5), 1.3 * some(numbers, 1, 6, 3, 2, 3), **facts
            )


@pytest.mark.parametrize("seed", range(10))
def test_non_max_suppression(seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    count = draw.randint(1, 30)
    boxes = numbers.random((2, count, 4)).astype(np.float32)
    scores = numbers.integers(0, 9, (2, 3, count)).astype(np.float32) / 8
    limits = np.array(draw.randint(1, 9)), np.array(draw.random(), np.float32), np.array(0.3, np.float32)

    compare("NonMaxSuppression", 11, boxes, scores, *limits, center_point_box=seed % 2)
