"""Heuristics of products: tiles, number formats, which operands are read in place, panels, bands, stages."""

from dataclasses import replace
from functools import partial

import pytest

from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.backends.cpu.products import formats
from sabir.compilation.backends.cpu.products import tiles as _tiles
from sabir.compilation.backends.cpu.products.direct import is_constant, why_packed
from sabir.compilation.backends.cpu.products.formats import (
    dot_of,
    group_of,
    narrow_of,
    registers_of,
)
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, panels_of
from sabir.compilation.backends.cpu.products.tiles import VECTORS, Tile, is_usual
from sabir.compilation.native import target_named
from sabir.ir import symbol
from sabir.loops import Contract, Stored
from support.middle import Middle

N = symbol("N")
FEW = HEURISTICS.few_rows
tile_for, tiles, window_tiles, result_tile, step_tiles, scratch_rows, blocks_of = (
    partial(getattr(_tiles, name), heuristics=HEURISTICS)
    for name in (
        "tile_for",
        "tiles",
        "window_tiles",
        "result_tile",
        "step_tiles",
        "scratch_rows",
        "blocks_of",
    )
)
in_blocks = partial(formats.in_blocks, heuristics=HEURISTICS)


def is_direct(*args):
    return why_packed(HEURISTICS, *args) is None


@pytest.mark.parametrize("registers", [16, 32])
def test_the_accumulators_of_a_tile_fit_the_registers(registers):
    for rows in range(1, 300):
        tile = tile_for(rows, registers)
        # the sums, the vectors of a panel, and an element of a row
        assert (
            tile.rows * tile.panels * tile.vectors + tile.panels * tile.vectors + 1 <= registers
            or tile.rows == 1
        )
        assert tile.vectors == VECTORS


def test_few_rows_have_several_panels():
    assert tile_for(1, 16) == Tile(1, 2)
    assert tile_for(1, 32) == Tile(1, 4)
    assert tile_for(FEW, 16) == Tile(4, 1)
    assert tile_for(FEW, 32) == Tile(4, 2)


