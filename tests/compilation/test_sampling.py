"""Elements read at computed places: resized tensors, sampled images, regions, and what is wrong in them."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError, SabirError
from sabir.compilation import Compiled
from support.lowered import kernels_only

RANDOM = np.random.default_rng(7)


def hat(d):
    return np.maximum(0, 1 - d)


def cubic(d, a=-0.75):
    near = (a + 2) * d**3 - (a + 3) * d**2 + 1
    far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def resized(x, length, kernel, reach, corners, filtered):
    """The last axis resized by the formulas of the standard, in float64."""
    size = x.shape[-1]
    at = (
        np.arange(length) * (size - 1) / max(length - 1, 1)
        if corners
        else (np.arange(length) + 0.5) * size / length - 0.5
    )
    stretch = max(1, size / length) if filtered else 1
    reach = int(np.ceil(reach * stretch))
    places = np.floor(at)[:, None] + np.arange(1 - reach, reach + 1)
    weights = kernel(np.abs(places - at[:, None]) / stretch)
    weights /= weights.sum(axis=1, keepdims=True) if filtered else 1
    return (x[..., np.clip(places, 0, size - 1).astype(int)] * weights).sum(axis=-1)


@pytest.mark.parametrize("shape", ["2,3,9,7", "N,C,H,W"])
def test_resized_images(shape):
    for mode, kernel, reach in (("linear", hat, 1), ("cubic", cubic, 2)):
        for corners in (False, True):
            for target in ([18, 20], [4, 3], [9, 30]):
                for filtered in (False, True):
                    symbolic = shape[0] == "N"
                    if filtered and (corners or symbolic):
                        continue
                    name = "align_corners" if corners else "half_pixel"
                    text = f"""<ir_version: 10, opset_import: ["": 19]> g (float[{shape}] x) => (float[P0,P1,P2,P3] y)
                    <int64[2] sizes = {{{target[0]}, {target[1]}}}> {{
                        y = Resize <mode = "{mode}", coordinate_transformation_mode = "{name}",
                            antialias = {int(filtered)}, axes = [2, 3]> (x, , , sizes)
                    }}"""
                    x = RANDOM.standard_normal((2, 3, 9, 7)).astype(np.float32)
                    y = kernels_only(sabir.parse(text), {"x": x})["y"]
                    rows = resized(x.astype(np.float64), target[1], kernel, reach, corners, filtered)
                    expected = resized(rows.swapaxes(2, 3), target[0], kernel, reach, corners, filtered)
                    if target[0] == 9 and not filtered:
                        expected = rows.swapaxes(2, 3)
                    np.testing.assert_allclose(y, expected.swapaxes(2, 3), rtol=1e-4, atol=1e-5)


def test_an_axis_is_one_kernel():
    text = """<ir_version: 10, opset_import: ["": 19]> g (float[1,2,8,8] x) => (float[1,2,16,16] y)
    <int64[4] sizes = {1, 2, 16, 16}> {
        z = Resize <mode = "cubic"> (x, , , sizes)  y = Relu (z)
    }"""
    engine = Compiled(sabir.parse(text))
    engine.run({"x": np.ones((1, 2, 8, 8), np.float32)})
    (program,) = engine._plans
    assert len(program.plan.entries) == 2


GRID = """<ir_version: 10, opset_import: ["": 20]> g (float[N,C,H,W] x, float[N,P,Q,2] grid) => (float[P0,P1,P2,P3] y) {
    y = GridSample <padding_mode = "zeros"> (x, grid)
}"""


def sampled(x, grid):
    """Bilinear samples with zeros outside, in float64, one by one."""
    n, c, h, w = x.shape
    y = np.zeros((n, c, *grid.shape[1:3]))
    for i, p, q in np.ndindex(*grid.shape[:3]):
        at = ((grid[i, p, q, 1] + 1) * h - 1) / 2, ((grid[i, p, q, 0] + 1) * w - 1) / 2
        for dy, dx in np.ndindex(2, 2):
            row, column = int(np.floor(at[0])) + dy, int(np.floor(at[1])) + dx
            if 0 <= row < h and 0 <= column < w:
                y[i, :, p, q] += x[i, :, row, column] * (1 - abs(at[0] - row)) * (1 - abs(at[1] - column))
    return y


def test_images_of_several_shapes_in_one_session():
    session = sabir.Session(sabir.parse(GRID), engine="compiled")
    for shape, count in (((1, 3, 6, 5), 4), ((2, 3, 6, 5), 4), ((2, 20, 4, 9), 3), ((3, 1, 1, 7), 5)):
        x = RANDOM.standard_normal(shape).astype(np.float32)
        grid = RANDOM.uniform(-1.5, 1.5, (shape[0], count, 2, 2)).astype(np.float32)
        (y,) = session.run(None, {"x": x, "grid": grid})
        np.testing.assert_allclose(y, sampled(x.astype(np.float64), grid.astype(np.float64)), atol=2e-5)


def test_pixels_that_no_sample_reads_do_not_count():
    x = np.full((1, 2, 3, 3), np.nan, np.float32)
    x[:, :, 1, 1] = 5
    grid = np.array([[[[0, 0], [9, 9], [np.nan, 0], [np.inf, -np.inf]]]], np.float32)
    y = kernels_only(sabir.parse(GRID), {"x": x, "grid": grid})["y"]
    assert np.isnan(y[0, 0, 0, 0])  # neighbours of weight 0 are read
    np.testing.assert_array_equal(y[0, :, 0, 1:], 0)


ROI = """<ir_version: 10, opset_import: ["": 16]> g (float[1,9,4,4] x, float[R,4] rois, int64[R] items) => (float[P0,P1,P2,P3] y) {
    y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 1,
        coordinate_transformation_mode = "half_pixel"> (x, rois, items)
}"""


def test_regions():
    plane = np.arange(16, dtype=np.float32).reshape(4, 4)
    x = (plane + 100 * np.arange(9, dtype=np.float32)[:, None, None])[None]
    # a region of the whole map has its samples at 0.5 and 2.5 of both axes
    rois = np.array([[0, 0, 4, 4], [90, 90, 95, 95]], np.float32)
    y = kernels_only(sabir.parse(ROI), {"x": x, "rois": rois, "items": np.zeros(2, np.int64)})["y"]
    np.testing.assert_allclose(y[0, 0], [[2.5, 4.5], [10.5, 12.5]])
    np.testing.assert_allclose(y[0, 8] - 800, y[0, 0], atol=1e-4)
    np.testing.assert_array_equal(y[1], 0)


def regions_of(op, channels, **attributes):
    """A model of regions, and feeds: some lie inside, beyond the edges, outside, and in no order."""
    b = sabir.Builder(opsets={"": 16})
    x, rois = b.input("x", "float", ["N", channels, "H", "W"]), b.input("rois", "float", ["R", None])
    corners = np.concatenate([
        RANDOM.uniform(-4, 12, (20, 4)),
        [[1, 2, 9, 8], [3, 3, 3, 3], [40, 40, 50, 50]],
    ])
    items = RANDOM.integers(0, 2, 23)
    feeds = {"x": RANDOM.standard_normal((2, channels, 9, 11)).astype(np.float32)}
    if op == "RoiAlign":
        b.output(b.op(op, x, rois, b.input("items", "int64", ["R"]), **attributes), "y")
        return b.model(), feeds | {"rois": corners.astype(np.float32), "items": items}
    b.output(b.op(op, x, rois, **attributes), "y")
    return b.model(), feeds | {"rois": np.column_stack([items, corners]).astype(np.float32)}


@pytest.mark.parametrize("channels", [1, 70, 0])
@pytest.mark.parametrize(("op", "attributes"), [
    ("RoiAlign", {"output_height": 3, "output_width": 2}),
    ("RoiAlign", {"output_height": 2, "output_width": 3, "sampling_ratio": 2, "mode": "max"}),
    ("RoiAlign", {"output_width": 2, "mode": "max", "coordinate_transformation_mode": "output_half_pixel"}),
    ("MaxRoiPool", {"pooled_shape": [3, 2], "spatial_scale": 0.5}),
])  # fmt: skip
def test_regions_as_long_as_their_contents_say(op, attributes, channels):
    model, feeds = regions_of(op, channels, **attributes)
    y = kernels_only(model, feeds)["y"]
    np.testing.assert_allclose(y, sabir.Session(model, engine="reference").run(feeds)["y"], atol=2e-6)


def test_pixels_of_regions_that_are_no_numbers():
    for op, attributes in (
        ("RoiAlign", {"mode": "max"}),
        ("RoiAlign", {}),
        ("MaxRoiPool", {"pooled_shape": [2, 2]}),
    ):
        model, feeds = regions_of(op, 3, **attributes)
        feeds["x"][0, 1, 4:6, 5] = np.nan, np.inf
        y = kernels_only(model, feeds)["y"]
        np.testing.assert_allclose(y, sabir.Session(model, engine="reference").run(feeds)["y"], atol=2e-6)


@pytest.mark.parametrize("far", [1e5, 1e30, np.nan])
def test_a_region_without_end_is_left_to_the_interpreter(far):
    for op, attributes in (("RoiAlign", {}), ("MaxRoiPool", {"pooled_shape": [2, 2]})):
        model, feeds = regions_of(op, 3, **attributes)
        feeds["rois"][0, -2:] = far
        found: list[object] = []
        for engine in ("compiled", "reference"):
            try:
                found.append(sabir.Session(model, engine=engine).run(feeds)["y"])
            except SabirError as error:
                found.append(str(error))
        np.testing.assert_equal(*found)


@pytest.mark.parametrize("item", [-1, 2, np.nan])
def test_a_pooled_region_of_no_item_is_an_error_of_the_interpreter(item):
    model, feeds = regions_of("MaxRoiPool", 3, pooled_shape=[2, 2])
    feeds["rois"][5, 0] = item
    with pytest.raises(SabirError):
        sabir.Session(model, engine="compiled").run(feeds)


@pytest.mark.parametrize("item", [-1, 1, 1 << 40])
def test_a_region_of_no_item_is_an_error_of_the_interpreter(item):
    session = sabir.Session(sabir.parse(ROI), engine="compiled")
    x, rois = np.ones((1, 9, 4, 4), np.float32), np.array([[0, 0, 4, 4]], np.float32)
    with pytest.raises(EvaluationError, match=f"in item {item} of a batch of 1"):
        session.run(None, {"x": x, "rois": rois, "items": np.array([item])})


@pytest.mark.parametrize("index", [-1, 16])
def test_an_index_outside_of_an_unpooled_map_is_an_error_of_the_interpreter(index):
    text = """<ir_version: 10, opset_import: ["": 11]> g (float[1,1,2,2] x, int64[1,1,2,2] i) => (float[1,1,4,4] y) {
        y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i)
    }"""
    session = sabir.Session(sabir.parse(text), engine="compiled")
    with pytest.raises(EvaluationError, match="indices outside the 16 elements"):
        session.run(None, {"x": np.ones((1, 1, 2, 2), np.float32), "i": np.full((1, 1, 2, 2), index)})


@pytest.mark.parametrize("first", [-1, 3])
def test_steps_that_do_not_fit_into_a_cache_are_an_error_of_the_interpreter(first):
    text = """<ir_version: 13, opset_import: ["": 24]> g (float[1,4,2] past, float[1,2,2] new, int64[1] first) => (float[1,4,2] y) {
        y = TensorScatter <axis = 1> (past, new, first)
    }"""
    session = sabir.Session(sabir.parse(text), engine="compiled")
    feeds = {"past": np.zeros((1, 4, 2), np.float32), "new": np.ones((1, 2, 2), np.float32)}
    (y,) = session.run(None, feeds | {"first": np.array([2])})
    np.testing.assert_array_equal(y[0, :, 0], [0, 0, 1, 1])
    with pytest.raises(EvaluationError, match="do not fit into a cache of 4"):
        session.run(None, feeds | {"first": np.array([first])})


def test_elements_side_by_side_at_indices_of_32_bits():
    """Negative ones count from the end; one that is outside is the error of the interpreter."""
    x = RANDOM.standard_normal((3, 50)).astype(np.float32)
    for kind, table in (
        ("float", x),
        ("bool", x > 0),
        ("int8", (x * 50).astype(np.int8)),
        ("double", x.astype(np.float64)),
    ):
        text = f"""<ir_version: 10, opset_import: ["": 21]> g ({kind}[3,50] x, int32[K] i) => ({kind}[3,K] y) {{
            y = Gather <axis = 1> (x, i) }}"""
        for count in (1, 16, 37):
            indices = RANDOM.integers(-50, 50, count).astype(np.int32)
            y = kernels_only(sabir.parse(text), {"x": table, "i": indices})["y"]
            np.testing.assert_array_equal(y, table[:, indices], err_msg=f"{kind} {count}")
        for wrong in (50, -51, 2**31 - 1, -(2**31)):
            bad = {"x": table, "i": np.int32([*range(20), wrong])}
            with pytest.raises(EvaluationError, match=str(wrong)):
                Compiled(sabir.parse(text)).run(bad)


def test_an_image_of_every_second_pixel_is_a_view():
    x = RANDOM.standard_normal((2, 3, 8, 9)).astype(np.float32)
    for scale, expected in ((0.5, x[:, :, ::2, :8:2]), (0.25, x[:, :, ::4, :8:4])):
        rows, columns = expected.shape[2:]
        text = f"""<ir_version: 10, opset_import: ["": 19]> g (float[2,3,8,9] x) => (float[2,3,{rows},{columns}] y)
        <float[4] scales = {{1, 1, {scale}, {scale}}}> {{
            y = Resize <mode = "nearest", nearest_mode = "floor", coordinate_transformation_mode = "asymmetric">
                (x, , scales)
        }}"""
        model = sabir.parse(text)
        np.testing.assert_array_equal(kernels_only(model, {"x": x})["y"], expected)
        (kernel,) = Compiled(model).explain().kernels
        assert "take" not in kernel.spec
