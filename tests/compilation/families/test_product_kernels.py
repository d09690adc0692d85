"""Kernels of products, alone: packing, tiles of every kind, Winograd's algorithm, attention, windows.

The numbers are small integers, of which all sums are exact.
"""

import itertools
from typing import Any

import numpy as np
import pytest

from sabir.compilation.backends.cpu.attention.kernel import Attention
from sabir.compilation.backends.cpu.emit.nest import (
    ANY,
    NEXT,
    STILL,
    Access,
    Accumulated,
    Apply,
    ConstantStep,
    Fold,
    Load,
    Nest,
)
from sabir.compilation.backends.cpu.emit.terms import GROUPS, Floats
from sabir.compilation.backends.cpu.jobs import up
from sabir.compilation.backends.cpu.products.packing import Packing
from sabir.compilation.backends.cpu.products.spec import DIRECT_STEPS, PART_STEPS, Product
from sabir.compilation.backends.cpu.products.winograd_kernel import GAP, Winograd, places_of
from sabir.compilation.backends.cpu.products.winograd_transforms import TAPS, transform_of
from sabir.compilation.backends.cpu.windows.kernel import Sliding
from support.kernels import aligned, nest_values, run_kernel

LANES = 8
ROWS = Access("float", (ANY, NEXT))
RANDOM = np.random.default_rng(4)


def integers(*shape):
    found = aligned(shape)
    found[...] = RANDOM.integers(-3, 4, shape)
    return found


