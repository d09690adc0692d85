"""The sizes of jobs, as functions of the sizes of a run; plans on disk refer to them by name."""

from __future__ import annotations

from sabir.base import COMPILED
from sabir.compilation.plan.entries import Mismatch


def rows_of_a_job(
    rows: int, columns: int, batch: int, *, tile_rows: int, width: int, most: int, jobs: int
) -> int:
    """Return the number of rows of a product in a job: about `most` at most, for about `jobs` jobs or more.

    It is a multiple of `tile_rows`. `width` is the number of columns of a job.
    """
    groups = max(1, batch) * max(1, -(-columns // width))
    chunks = max(up(jobs, groups), up(rows, most), 1) if rows else 1
    return max(tile_rows, up(up(rows, chunks), tile_rows) * tile_rows)


def rows_of_attention(
    rows: int, keys: int, batch: int, *, tile_rows: int, most: int, scores: int, jobs: int
) -> int:
    """Return the number of rows in a job of attention: at most `most`, with about `scores` scores at most."""
    fit = min(most, max(tile_rows, scores // max(1, keys)))
    chunks = max(up(jobs, max(1, batch)), up(rows, fit), 1) if rows else 1
    return max(tile_rows, min(most, up(up(rows, chunks), tile_rows) * tile_rows))


def tiles_of_a_job(tiles: int, *, most: int, cores: int) -> int:
    """Return the number of tiles in a job: at most `most`, with about equally many jobs for each core."""
    return max(1, up(tiles, up(up(tiles, most), cores) * cores)) if tiles else 1


def rows_of_trees(features: int, widest: int, *, lanes: int, block: int, most: int) -> int:
    """Return the most rows of a job of decision trees: a multiple of `lanes`, and at least `lanes`.

    Else it is at most `most`, and the rows have at most `block` features in total.

    Raises Mismatch if a node tests a feature that the rows do not have.
    """
    if widest >= features:
        raise Mismatch(f"a node tests feature {widest}, and rows have {features}")
    return max(1, min(block // max(1, features), most) // lanes) * lanes


def work_of_an_iteration(size: int) -> int:
    """Return the work that limits count for one iteration of a loop that computes `size` bytes."""
    return up(size, COMPILED)


def up(count: int, step: int) -> int:
    """Return `count / step`, rounded up."""
    return -(-count // step)
