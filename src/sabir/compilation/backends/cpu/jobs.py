"""The size of the jobs into which a kernel divides its work: functions of sizes, which stored plans name."""

from __future__ import annotations

from sabir.compilation.plan.entries import Mismatch


def rows_of_a_job(
    rows: int, columns: int, batch: int, *, tile_rows: int, width: int, most: int, jobs: int
) -> int:
    """Return how many rows of a product one job computes: at most `most`, so that there are `jobs` jobs."""
    groups = max(1, batch) * max(1, -(-columns // width))
    chunks = max(up(jobs, groups), up(rows, most), 1) if rows else 1
    return max(tile_rows, up(up(rows, chunks), tile_rows) * tile_rows)


def rows_of_attention(
    rows: int, keys: int, batch: int, *, tile_rows: int, most: int, scores: int, jobs: int
) -> int:
    """Return how many rows one job of attention computes: they have so many `scores` at most."""
    fit = min(most, max(tile_rows, scores // max(1, keys)))
    chunks = max(up(jobs, max(1, batch)), up(rows, fit), 1) if rows else 1
    return max(tile_rows, min(most, up(up(rows, chunks), tile_rows) * tile_rows))


def tiles_of_a_job(tiles: int, *, most: int, cores: int) -> int:
    """Return how many tiles one job computes: equal parts for all cores, at most `most`."""
    return max(1, up(tiles, up(up(tiles, most), cores) * cores)) if tiles else 1


def rows_of_trees(features: int, widest: int, *, lanes: int, block: int, most: int) -> int:
    """Return how many rows one job leads down trees: a multiple of the lanes, `most` rows at most.

    Their features are `block` numbers at most.

    Raises Mismatch if a node tests a feature that the rows lack.
    """
    if widest >= features:
        raise Mismatch(f"a node tests feature {widest}, and rows have {features}")
    return max(1, min(block // max(1, features), most) // lanes) * lanes


def up(count: int, step: int) -> int:
    """Return how many steps cover a count."""
    return -(-count // step)