def panels_of(matrix, width):
    """The panels of a matrix: `[panel][k][width]`, the last one filled up with zeros."""
    depth, columns = matrix.shape
    count = -(-columns // width)
    found = aligned((count, depth, width), matrix.dtype)
    for panel in range(count):
        part = matrix[:, panel * width : (panel + 1) * width]
        found[panel, :, : part.shape[1]] = part
    return found


# ---------------------------------------------------------------- packing


@pytest.mark.parametrize("columns", [5, 24, 50])
@pytest.mark.parametrize("order", ["rows", "columns", "tiles", "any width"])
def test_packing(order, columns):
    depth, width = 20, 24
    matrix = integers(2, depth, columns) if order not in {"columns", "tiles"} else integers(2, columns, depth)
    transposed = order in {"columns", "tiles"}
    row, column = (4, 4 * depth) if transposed else (4 * columns, 4)
    packing = Packing(
        "float",
        1,
        0 if order == "any width" else width,
        LANES,
        next_column=not transposed,
        next_row=order == "tiles",
    )
    expected = [panels_of(np.ascontiguousarray(m.T) if transposed else m, width) for m in matrix]
    found = aligned(np.shape(expected))
    values = {
        "batch": [2], "depths": [depth], "columns": columns, "source": matrix, "batch_strides": [4 * depth * columns],
        "depth_strides": [row], "column_stride": column, "target": found, "item": expected[0].nbytes,
    }  # fmt: skip
    run_kernel(packing, values | ({"width": width} if order == "any width" else {}), shares=2)
    np.testing.assert_array_equal(found, expected)


def test_packed_bytes_are_groups_behind_the_sums_of_their_columns():
    depth, columns, width, group = 6, 5, 8, 4
    matrix = RANDOM.integers(0, 256, (depth, columns)).astype(np.uint8)
    packing = Packing("uint8", 0, width, LANES, next_column=True, group=group)
    found = aligned(4 * width + 2 * width * group, np.int8)
    values = {
        "batch": [], "depths": [depth], "columns": columns, "source": matrix, "batch_strides": [],
        "depth_strides": [columns], "column_stride": 1, "target": found, "item": found.nbytes,
    }  # fmt: skip
    run_kernel(packing, values)
    filled = np.zeros((8, width), np.int64)
    filled[:depth, :columns] = matrix.astype(np.int64) - 128
    np.testing.assert_array_equal(found[: 4 * width].view(np.int32)[:columns], filled.sum(0)[:columns])
    lines = found[4 * width :].reshape(2, width, group)
    np.testing.assert_array_equal(
        lines[:, :columns], filled.reshape(2, group, width).swapaxes(1, 2)[:, :columns]
    )


# ---------------------------------------------------------------- products


def epilogue(axes=2):
    """A nest over rows and columns that stores the sums plus 1."""
    steps = (Accumulated("float"), ConstantStep("float", 1), Apply("float", "add", (0, 1)))
    return Nest(
        axes,
        (False,) * axes,
        axes - 1,
        (Access("float", (ANY,) * (axes - 1) + (NEXT,)),),
        steps,
        ((0, 2),),
        lanes=LANES,
    )


def product_of(product, a, b, columns, *, scratch=0, shares=1, **more):
    """The result of a product of a matrix by a packed or direct operand, with its errors counted."""
    rows, depth = a.shape
    y = aligned((rows, columns))
    values = {
        "nest": nest_values([rows, columns], (y, [4 * columns]), scratch=scratch), "a": a, "b": b,
        "row_strides": [4 * depth], "panel_bytes": 4 * depth * product.width, "depths": [depth],
        "depth_strides": [], "job_rows": 2 * product.rows, "a_batch": [], "b_batch": [],
    } | more  # fmt: skip
    assert run_kernel(product, values, scratch=scratch, shares=shares) == 0
    return y


@pytest.mark.parametrize(("rows", "panels", "vectors"), [(1, 1, 1), (4, 1, 3), (2, 2, 2)])
@pytest.mark.parametrize("count", [1, 4, 11])
def test_tiles_of_products(count, rows, panels, vectors):
    product = Product(epilogue(), "float", rows, vectors, panels)
    columns = product.width * panels * 2 - 3  # panels are read in whole groups
    a, b = integers(count, 13), integers(13, columns)
    y = product_of(product, a, panels_of(b, product.width), columns, shares=2)
    np.testing.assert_array_equal(y, a @ b + 1)


def test_a_long_sum_is_added_in_parts():
    product = Product(epilogue(), "float", 2, 1, long=True)
    a, b = integers(3, 2 * PART_STEPS + 5), integers(2 * PART_STEPS + 5, 8)
    np.testing.assert_array_equal(product_of(product, a, panels_of(b, 8), 8), a @ b + 1)


def test_a_blocked_product_keeps_its_sums_between_blocks():
    product = Product(epilogue(), "float", 2, 1, depth_axes=2, blocked=True)
    a, b = integers(5, 12), integers(12, 8)
    scratch = product.waiting_bytes * 3
    y = product_of(
        product, a, panels_of(b, 8), 8, scratch=scratch, depths=[3, 4], depth_strides=[16], job_rows=6
    )
    np.testing.assert_array_equal(y, a @ b + 1)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("depth", [7, DIRECT_STEPS + 9])
def test_direct_products_copy_panels_themselves(transposed, depth):
    product = Product(epilogue(), "float", 2, 1, direct=True, transposed=transposed)
    a, b = integers(5, depth), integers(19, depth) if transposed else integers(depth, 19)
    scratch = product.direct_bytes + 6 * product.waiting_bytes
    line = 4 * b.shape[1]
    y = product_of(product, a, b, 19, scratch=scratch, panel_bytes=line, job_rows=6)
    np.testing.assert_array_equal(y, a @ (b.T if transposed else b) + 1)


def test_streamed_products_read_the_matrix_row_by_row():
    product = Product(epilogue(), "float", 2, 3, direct=True, streamed=True)
    a, b = integers(2, 21), integers(21, 100)
    scratch = product.streamed_tiles * product.waiting_bytes
    y = product_of(product, a, b, 100, scratch=scratch, panel_bytes=400, shares=2)
    np.testing.assert_array_equal(y, a @ b + 1)


def test_products_over_a_batch_read_each_operand_by_its_strides():
    product = Product(epilogue(3), "float", 4, 1)
    a, b, y = integers(2, 3, 6), integers(6, 8), aligned((2, 3, 8))
    values = {
        "nest": nest_values([2, 3, 8], (y, [96, 32])), "a": a, "b": panels_of(b, 8), "row_strides": [24],
        "panel_bytes": 192, "depths": [6], "depth_strides": [], "job_rows": 4, "a_batch": [72], "b_batch": [0],
    }  # fmt: skip
    run_kernel(product, values)
    np.testing.assert_array_equal(y, a @ b + 1)


def test_scaled_products_compute_what_panels_represent():
    product = Product(epilogue(), "float", 2, 1, depth_axes=2, narrow="int8", scaled="float", zeros="int8")
    a, codes = integers(3, 8), RANDOM.integers(-9, 9, (8, 8))
    scales, less = integers(2, 8), RANDOM.integers(-3, 3, (2, 8))
    panels = aligned((8, 8), np.int8)
    panels[...] = codes
    zeros = aligned((2, 8), np.int8)
    zeros[...] = less
    y = product_of(
        product, a, panels, 8, panel_bytes=64, depths=[2, 4], depth_strides=[16],
        scale={"tensor": scales, "bytes": 64}, zeros={"tensor": zeros, "bytes": 16},
    )  # fmt: skip
    b = (codes - less.repeat(4, axis=0)) * scales.repeat(4, axis=0)
    np.testing.assert_array_equal(y, a @ b + 1)


def test_the_sizes_of_a_product():
    product = Product(epilogue(), "float", 4, 3, 2)
    assert (product.width, product.batch, product.group) == (24, 0, 1)
    assert product.tile_bytes == 4 * 48 * 4
    assert Product(epilogue(), "float", 4, 3, long=True).waiting_bytes == 2 * 4 * 24 * 4
    assert Product(epilogue(), "int32", 4, 3, dot="vpdpbusd").group == GROUPS["vpdpbusd"] == 4
    assert product.parameters == {}
    assert Product(epilogue(), "float", 1, 1, scaled="half", zeros="int8").parameters == {
        "scale": "half",
        "zeros": "int8",
    }


# ---------------------------------------------------------------- Winograd


class Exact:
    """An emitter that computes with numbers, and not with registers."""

    class Number(float):
        kind = None

    @staticmethod
    def constant(_, x):
        return Exact.Number(x)

    @staticmethod
    def fma(a, b, c):
        return Exact.Number(a * b + c)

    @staticmethod
    def binary(op, a, b):
        return Exact.Number({"fadd": a + b, "fsub": a - b, "fmul": a * b}[op])


@pytest.mark.parametrize("results", [2, 4])
def test_transforms_multiply_polynomials(results):
    transform, e = transform_of(results), Exact()
    for _ in range(5):
        d, g = RANDOM.standard_normal(results + TAPS - 1), RANDOM.standard_normal(TAPS)
        factors: Any = (
            transform.image(e, list(map(Exact.Number, d))),
            transform.filters(e, list(map(Exact.Number, g))),
        )
        products = [Exact.Number(x * y) for x, y in zip(*factors, strict=True)]
        assert len(products) == results + TAPS - 1
        found: Any = transform.folded(e, products)
        np.testing.assert_allclose(found, np.correlate(d, g), atol=1e-12)
    assert places_of(results) == (results + 2) ** 2


@pytest.mark.parametrize("results", [2, 4])
def test_winograd_computes_a_convolution(results):
    channels, columns, size = 5, 8, 7
    image, filters = integers(size + 2, size + 2, channels), integers(TAPS, TAPS, channels, columns)
    places = places_of(results)
    packed = aligned((1, places, channels, LANES))
    packing = Packing("float", 0, LANES, LANES, next_column=True, depth_axes=3, winograd=results)
    run_kernel(packing, {
        "batch": [], "depths": [TAPS, TAPS, channels], "columns": columns, "source": filters, "batch_strides": [],
        "depth_strides": [TAPS * channels * columns * 4, channels * columns * 4, columns * 4], "column_stride": 4,
        "target": packed, "item": packed.nbytes,
    })  # fmt: skip
    spec = Winograd(epilogue(3), "float", 2, 1, results=results)
    tiles, y = up(size, results) ** 2, aligned((size, size, columns))
    scratch = places * (LANES * 4 + GAP) * tiles + (tiles + spec.rows) * places * LANES * 4
    values = {
        "nest": nest_values([size, size, columns], (y, [size * columns * 4, columns * 4]), scratch=scratch),
        "a": image, "b": packed, "row_strides": [image.strides[0], image.strides[1]], "panel_bytes": packed.nbytes,
        "channels": channels, "job_tiles": tiles,
    }  # fmt: skip
    assert run_kernel(spec, values, scratch=scratch) == 0
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (0, 1))
    np.testing.assert_allclose(y, np.einsum("hwcij,ijcm->hwm", windows, filters) + 1, atol=1e-4)