def test_many_rows_waste_few_of_a_tile():
    assert tile_for(9, 32).rows == 9
    for rows in (12, 14, 16, 100):
        tile = tile_for(rows, 32)
        assert -(-rows // tile.rows) * tile.rows - rows < tile.rows
        assert 6 <= tile.rows <= 9


def test_symbolic_rows_have_tiles_up_to_limits():
    assert [limit for limit, _ in tiles(None, 32)] == [1, FEW, None]
    assert tiles(7, 32) == [(None, tile_for(7, 32))]
    limits = window_tiles(None, 40, 8, 16)
    assert [limit for limit, _ in limits] == [1, min(FEW, limits[-1][1].rows), None]
    assert len({tile.vectors for _, tile in limits}) == 1  # the weights are packed once


def test_panels_of_a_convolution_leave_few_columns_empty():
    ((_, tile),) = window_tiles(1000, 16, 8, 16)
    assert tile.vectors == 2  # and not three, of which one would be empty
    ((_, tile),) = window_tiles(1000, 8, 8, 16)
    assert tile.vectors == 1


def test_usual_widths():
    assert is_usual(48, 8, 0.02)
    assert not is_usual(40, 8, 0.02)
    assert is_usual(47, 8, 0.1)


def test_tiles_of_attention_without_masks_fill_the_columns():
    assert result_tile(24, 64, 8, 16, masks=False).vectors == 4
    assert 48 % (result_tile(24, 48, 8, 16, masks=False).vectors * 8) == 0
    assert result_tile(24, None, 8, 32, masks=True).vectors in {1, 2, 3, 4}


def test_tiles_of_recurrences():
    for count in (1, 3, 4):
        ((_, tile),) = step_tiles(20, 512, count, 8, 32)
        width = tile.panels * tile.vectors
        assert (tile.rows + 1) * width + 1 <= 32
        assert tile.panels <= count
    few, many = step_tiles(None, 512, 4, 8, 32)
    assert few[0] == few[1].rows
    assert many[0] is None
    assert few[1].vectors == many[1].vectors


def test_rows_that_wait_in_scratch_memory():
    assert scratch_rows(10, 4) == 12 + 4
    assert scratch_rows(10_000, 4) == scratch_rows(N, 4) == 256 + 4


def test_blocks_of_long_sums_divide_them():
    assert blocks_of(512, 96, N, 4) == 1
    found = blocks_of(8192, 96, N, 4)
    assert found > 1
    assert 8192 % found == 0
    assert blocks_of(8192, 96, 4, 4) == 1  # each panel is read once
    assert blocks_of(N, 96, N, 4) == 1
    assert blocks_of(8191, 96, N, 4) == 1  # a prime


# ---------------------------------------------------------------- number formats


@pytest.mark.parametrize(
    ("target", "dot"),
    [("x86-64-v3", "pmaddwd"), ("x86-64-v4", "pmaddwd"), ("aarch64", "sadalp")],
)
def test_the_instruction_that_adds_products_of_bytes(target, dot):
    assert dot_of(target_named(target)) == dot


def contract(rows, columns, text="", **sizes):
    """A product of matrices, in a model of its own."""
    ports = f"(float[{rows},64] a, float[64,{columns}] b) => (float[{rows},{columns}] y)"
    middle = Middle(text or f"g {ports} {{ y = MatMul (a, b) }}", **sizes)
    x = middle["y"]
    assert isinstance(x, Contract)
    return middle, x


def test_formats_of_panels():
    middle, x = contract(4, 48)
    assert not narrow_of(x)
    assert group_of(middle.builder.target, x) == 1
    assert registers_of(middle.builder.target, x) == 16


def test_panels_of_constants_stay_narrow():
    wide, narrow = Stored("float", (4, 64), 1), Stored("float16", (64, 48), 2)
    assert narrow_of(Contract("float", (4, 48), wide, narrow, 1, 1)) == "float16"
    assert narrow_of(Contract("float", (4, 48), wide, replace(narrow, element="uint8"), 1, 1)) == "int8"
    assert not narrow_of(
        Contract("int32", (4, 48), replace(wide, element="uint8"), replace(narrow, element="int8"), 1, 1)
    )


def test_axes_in_blocks():
    assert in_blocks((1024, 1)) == [(8, 128), (128, 1)]
    assert in_blocks((20, 2)) == [(1, 40), (20, 2)]
    assert in_blocks((131, 1)) == [(1, 131), (131, 1)]  # a prime: one block
    assert in_blocks((N, 1)) == [(N, 1)]


# ---------------------------------------------------------------- operands in place


@pytest.mark.parametrize(
    ("rows", "columns", "direct"),
    [(1, 48, True), (4, 48, True), (40, 48, True), (600, 48, False), ("N", 48, False)],
)
def test_which_matrices_are_read_in_place(rows, columns, direct):
    middle, x = contract(rows, columns, N=40)
    located = middle.grouping.views.locate(x.b)
    assert is_direct(middle.lowered, x, located) is direct
    assert not is_constant(middle.lowered, located)


def test_large_matrices_of_many_rows_are_packed():
    middle, x = contract(40, 5000)
    assert not is_direct(middle.lowered, x, middle.grouping.views.locate(x.b))


def test_constants_are_packed():
    text = (
        "g (float[1,4] a) => (float[1,2] y) <float[4,2] b = {1, 2, 3, 4, 5, 6, 7, 8}> { y = MatMul (a, b) }"
    )
    middle, x = contract(1, 2, text)
    located = middle.grouping.views.locate(x.b)
    assert is_constant(middle.lowered, located)
    assert not is_direct(middle.lowered, x, located)


def test_panels():
    panels = Panels("float", [(3, 100)], [(4, 16), (5, 1)], (30, 7), 24)
    assert panels.panel == 4 * 5 * 24 * 4
    assert panels.item == 2 * panels.panel  # 30 columns are two panels
    grouped = Panels("uint8", [], [(3, 10), (10, 1)], (30, 7), 8, group=4)
    assert grouped.panel == 3 * 3 * 8 * 4 + 4 * 8  # groups of 10 elements, behind the sums
    winograd = Panels("float", [], [(3, 1), (3, 1), (64, 1)], (32, 1), 8, winograd=2)
    assert winograd.panel == 16 * 64 * 8 * 4
    assert panels_of(N, 8) == (N + 23) // 24
    assert panels_of(48, 8) == 2


def test_lanes_of_products():
    middle, _ = contract(4, 48)
    assert [lanes_of(middle.builder, e) for e in ("int8", "float", "double")] == [8, 8, 4]
