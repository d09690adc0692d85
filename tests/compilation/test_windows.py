"""Convolutions and poolings as kernels: whatever the window, they compute what the interpreter does."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.backend import CpuBackend
from sabir.compilation.native import host, team
from sabir.evaluation import Runner
from support.lowered import kernels_only

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'


def integers(shape: tuple[int, ...], seed: int, dtype: str = "float32") -> np.ndarray:
    """Small integers, of which sums of products are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def same(
    model: sabir.Model, *feeds: dict[str, np.ndarray], tolerance: float = 0, threads: int = 2
) -> Compiled:
    """Run a model in both engines; no call may be left to the interpreter."""
    compiled, runner = Compiled(model, threads=threads), Runner(model)
    for feed in feeds:
        expected = runner.run(feed)
        for name, y in compiled.run(feed).items():
            assert y.dtype == expected[name].dtype
            assert y.shape == expected[name].shape
            np.testing.assert_allclose(y, expected[name], rtol=tolerance, atol=tolerance)
    assert compiled.explain().evaluated == ()
    return compiled


def conv(
    x: str,
    weights: tuple[int, ...],
    *,
    bias: bool = True,
    element: str = "float",
    after: str = "",
    **attributes: Any,
) -> sabir.Model:
    """A model of a Conv of `x: TYPE` with constant weights, and what follows it."""
    b = sabir.Builder(opsets={"": 21})
    shape = [int(d) if d.isdigit() else d for d in x.split(",")]
    dtype = {"float": "float32", "double": "float64"}[element]
    operands: list[Any] = [b.input("x", element, shape), integers(weights, 1, dtype)]
    if bias:
        operands.append(integers(weights[:1], 2, dtype))
    y = b.Conv(*operands, **attributes)
    b.output(getattr(b, after)(y) if after else y, "y")
    return b.model()


