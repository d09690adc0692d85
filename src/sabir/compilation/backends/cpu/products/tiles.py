"""The tiles of products: how many rows and panels a kernel computes at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.jobs import MOST_ROWS, up

if TYPE_CHECKING:
    from sabir.loops import Size

_AVX2 = 16  # vector registers; AVX-512 and 64-bit Arm have 32
FEW = 4  # rows up to which a product runs at the speed of memory, and wants several panels at a time
_USUAL_ROWS = 1024  # of a convolution whose number of rows is symbolic
# by the vectors of a panel of a convolution: the most rows of a tile, each with a pointer, and how near such
# tiles come to the speed of the machine
_WIDTHS = {1: (10, 0.6), 2: (10, 0.86), 3: (7, 0.95), 4: (6, 1.0)}
_INDEPENDENT = 8  # sums that hide the latency of additions
_FROM_CACHE = 5  # rows that use a vector of a matrix while the next one comes from the cache
_LATENCY = 10  # multiplications of a step: fewer wait for each other
_FEW_ROWS, _USUAL_STEP = 2, 32  # of a recurrence whose number of rows is symbolic
_OVERHEAD = 1.5  # of a step, in multiplications
_LARGE_PANEL = 3 << 17  # bytes of a panel that the cache of a core holds beside the next one
VECTORS = 3  # of a panel: the one width in which weights are packed on a machine


class Tile(NamedTuple):
    """Rows and panels that one kernel computes at a time, and the vectors of a panel."""

    rows: int
    panels: int
    vectors: int = VECTORS


def tile_for(rows: int, registers: int) -> Tile:
    """Return the tile for a number of rows: the accumulators fill the registers, and few rows are wasted."""
    most = (registers - VECTORS - 1) // VECTORS
    if rows <= 1:
        return Tile(1, 4 if registers > _AVX2 else 2)
    if rows <= min(FEW, most):
        return Tile(rows, max(1, min(2, most // rows)) if registers > _AVX2 else 1)
    if rows <= most:
        return Tile(rows, 1)
    least = most - 3 if registers > _AVX2 else most
    return Tile(
        min(range(least, most + 1), key=lambda r: (-(-rows // r) * r * (1 + 0.02 * (8 - r) ** 2), r)), 1
    )


def tiles(rows: int | None, registers: int) -> list[tuple[int | None, Tile]]:
    """Return the tiles for numbers of rows up to a limit; one, if the number is known."""
    if rows is not None:
        return [(None, tile_for(rows, registers))]
    return [(1, tile_for(1, registers)), (FEW, tile_for(FEW, registers)), (None, tile_for(128, registers))]


def is_usual(columns: int, lanes: int, rest: float) -> bool:
    """Return whether panels of the usual width hold columns with a small rest, a part of their number."""
    width = VECTORS * lanes
    return up(columns, width) * width <= columns * (1 + rest)


def window_tiles(rows: int | None, columns: int, lanes: int, registers: int) -> list[tuple[int | None, Tile]]:
    """Return the tiles of a convolution for numbers of rows up to a limit; one, if the number is known.

    Rows and columns leave little of a tile unused. The weights are packed for this product alone, so that
    panels may have any width.
    """
    tile = _window_tile(rows, columns, lanes, registers)
    if rows is not None:
        return [(None, tile)]
    few = min(FEW, tile.rows)
    return [(1, Tile(1, 1, tile.vectors)), (few, Tile(few, 1, tile.vectors)), (None, tile)]


def _window_tile(rows: int | None, columns: int, lanes: int, registers: int) -> Tile:
    count, vectors = rows or _USUAL_ROWS, -(-columns // lanes)
    found = [
        Tile(r, 1, v)
        for v, (most, _) in _WIDTHS.items()
        for r in range(1, min(most, (registers - v - 1) // v) + 1)
    ]

    def cost(tile: Tile) -> tuple[float, int]:
        step = max(tile.rows * tile.vectors, _LATENCY) + _OVERHEAD
        tiles = up(count, tile.rows) * up(vectors, tile.vectors)
        return step * tiles / _WIDTHS[tile.vectors][1], -tile.rows * tile.vectors

    return min(found, key=cost)


def result_tile(rows: int, columns: int | None, lanes: int, registers: int, *, masks: bool) -> Tile:
    """Return the tile of the results of attention; without `masks`, its vectors fill the columns."""
    widest = max(_WIDTHS)
    if columns is None or masks:
        return _window_tile(rows, widest * lanes if columns is None else columns, lanes, registers)
    vectors = max((v for v in _WIDTHS if columns % (v * lanes) == 0), default=2)
    return Tile(min(rows, _WIDTHS[vectors][0], (registers - vectors - 1) // vectors), 1, vectors)


def step_tiles(
    rows: int | None, columns: Size, products: int, lanes: int, registers: int
) -> list[tuple[int | None, Tile]]:
    """Return the tiles of a step of a recurrence for numbers of rows up to a limit; one, if it is known.

    A tile has its vectors of each of the products; all tiles have as many. It computes as many products at a
    time as it has panels.
    """
    count = max(1, products)
    vectors = max(1, (_INDEPENDENT if rows == 1 else _INDEPENDENT // 2) // count)
    if isinstance(columns, int):
        vectors = max(1, min(vectors, up(columns, lanes)))
    if rows is not None:
        return [(None, _step_tile(rows, count, vectors, registers))]
    few = _step_tile(_FEW_ROWS, count, vectors, registers)
    return [(few.rows, few), (None, _step_tile(_USUAL_STEP, count, vectors, registers))]


def _step_tile(rows: int, count: int, vectors: int, registers: int) -> Tile:
    """Return the rows of a tile, and how many of the products it computes at a time."""
    found = [
        Tile(r, at_once, vectors)
        for at_once in range(1, count + 1)
        for r in range(1, max(1, (registers - 1) // (at_once * vectors) - 1) + 1)
    ]

    def cost(tile: Tile) -> tuple[float, int, int]:
        width = tile.panels * vectors
        step = max(tile.rows * width, _FROM_CACHE * width, tile.rows + width, _LATENCY)
        return up(rows, tile.rows) * up(count, tile.panels) * step, -tile.panels, tile.rows

    return min(found, key=cost)


def scratch_rows(rows: Size, tile_rows: int) -> int:
    """Return how many rows a job has at most, whole tiles."""
    most = min(rows, MOST_ROWS) if isinstance(rows, int) else MOST_ROWS
    return up(most, tile_rows) * tile_rows + tile_rows


def blocks_of(depth: Size, width: int, rows: Size, tile_rows: int) -> int:
    """Return in how many blocks of `k` the panels of a product fit into the cache; `width` counts bytes.

    It is 1 where each panel is read once, or where `k` cannot be divided.
    """
    if not isinstance(depth, int) or (isinstance(rows, int) and rows <= tile_rows):
        return 1
    least = max(1, up(depth * width, _LARGE_PANEL))
    return next((n for n in range(least, min(4 * least, depth) + 1) if depth % n == 0), 1)
