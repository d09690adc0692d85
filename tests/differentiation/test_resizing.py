"""The gradient of Resize, for every interpolation, transformation and way to state the new sizes."""

import numpy as np
import pytest

import sabir
from support.cases import each_of
from support.gradients import SEED, check, gradient_model

SHAPE = (1, 3, 4)
COORDINATES = [
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_crop_and_resize",
]  # fmt: skip
INTERPOLATIONS = [
    'mode = "nearest", nearest_mode = "ceil"', 'mode = "linear"', 'mode = "linear", antialias = 1',
    'mode = "cubic", exclude_outside = 1',
]  # fmt: skip
SCALES, SIZES = "float[3] scales = {1, 1.7, 0.6}", "int64[2] sizes = {5, 2}"
CALLS = [
    *[(SCALES, f'{how}, coordinate_transformation_mode = "{c}"') for how in INTERPOLATIONS for c in COORDINATES],
    (SIZES, 'mode = "linear", axes = [-1, 1]'),
    (SIZES, 'mode = "cubic", axes = [1, 2], keep_aspect_ratio_policy = "not_larger"'),
    ("int64[3] sizes = {2, 5, 7}", 'mode = "linear", keep_aspect_ratio_policy = "not_smaller"'),
    ("float[1] scales = {1.1}", 'mode = "linear", axes = [1]'),  # as many elements, and others
]  # fmt: skip


REPEATS = [
    ("float[3] scales = {1, 2, 3}", 'mode = "nearest"'),
    (
        "float[3] scales = {1, 3, 1}",
        'mode = "nearest", coordinate_transformation_mode = "pytorch_half_pixel"',
    ),
    (
        "int64[3] sizes = {2, 6, 4}",
        'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"',
    ),
]


def model_of(bounds, attributes, shape="1,3,4"):
    roi_name = "roi" if "tf_crop" in attributes else '""'
    roi = "double[6] roi = {0, 0.1, 0.2, 1, 0.8, 1.3}"
    scales, sizes = ("scales", "") if "scales" in bounds else ('""', ", sizes")
    return sabir.parse(
        '<ir_version: 10, opset_import: ["": 19]>\n'
        f"main (double[{shape}] x) => (double[?,?,?] y) <{bounds}, {roi}> {{\n"
        f"  y = Resize <{attributes}, extrapolation_value = 3.0> (x, {roi_name}, {scales}{sizes})\n}}"
    )


@each_of("bounds, attributes", CALLS)
def test_a_call(bounds, attributes):
    x = np.random.default_rng(3).standard_normal(SHAPE)
    check(model_of(bounds, attributes), {"x": x}, "y", ["x"])


@pytest.mark.parametrize(("bounds", "attributes"), [CALLS[1], *CALLS[-4:]])
def test_sizes_that_only_a_run_knows(bounds, attributes):
    """The matrices follow from the sizes at run time."""
    feeds = {"x": np.random.default_rng(3).standard_normal(SHAPE)}
    static, open_ = (model_of(bounds, attributes, shape) for shape in ("1,3,4", "N,H,W"))
    feeds[SEED] = np.random.default_rng(4).standard_normal(sabir.evaluate(static, feeds)["y"].shape)
    static, open_ = (gradient_model(model, "y", ["x"]) for model in (static, open_))
    expected, found = (sabir.evaluate(model, feeds)["d_y_d_x"] for model in (static, open_))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_an_axis_that_stays_is_not_multiplied():
    found = gradient_model(model_of(SCALES, 'mode = "linear"'), "y", ["x"])
    assert sum(node.op == "MatMul" for node in found.graph) == 2


@each_of("bounds, attributes", REPEATS)
def test_copies_are_added_up(bounds, attributes):
    x = np.random.default_rng(3).standard_normal(SHAPE)
    found, _, _ = check(model_of(bounds, attributes), {"x": x}, "y", ["x"])
    assert "MatMul" not in {node.op for node in found.graph}