# ---------------------------------------------------------------- attention


def attention(keys):
    """Two products around a Softmax, whose scores wait in scratch memory."""
    steps = (
        Load("float", 0), Fold("float", "max", 0), Apply("float", "sub", (0, 1)), Apply("float", "exp", (2,)),
        Fold("float", "sum", 3), Apply("float", "div", (3, 4)),
    )  # fmt: skip
    scores = Nest(2, (False, True), 1, (Access("float", (STILL, NEXT)),), steps, ((0, 5),), lanes=LANES)
    output = Nest(2, (False, False), 1, (ROWS,), (Accumulated("float"),), ((0, 0),), lanes=LANES)
    return Attention(scores, output, "float", 2, 2, 2, 1, LANES, 4, keys)


@pytest.mark.parametrize("keys", ["panels", "rows", "columns"])
def test_attention(keys):
    q, k, v, width = integers(5, 6), integers(6, 11), integers(11, 10), 2 * LANES
    read = {"panels": panels_of(k, width), "rows": np.ascontiguousarray(k.T), "columns": k}[keys]
    line = 4 * 6 * width if keys == "panels" else read.strides[0]
    y, kept, scratch = aligned((5, 10)), 192, 2048
    values = {
        "scores": nest_values([5, 11], None, scratch=scratch),
        "output": nest_values([5, 10], (y, [40]), scratch=scratch),
        "queries": {"tensor": q, "line": 24, "batch": []}, "keys": {"tensor": read, "line": line, "batch": []},
        "values": {"tensor": v, "line": 40, "batch": []}, "depth": 6, "job_rows": 4, "row_offset": kept,
    }  # fmt: skip
    run_kernel(attention(keys), values, scratch=scratch)
    scores = q.astype(np.float64) @ k
    weights = np.exp(scores - scores.max(1, keepdims=True))
    np.testing.assert_allclose(y, weights / weights.sum(1, keepdims=True) @ v, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("places", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_windows(weighted, places, step):
    channels, taps, results = 11, 3, 7
    x, y = integers(results + taps - 1, channels), aligned((results, channels))
    steps, op = (Accumulated("float"),), "sum" if weighted else "max"
    nest = Nest(2, (False, False), 1, (ROWS, ROWS), steps, ((0, 0),), lanes=LANES)
    sliding = Sliding(nest, "float", op, (taps,), weighted, places, step=step)
    line, windows = 4 * channels, np.lib.stride_tricks.sliding_window_view(x, taps, 0)
    values = {"nest": nest_values([results, channels], (y, [line]), (x, [line])), "tap_strides": [line]}
    expected = windows.max(2)
    if weighted:
        w = integers(taps, channels)
        values["weights"] = panels_of(w, LANES)
        expected = np.einsum("wct,tc->wc", windows, w)
    run_kernel(sliding, values, shares=2)
    np.testing.assert_array_equal(y, expected)


def test_the_terms_of_floats_convert_narrow_panels():
    terms = Floats(None, "float", "float16", LANES)
    assert (terms.factor_bytes, terms.lane_bytes, terms.group) == (4, 2, 1)
    assert Floats(None, "double", "", LANES).lane_bytes == 8


def test_every_option_of_a_product_is_in_its_text():
    """Kernels are found by the text of their specification: two that differ must not have one text."""
    options = {
        "prefetch": False, "row_axes": 2, "depth_axes": 2, "apart": True, "blocked": True, "whole": True,
        "direct": True, "streamed": True, "transposed": True, "dot": "sdot", "narrow": "float16", "scaled": "float",
        "zeros": "int8", "unpacks": True, "long": True,
    }  # fmt: skip
    plain = {"row_axes": 2, "depth_axes": 2}
    base = {
        **dict.fromkeys(options, False),
        "prefetch": True,
        "row_axes": 1,
        "depth_axes": 1,
        "dot": None,
        "narrow": "",
        "scaled": "",
        "zeros": "",
    }
    texts = [
        str(Product(epilogue(4), "float", 4, 3, **(base | plain | {name: value})))
        for name, value in options.items()
        if name not in plain
    ]
    assert all(a != b for a, b in itertools.combinations(texts, 2))
