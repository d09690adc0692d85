"""The choice of the tiles of products: rows, panels, and vectors of a panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.jobs import up

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.loops import Size

_AVX2 = 16  # vector registers; AVX-512 and 64-bit Arm have 32
VECTORS = 3  # of a panel of the usual width, in which products share packed weights


class Tile(NamedTuple):
    """The rows and panels of a tile, and the vectors of a panel."""

    rows: int
    panels: int
    vectors: int = VECTORS


def tile_for(rows: int, registers: int, heuristics: Heuristics) -> Tile:
    """Return the tile for a number of rows, which fills the registers and leaves few rows unused."""
    most = (registers - VECTORS - 1) // VECTORS
    if rows <= 1:
        return Tile(1, 4 if registers > _AVX2 else 2)
    if rows <= min(heuristics.few_rows, most):
        return Tile(rows, max(1, min(2, most // rows)) if registers > _AVX2 else 1)
    if rows <= most:
        return Tile(rows, 1)
    least = most - 3 if registers > _AVX2 else most
    return Tile(
        min(range(least, most + 1), key=lambda r: (-(-rows // r) * r * (1 + 0.02 * (8 - r) ** 2), r)), 1
    )


def tiles(rows: int | None, registers: int, heuristics: Heuristics) -> list[tuple[int | None, Tile]]:
    """Return pairs of a limit of rows and a tile; None is no limit. There is one pair if `rows` is known."""
    if rows is not None:
        return [(None, tile_for(rows, registers, heuristics))]
    counts = (1, 1), (heuristics.few_rows, heuristics.few_rows), (None, heuristics.usual_rows)
    return [(limit, tile_for(count, registers, heuristics)) for limit, count in counts]


def is_usual(columns: int, lanes: int, rest: float) -> bool:
    """Return whether panels of the usual width leave at most `rest * columns` of their columns unused."""
    width = VECTORS * lanes
    return up(columns, width) * width <= columns * (1 + rest)


def window_tiles(
    rows: int | None, columns: int, lanes: int, registers: int, heuristics: Heuristics
) -> list[tuple[int | None, Tile]]:
    """Return pairs of a limit of rows and a tile of a convolution; one pair if `rows` is known.

    Each tile minimizes the estimated time, with the unused rows and columns of the last tiles. The weights
    are packed for this product alone, so panels may have any width.
    """
    tile = _window_tile(rows, columns, lanes, registers, heuristics)
    if rows is not None:
        return [(None, tile)]
    few = min(heuristics.few_rows, tile.rows)
    return [(1, Tile(1, 1, tile.vectors)), (few, Tile(few, 1, tile.vectors)), (None, tile)]


def _window_tile(rows: int | None, columns: int, lanes: int, registers: int, heuristics: Heuristics) -> Tile:
    count, vectors = rows or heuristics.window_rows, -(-columns // lanes)
    widths, latency, overhead = heuristics.widths, heuristics.latency, heuristics.step_overhead
    found = [
        Tile(r, 1, v)
        for v, (most, _) in enumerate(widths, 1)
        for r in range(1, min(most, (registers - v - 1) // v) + 1)
    ]

    def cost(tile: Tile) -> tuple[float, int]:
        step = max(tile.rows * tile.vectors, latency) + overhead
        tiles = up(count, tile.rows) * up(vectors, tile.vectors)
        return step * tiles / widths[tile.vectors - 1][1], -tile.rows * tile.vectors

    return min(found, key=cost)


def result_tile(
    rows: int, columns: int | None, lanes: int, registers: int, heuristics: Heuristics, *, masks: bool
) -> Tile:
    """Return the tile of the results of attention; without `masks`, panels divide `columns` if any can."""
    widths = heuristics.widths
    if columns is None or masks:
        count = len(widths) * lanes if columns is None else columns
        return _window_tile(rows, count, lanes, registers, heuristics)
    vectors = max((v for v in range(1, len(widths) + 1) if columns % (v * lanes) == 0), default=2)
    return Tile(min(rows, widths[vectors - 1][0], (registers - vectors - 1) // vectors), 1, vectors)


def step_tiles(
    rows: int | None, columns: Size, products: int, lanes: int, registers: int, heuristics: Heuristics
) -> list[tuple[int | None, Tile]]:
    """Return pairs of a limit of rows and a tile of a recurrence step; one pair if `rows` is known.

    `Tile.panels` is the number of products computed at a time, and `Tile.vectors` the vectors of each
    product, the same in all tiles.
    """
    count = max(1, products)
    vectors = max(1, heuristics.independent_sums // (1 if rows == 1 else 2) // count)
    if isinstance(columns, int):
        vectors = max(1, min(vectors, up(columns, lanes)))
    if rows is not None:
        return [(None, _step_tile(rows, count, vectors, registers, heuristics))]
    few, usual = (
        _step_tile(number, count, vectors, registers, heuristics)
        for number in (heuristics.few_step_rows, heuristics.usual_step_rows)
    )
    return [(few.rows, few), (None, usual)]


def _step_tile(rows: int, count: int, vectors: int, registers: int, heuristics: Heuristics) -> Tile:
    """Return the tile of least estimated time; it computes up to `count` products at a time."""
    found = [
        Tile(r, at_once, vectors)
        for at_once in range(1, count + 1)
        for r in range(1, max(1, (registers - 1) // (at_once * vectors) - 1) + 1)
    ]

    def cost(tile: Tile) -> tuple[float, int, int]:
        width = tile.panels * vectors
        step = max(tile.rows * width, heuristics.cached_rows * width, tile.rows + width, heuristics.latency)
        return up(rows, tile.rows) * up(count, tile.panels) * step, -tile.panels, tile.rows

    return min(found, key=cost)


def scratch_rows(rows: Size, tile_rows: int, heuristics: Heuristics) -> int:
    """Return the rows of a job that scratch memory has room for: whole tiles, and one more."""
    most = min(rows, heuristics.job_rows) if isinstance(rows, int) else heuristics.job_rows
    return up(most, tile_rows) * tile_rows + tile_rows


def blocks_of(depth: Size, width: int, rows: Size, tile_rows: int, heuristics: Heuristics) -> int:
    """Return the number of blocks of `k` such that one block of the panels fits into the cache.

    `width` is the bytes of the panels at one step of `k`. The result divides `depth`. It is 1 if all rows
    are one tile, so that each panel is read once, or if `k` is symbolic or has no suitable divisor.
    """
    if not isinstance(depth, int) or (isinstance(rows, int) and rows <= tile_rows):
        return 1
    least = max(1, up(depth * width, heuristics.large_panel))
    return next((n for n in range(least, min(4 * least, depth) + 1) if depth % n == 0), 1)