@pytest.mark.parametrize("element", ["float", "double"])
def test_convolutions_of_one_to_three_dimensions(element: str):
    dtype = {"float": "float32", "double": "float64"}[element]
    cases: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
        ((2, 3, 11), (5, 3, 4), {"strides": [2], "pads": [1, 3]}),
        ((2, 3, 9, 7), (17, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((1, 16, 8, 9), (33, 16, 1, 1), {}),
        ((3, 4, 8, 9), (6, 4, 1, 1), {"strides": [2, 3]}),
        ((1, 5, 10, 12), (7, 5, 2, 3), {"dilations": [3, 2], "strides": [1, 2], "pads": [2, 0, 1, 4]}),
        ((1, 1, 9, 9), (3, 1, 3, 3), {"dilations": [2, 2]}),
        ((2, 6, 7, 7), (9, 2, 3, 3), {"group": 3, "pads": [1, 0, 0, 1]}),
        ((1, 6, 5, 5), (12, 1, 3, 3), {"group": 6}),
        ((2, 18, 7, 9), (18, 1, 3, 3), {"group": 18, "pads": [1, 1, 1, 1]}),
        ((1, 4, 8, 8), (4, 1, 5, 5), {"group": 4, "strides": [3, 2], "pads": [2, 2, 2, 2]}),
        ((1, 20, 19), (20, 1, 18), {"group": 20, "dilations": [1]}),
        ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), {"strides": [1, 2, 1], "pads": [0, 1, 0, 1, 0, 2]}),
        ((1, 3, 4, 5, 6), (3, 1, 2, 2, 2), {"group": 3, "dilations": [2, 1, 3]}),
        ((0, 3, 5, 5), (4, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
        ((1, 2048, 3, 5), (70, 2048, 1, 1), {}),
        ((1, 130, 5, 5), (70, 130, 4, 4), {"pads": [2, 2, 2, 2]}),
    ]
    for shape, weights, attributes in cases:
        model = conv(",".join(map(str, shape)), weights, element=element, **attributes)
        same(model, {"x": integers(shape, 3, dtype)})


def test_windows_that_reach_far_out_of_the_image_are_divided():
    """Results that read the same taps are a product of their own, whose taps are all inside."""
    for x, weights, attributes, products in (
        ("2,9,20,20", (17, 9, 3, 3), {"pads": [12, 12, 12, 12], "dilations": [12, 12]}, 9),
        ("1,9,16,30", (17, 9, 3, 3), {"pads": [8, 1, 8, 1], "dilations": [8, 1]}, 2),
        ("1,9,24,24", (17, 9, 3, 3), {"pads": [14, 9, 0, 9], "dilations": [7, 9]}, 9),
        ("1,9,40", (5, 9, 4), {"pads": [30, 0], "dilations": [10]}, 4),
        ("1,9,60", (33, 9, 3), {"pads": [20, 20], "dilations": [20], "strides": [2]}, 3),
        ("1,9,20,20", (17, 9, 3, 3), {"auto_pad": "SAME_LOWER", "dilations": [8, 8]}, 9),
        ("1,9,20,20", (17, 9, 3, 3), {"pads": [1, 1, 1, 1]}, 1),
        ("1,9,6,6", (17, 9, 3, 3), {"pads": [30, 30, 30, 30], "dilations": [6, 6]}, 1),
    ):
        model = conv(x, weights, after="Relu", **attributes)
        compiled = same(model, {"x": integers([int(d) for d in x.split(",")], 3)})
        found = [kernel.kind for kernel in compiled.explain().kernels]
        assert found.count("product") == products, (x, attributes)


def test_taps_that_see_nothing_but_padding_are_left_out():
    """A dilation larger than the image leaves the tap in the middle: a ninth of the products."""
    for x, weights, attributes, taps in (
        ("1,9,16,16", (17, 9, 3, 3), {"pads": [24] * 4, "dilations": [24, 24]}, 1),
        ("1,9,16,16", (17, 9, 3, 3), {"pads": [36] * 4, "dilations": [36, 36]}, 1),
        ("1,9,16,16", (17, 9, 3, 3), {"pads": [16, 2, 16, 2], "dilations": [16, 2]}, 3),
        ("1,6,9,12", (6, 1, 3, 5), {"pads": [9, 2, 9, 2], "dilations": [9, 1], "group": 6}, 5),
        ("1,9,7", (5, 9, 4), {"pads": [20, 10], "dilations": [10]}, 1),
        ("1,9,7", (5, 9, 3), {"pads": [9, 9], "dilations": [9], "strides": [4]}, 1),
    ):
        shape = [int(d) for d in x.split(",")]
        compiled = same(conv(x, weights, **attributes), {"x": integers(shape, 3)})
        (y,) = compiled.run({"x": integers(shape, 3)}).values()
        results = y.size * weights[1]
        plan = compiled.compile({"x": integers(shape, 3)})
        assert 2 * results * taps <= plan.flops < 2 * results * (taps + 1), (x, attributes)


def test_sizes_that_only_a_run_knows():
    for auto_pad, strides, group in itertools.product(
        ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), ([1, 1], [2, 3]), (1, 6)
    ):
        model = conv(
            "N,6,H,W", (6, 6 // group, 3, 2), strides=strides, auto_pad=auto_pad, group=group, bias=False
        )
        shapes = (1, 6, 5, 8), (4, 6, 9, 6), (2, 6, 3, 2), (0, 6, 5, 5)
        same(model, *({"x": integers(shape, 4)} for shape in shapes))


def test_transposed_convolutions():
    for shape, weights, attributes in [
        ((2, 3, 5), (3, 4, 3), {"strides": [2], "pads": [1, 0]}),
        ((1, 4, 5, 6), (4, 17, 2, 2), {"strides": [2, 2]}),
        ((2, 3, 4, 5), (3, 2, 3, 4), {"strides": [2, 3], "pads": [1, 0, 2, 3], "output_padding": [1, 2]}),
        ((1, 2, 4, 3), (2, 3, 2, 3), {"strides": [3, 2], "dilations": [2, 4], "auto_pad": "SAME_UPPER"}),
        ((1, 6, 3, 4), (6, 2, 3, 3), {"group": 3, "strides": [2, 1], "auto_pad": "SAME_LOWER"}),
        ((1, 5, 4, 4), (5, 1, 3, 3), {"group": 5, "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((1, 2, 3, 3), (2, 2, 1, 1), {"strides": [2, 3], "output_padding": [1, 0]}),
        ((1, 2, 3, 2, 3), (2, 3, 2, 3, 2), {"strides": [1, 2, 2]}),
        ((0, 2, 3), (2, 3, 2), {"strides": [2]}),
    ]:
        for symbolic in (False, True):
            b = sabir.Builder(opsets={"": 21})
            x = b.input("x", "float", [f"d{i}" if symbolic and i != 1 else d for i, d in enumerate(shape)])
            bias = integers((weights[1] * attributes.get("group", 1),), 2)
            y = b.ConvTranspose(x, integers(weights, 1), bias, **attributes)
            b.output(b.Relu(y), "y")
            same(b.model(), {"x": integers(shape, 3)})


def test_weights_that_vary():
    model = sabir.parse(f"""{HEAD}
        g (float[N,4,H,W] x, float[6,4,3,3] w, float[4,1,3,3] v, float[6] b) => (y, z) {{
            y = Conv (x, w, b)
            z = Conv <group = 4> (x, v) }}""")
    feeds = {"x": integers((2, 4, 6, 7), 1), "w": integers((6, 4, 3, 3), 2), "v": integers((4, 1, 3, 3), 3)}
    same(model, feeds | {"b": integers((6,), 4)})


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_poolings(op: str):
    for shape, attributes in [
        ((2, 5, 9, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((2, 18, 9, 8), {"kernel_shape": [2, 3], "strides": [2, 1], "ceil_mode": 1}),
        ((1, 3, 9, 8), {"kernel_shape": [3, 2], "strides": [3, 3], "pads": [1, 0, 2, 1], "ceil_mode": 1}),
        ((1, 1, 12), {"kernel_shape": [4], "dilations": [2]}),
        ((1, 2, 7, 6, 5), {"kernel_shape": [2, 2, 2], "auto_pad": "SAME_LOWER", "strides": [2, 2, 2]}),
        ((1, 2, 30), {"kernel_shape": [20], "strides": [3]}),
        ((0, 2, 7), {"kernel_shape": [3]}),
    ]:
        for options in ({}, {"count_include_pad": 1}) if op == "AveragePool" else ({},):
            for symbolic in (False, True):
                b = sabir.Builder(opsets={"": 21})
                x = b.input(
                    "x", "float", [f"d{i}" if symbolic and i != 1 else d for i, d in enumerate(shape)]
                )
                b.output(getattr(b, op)(x, **attributes, **options), "y")
                same(b.model(), {"x": integers(shape, 5)}, tolerance=1e-6)


def test_integers_and_nan_in_pools():
    model = sabir.parse(f"""{HEAD}
        g (int8[1,3,7] x, uint8[1,3,7] y, float[1,1,5] z) => (a, b, c) {{
            a = MaxPool <kernel_shape = [3], pads = [1, 1]> (x)
            b = MaxPool <kernel_shape = [2], strides = [2]> (y)
            c = MaxPool <kernel_shape = [3], pads = [2, 2]> (z) }}""")
    z = np.float32([[[np.nan, -np.inf, -1, -np.inf, -np.inf]]])
    x = np.arange(-100, -79, dtype=np.int8).reshape(1, 3, 7)
    same(model, {"x": x, "y": x.view(np.uint8), "z": z})


def test_a_network_stays_in_one_order():
    """Everything but the input and the outputs is computed with the channels last; each map joins a kernel."""
    model = sabir.parse(f"""{HEAD}
        g (float[N,3,H,W] x, float[8,3,3,3] w, float[8,8,1,1] v, float[8,1,3,3] d, float[8] p) => (y, z, t) {{
            a = Conv <pads = [1, 1, 1, 1]> (x, w)
            b = Relu (a)
            c = Conv (b, v, p)
            s = Add (c, b)
            r = Relu (s)
            e = Conv <pads = [1, 1, 1, 1], group = 8> (r, d)
            i = BatchNormalization (e, p, p, p, p)
            m = MaxPool <kernel_shape = [2, 2]> (i)
            j = Concat <axis = 1> (i, s)
            l = Sigmoid (j)
            q = GlobalAveragePool (l)
            y = Flatten (q)
            z = Mish (m)
            t = Flatten (r)
        }}""")
    constants = {"w": (8, 3, 3, 3), "v": (8, 8, 1, 1), "d": (8, 1, 3, 3)}
    feeds = {name: integers(shape, n) for n, (name, shape) in enumerate(constants.items())}
    feeds["p"] = np.arange(1, 9, dtype=np.float32)
    same(
        model,
        feeds | {"x": integers((2, 3, 5, 6), 7)},
        feeds | {"x": integers((1, 3, 8, 4), 8)},
        tolerance=1e-4,
    )


def test_several_filters_of_a_channel_alone_are_combined_like_one():
    x, w = integers((2, 6, 9, 8), 1), integers((18, 1, 3, 3), 2)
    for shape in ("2,6,9,8", "N,6,H,W"):
        model = sabir.parse(f"""{HEAD} g (float[{shape}] x, float[18,1,3,3] w) => (float[a,b,c,d] y) {{
            y = Conv <group = 6, pads = [1, 1, 1, 1]> (x, w) }}""")
        kinds = {kernel.kind for kernel in same(model, {"x": x, "w": w}).explain().kernels}
        assert "product" not in kinds


@pytest.mark.parametrize("element", ["float", "double"])
def test_groups_of_few_channels_are_mixed_in_vectors(element: str):
    cases: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
        ("2,20,9,11", (2, 20, 9, 11), (20, 4, 3, 3), {"group": 5, "pads": [1, 1, 1, 1]}),
        ("N,24,H,W", (2, 24, 10, 14), (24, 8, 5, 3), {"group": 3, "dilations": [1, 3], "strides": [2, 1]}),
        ("1,38,30", (1, 38, 30), (38, 2, 4), {"group": 19, "strides": [3]}),
        ("1,8,3,5,6", (1, 8, 3, 5, 6), (8, 4, 2, 2, 3), {"group": 2, "pads": [0, 1, 1, 0, 1, 1]}),
        ("1,12,7,7", (1, 12, 7, 7), (12, 3, 3, 3), {"group": 4}),  # not as many as a part of a vector
        ("1,8,7,7", (1, 8, 7, 7), (16, 2, 3, 3), {"group": 4}),  # more filters than channels
    ]
    machine = host()
    for bits in (machine.vector_bits, 128):  # there a group may be wider than a vector
        described = replace(machine, vector_bits=bits)
        backend = CpuBackend(described, team(2, described), 2)
        for declared, shape, weights, attributes in cases:
            model = conv(declared, weights, element=element, after="Relu", **attributes)
            compiled = Compiled(model, backend=backend)
            feeds = {"x": integers(shape, 3, {"float": "float32", "double": "float64"}[element])}
            np.testing.assert_array_equal(compiled.run(feeds)["y"], Runner(model).run(feeds)["y"])
            specs = [k.spec for k in compiled.explain().kernels if "channels places" in k.spec]
            assert bool(specs) == (weights[0] == shape[1] and weights[1] in {2, 4, 8})
            assert all(f"lanes {bits // (32 if element == 'float' else 64)}" in spec for spec in specs)


def test_few_filters_side_by_side_with_their_taps():
    cases: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
        ("2,8,9,11", (2, 8, 9, 11), (3, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
        ("N,9,H,W", (2, 9, 10, 14), (1, 9, 5, 4), {"dilations": [1, 3], "strides": [2, 1], "pads": [0, 4, 1, 5]}),
        ("1,16,30", (1, 16, 30), (4, 16, 4), {}),
        ("1,8,3,5,6", (1, 8, 3, 5, 6), (5, 8, 2, 2, 3), {"pads": [0, 1, 1, 0, 1, 1]}),
    ]  # fmt: skip
    for declared, shape, weights, attributes in cases:
        model = conv(declared, weights, after="Relu", **attributes)
        compiled = same(model, {"x": integers(shape, 3)})
        (product,) = [k for k in compiled.explain().kernels if k.kind == "product"]
        assert "Relu" not in str(product.nodes), (
            "the taps along the last axis are added by a kernel behind it"
        )


def test_groups_of_channels_are_split_and_shuffled():
    model = sabir.parse(f"""{HEAD}
        g (float[1,4,6,6] x, float[8,4,3,3] w, float[8,2,1,1] v) => (y) {{
            shape = Constant <value_ints = [1, 2, 4, 4, 4]> ()
            back = Constant <value_ints = [1, 8, 4, 4]> ()
            a = Conv (x, w)
            g = Reshape (a, shape)
            t = Transpose <perm = [0, 2, 1, 3, 4]> (g)
            s = Reshape (t, back)
            b = Conv <group = 4> (s, v)
            c, d = Split <axis = 1, num_outputs = 2> (b)
            y = Mul (c, d)
        }}""")
    feeds = {"x": integers((1, 4, 6, 6), 1), "w": integers((8, 4, 3, 3), 2), "v": integers((8, 2, 1, 1), 3)}
    same(model, feeds)


def test_a_long_epilogue_on_several_axes_of_rows():
    model = sabir.parse(f"""{HEAD}
        g (float[2,3,5,7] x, float[20,3,2,2] w) => (y) {{
            a = Conv (x, w)  b = Mish (a)  c = Tanh (b)  d = Erf (c)  e = Softplus (d)  y = Gelu (e) }}""")
    same(model, {"x": integers((2, 3, 5, 7), 1), "w": integers((20, 3, 2, 2), 2) / 9}, tolerance=1e-5)


def test_an_image_has_the_same_bits_in_any_batch_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    b = sabir.Builder(opsets={"": 21})
    x = b.input("x", "float", ["N", 7, "H", 9])
    y = b.Conv(x, rng.random((512, 7, 3, 3), np.float32), pads=[1, 1, 1, 1])
    y = b.Conv(y, rng.random((37, 512, 3, 4), np.float32), pads=[1, 1, 1, 2])  # in blocks of its taps
    b.output(b.Conv(y, rng.random((37, 1, 3, 3), np.float32), group=37), "y")
    model, image = b.model(), rng.random((5, 7, 6, 9), np.float32)

    one, two = (Compiled(model, threads=n) for n in (1, 2))
    whole = one.run({"x": image})["y"]

    # the cache holds panels of vectors of 128 bits whole
    assert any("blocked" in kernel.spec for kernel in one.explain().kernels) == (host().vector_bits > 128)
    assert (two.run({"x": image})["y"] == whole).all()
    for i in range(5):
        assert (two.run({"x": image[i : i + 1]})["y"] == whole[i : i + 1]).all()


def test_a_padding_without_end_is_left_to_the_interpreter():
    model = conv("1,1,4", (1, 1, 2), pads=[0, 1 << 40], strides=[1 << 40])
    assert Compiled(model).run({"x": np.ones((1, 1, 4), np.float32)})["y"].shape == (1, 1, 2)


def test_resampling_by_known_scales_and_sizes():
    transformations = (
        "half_pixel",
        "asymmetric",
        "align_corners",
        "pytorch_half_pixel",
        "half_pixel_symmetric",
    )
    roundings = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    nearest = [
        {"mode": "nearest", "coordinate_transformation_mode": t, "nearest_mode": r}
        for t, r in itertools.product(transformations, roundings)
    ]
    linear = [{"mode": "linear", "coordinate_transformation_mode": t} for t in transformations]
    x = integers((1, 3, 6, 5), 1)
    for attributes in (*nearest, *linear):
        for scales in ([1, 1, 2, 2], [1, 1, 0.5, 1.5], [1, 1, 2.6, 1 / 3]):
            b = sabir.Builder(opsets={"": 21})
            y = b.Resize(b.input("x", "float", [1, 3, 6, 5]), None, np.float32(scales), **attributes)
            b.output(b.Neg(y), "y")
            same(b.model(), {"x": x}, tolerance=1e-5, threads=1)


def test_resampling_of_sizes_that_only_a_run_knows():
    model = sabir.parse(f"""{HEAD}
        g (float[N,3,H,W] x, float[4,3,1,1] w) => (y, z) {{
            scales = Constant <value_floats = [1.0, 1.0, 2.0, 3.0]> ()
            c = Conv (x, w)
            y = Resize <mode = "linear"> (c, , scales)
            r = Resize <mode = "nearest"> (c, , scales)
            z = Sigmoid (r)
        }}""")
    w = integers((4, 3, 1, 1), 2)
    feeds = [{"x": integers((n, 3, h, 4), h), "w": w} for n, h in ((1, 5), (2, 3), (3, 1))]
    same(model, *feeds, tolerance=1e-6)


def test_windows_with_more_elements_than_there_are_windows():
    """As in the gradient of filters: a product reads the image where it lies, also transposed."""
    sizes = {"b": 3, "h": 14, "v": 9, "i": 6, "j": 8}
    for x, order, group, w in (
        ("b,4,14,9", "0, 1, 2, 3", 1, "5,4,6,8"),
        ("b,4,14,9", "1, 0, 2, 3", 1, "5,b,6,8"),
        ("b,4,h,v", "1, 0, 2, 3", 1, "5,b,i,j"),
        ("4,b,14,9", "1, 0, 2, 3", 1, "5,4,6,8"),
        ("b,10,14,9", "0, 1, 2, 3", 5, "5,2,6,8"),
        ("b,4,140,80", "1, 0, 2, 3", 1, "5,b,69,77"),
        ("b,8,14,9", "1, 0, 2, 3", 1, "5,b,5,4"),  # as many, of fewer images than channels
    ):
        model = sabir.parse(f"""{HEAD} g (float[{x}] x, float[{w}] w) => (y) {{
            t = Transpose <perm = [{order}]> (x)
            y = Conv <group = {group}, strides = [1, 2], dilations = [2, 1]> (t, w) }}""")
        shapes = [[sizes.get(d) or int(d) for d in dims.split(",")] for dims in (x, w)]
        same(model, {"x": integers(tuple(shapes[0]), 1), "w": integers(tuple(shapes[1]), 2)})


def test_filters_of_channels_alone_have_gradients_that_are_sums_side_by_side():
    """A sum for each tap, with channels in the lanes; those of taps in a row are computed together."""
    for dims, shape, taps, attributes, together in (
        ("3,20,9,8", (3, 20, 9, 8), (3, 5), "pads = [1, 2, 1, 2]", 5),
        ("2,17,4,3", (2, 17, 4, 3), (7, 7), "pads = [3, 3, 3, 3]", 7),  # more taps than windows
        ("N,20,9,8", (3, 20, 9, 8), (3, 2), "strides = [2, 1], dilations = [2, 3]", 2),
        ("2,6,30", (2, 6, 30), (11,), "pads = [0, 11]", 0),  # a prime above the most
    ):
        of_w = ",".join(map(str, (shape[1], 1, *taps)))
        model = sabir.parse(f"""{HEAD} g (float[{dims}] x, float[{of_w}] w) => (float loss) {{
            y = Conv <group = {shape[1]}, {attributes}> (x, w)  s = Mul (y, y)
            loss = ReduceSum <keepdims = 0> (s) }}""")
        feeds = {"x": integers(shape, 1), "w": integers((shape[1], 1, *taps), 2)}
        found = same(sabir.differentiate(model, "loss", ["w"]), feeds, threads=1).explain().kernels
        assert not any(kernel.kind == "product" for kernel in found)
        assert any(f", {together})" in kernel.spec for kernel in found) == bool(together)


def test_products_of_transposed_rows():
    """A product reads the columns of a matrix where they are near each other, and copies them elsewhere."""
    for k, m in ((7, 20), (300, 16), (40, 100), (5, 1)):
        model = sabir.parse(f"""{HEAD} g (float[k,{m}] x, float[k,19] y, float[k,9] z) => (a, b) {{
            t = Transpose <perm = [1, 0]> (x)  a = MatMul (t, y)  b = MatMul (t, z) }}""")
        feeds = {"x": integers((k, m), 1), "y": integers((k, 19), 2), "z": integers((k, 9), 3)}
        same(model, feeds)


def test_a_constant_that_is_repeated_to_a_size_of_the_run():
    """It is an operand of a product, and cannot be packed before the run, as other constants are."""
    model = sabir.parse(f"""{HEAD} g (float[N,K] x) => (y) {{
        one = Constant <value_float = 1.0> ()  sizes = Shape (x)
        ones = Expand (one, sizes)  t = Transpose <perm = [1, 0]> (ones)  y = MatMul (x, t) }}""")
    same(model, {"x": integers((3, 40), 1)}, {"x": integers((20, 7), 2)})


@pytest.mark.parametrize("sizes", [(7,), (6, 9), (3, 5, 4)])
def test_indices_of_maxima_count_column_by_column(sizes):
    random, rank = np.random.default_rng(12), len(sizes)
    x = random.permutation(6 * np.prod(sizes)).reshape(2, 3, *sizes).astype(np.float32)
    b = sabir.Builder(22)
    port = b.input("x", "float", ["n", 3, *sizes])
    options = {"kernel_shape": [2] * rank, "pads": [1] * 2 * rank, "storage_order": 1}
    for name, y in zip(("y", "places"), b.MaxPool(port, outputs=2, **options), strict=True):
        b.output(y, name)
    found = kernels_only(b.model(), {"x": x})
    by_columns = np.concatenate([plane.ravel(order="F") for plane in x.reshape(6, *sizes)])
    np.testing.assert_array_equal(by_columns[found["places"]], found["y"])


def test_windows_that_overlap_load_what_they_share_once():
    for taps, attributes, step in [
        (3, {"pads": [1, 1, 1, 1]}, " step 1"),
        (5, {"strides": [1, 2]}, " step 2"),
        (3, {"strides": [2, 3]}, ""),
        (3, {"dilations": [1, 2]}, ""),  # a window has every second element, the next one the others
        (3, {"dilations": [1, 2], "strides": [1, 2]}, " step 1"),
    ]:
        for width in (9, 22, 31):
            model = conv(f"2,18,8,{width}", (18, 1, taps, taps), group=18, after="Relu", **attributes)
            compiled = same(model, {"x": integers((2, 18, 8, width), width)})
            (spec,) = [k.spec for k in compiled.explain().kernels if k.kind == "sliding"]
            assert ("weighted" + step) in spec, (taps, attributes)
            assert (" step " in spec) == bool(step), (taps, attributes)
