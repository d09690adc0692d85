"""The tiles of products: how many rows and panels a kernel computes at a time."""

from __future__ import annotations

from typing import NamedTuple

_AVX2 = 16  # vector registers of a processor without AVX-512
_FEW = 4  # rows up to which a product runs at the speed of memory, and wants several panels at a time
_TARGET_JOBS = 16  # jobs that a product is divided into at least, where it has the rows
_MOST_ROWS = 256  # rows of a job: their part of `a` stays in the cache of a core
VECTORS = 3  # of a panel: the one width in which weights are packed on a machine


class Tile(NamedTuple):
    """Rows and panels that one kernel computes at a time."""

    rows: int
    panels: int


def tile_for(rows: int, registers: int) -> Tile:
    """Return the tile for a number of rows: the accumulators fill the registers, and few rows are wasted."""
    most = (registers - VECTORS - 1) // VECTORS
    if rows <= 1:
        return Tile(1, 4 if registers > _AVX2 else 2)
    if rows <= min(_FEW, most):
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
    return [(1, tile_for(1, registers)), (_FEW, tile_for(_FEW, registers)), (None, tile_for(128, registers))]


def rows_of_a_job(rows: int, columns: int, batch: int, *, tile_rows: int, width: int) -> int:
    """Return how many rows one job computes, so that all threads have jobs."""
    groups = max(1, batch) * max(1, -(-columns // width))
    chunks = max(-(-_TARGET_JOBS // groups), -(-rows // _MOST_ROWS), 1) if rows else 1
    return max(tile_rows, _up(_up(rows, chunks), tile_rows) * tile_rows)


def _up(count: int, step: int) -> int:
    """Return how many steps cover a count."""
    return -(-count // step)
