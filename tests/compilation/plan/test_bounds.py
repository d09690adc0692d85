"""What a plan may touch and need for the sizes of a run, and how much of a kernel is one job."""

import re

import pytest

from sabir.base import COMPILED
from sabir.compilation.backends.cpu.jobs import (
    rows_of_a_job,
    rows_of_attention,
    rows_of_trees,
    tiles_of_a_job,
    up,
)
from sabir.compilation.plan.bounds import ComputedTensor, Needs, Reach, check_reaches, needs
from sabir.compilation.plan.entries import Buffer, Entry, Mismatch
from sabir.compilation.plan.layout import RunSizes
from sabir.ir import symbol

N = symbol("N")
BUFFER = Buffer("input", 3, "float", (4, N), 16 * N)


def check(*extents, offset=0, takes=(), **sizes):
    """Compare what a kernel touches of a tensor (4, N) with its memory."""
    entry = Entry([], reaches=[Reach(BUFFER, 4, offset, extents, takes)])
    check_reaches([entry, object()], RunSizes(sizes))


@pytest.mark.parametrize(
    ("extents", "offset"),
    [
        ([(4, N), (N, 1)], 0),  # all of it
        ([(4, -1 * N), (N, 1)], 3 * N),  # its rows backwards
        ([(4, 0), (N, 4)], 0),  # every fourth element, from the first row to the last
        ([(9, 0)], 0),  # one element, nine times
        ([(1, 99), (1, 99)], 4 * N - 1),  # the last element
        ([(0, 1), (99, 99)], 0),  # no element
    ],
)
def test_what_is_inside_of_a_tensor(extents, offset):
    check(*extents, offset=offset, N=6)


@pytest.mark.parametrize(
    ("extents", "offset", "message"),
    [
        ([(4, N), (N, 1)], 1, "elements 1 to 24 are outside of a tensor of 96 bytes"),
        ([(5, N)], 0, "elements 0 to 24 are outside"),
        ([(2, -1)], 0, "elements -1 to 0 are outside"),
        ([(N - 7, 1)], 0, "a loop has the sizes [-1]"),
    ],
)
def test_what_is_outside_of_a_tensor(extents, offset, message):
    with pytest.raises(Mismatch, match=re.escape(message)):
        check(*extents, offset=offset, N=6)


def test_indices_may_choose_any_element_of_their_axis():
    check((2, 0), takes=[(N, 4)], N=6)
    with pytest.raises(Mismatch, match="outside of a tensor"):
        check((5, N), takes=[(N, 4)], N=6)
    with pytest.raises(Mismatch, match="indices choose from an axis without elements"):
        check((2, 0), takes=[(N, 4)], N=0)


def test_needs_count_elements_and_work():
    found = needs(
        [ComputedTensor((2, N), 4), ComputedTensor((N,), 8, work=10), ComputedTensor((), 1)],
        RunSizes({"N": 5}),
    )
    assert found == Needs(10, 10 * 4 + 5 * 18 + 1)
    assert found.charge == -(-found.work // COMPILED)
    assert needs([], RunSizes({})) == Needs(0, 0)


def test_shapes_that_no_tensor_has():
    with pytest.raises(Mismatch, match=re.escape("a tensor has the shape [-1]")):
        needs([ComputedTensor((N - 6,), 4)], RunSizes({"N": 5}))
    with pytest.raises(Mismatch, match="a tensor has 4611686018427387904 elements"):
        needs([ComputedTensor((1 << 31, 1 << 31), 1)], RunSizes({}))


# ---------------------------------------------------------------- jobs


@pytest.mark.parametrize("rows", [1, 7, 100, 5000])
@pytest.mark.parametrize("batch", [1, 50])
def test_jobs_of_products(rows, batch):
    job = rows_of_a_job(rows, 48, batch, tile_rows=6, width=24, most=256, jobs=16)
    assert job % 6 == 0
    assert job <= 256 + 6
    jobs = up(rows, job) * 2 * batch
    assert jobs >= min(4, up(rows, 6) * 2 * batch)  # each of four cores has one, if there are so many tiles


def test_jobs_without_rows():
    assert rows_of_a_job(0, 0, 0, tile_rows=6, width=24, most=256, jobs=16) == 6
    assert rows_of_attention(0, 0, 0, tile_rows=4, most=24, scores=1 << 16, jobs=16) == 4
    assert tiles_of_a_job(0, most=48, cores=4) == 1


def test_jobs_of_attention_keep_their_scores_in_the_cache():
    few = rows_of_attention(1000, 100, 8, tile_rows=4, most=24, scores=1 << 16, jobs=16)
    many = rows_of_attention(1000, 1 << 15, 8, tile_rows=4, most=24, scores=1 << 16, jobs=16)
    assert few == 24
    assert many == 4


def test_jobs_of_tiles_are_equal_parts():
    for tiles in (1, 36, 100, 1000):
        job = tiles_of_a_job(tiles, most=48, cores=4)
        assert job <= 48
        assert up(tiles, job) % 4 == 0 or up(tiles, job) == tiles or up(tiles, job) < 4 * up(tiles, 48 * 4)


def test_rows_of_trees_are_whole_lanes():
    assert rows_of_trees(10, 9, lanes=8, block=1 << 16, most=512) == 512
    assert rows_of_trees(1000, 9, lanes=8, block=1 << 16, most=512) == 64
    assert rows_of_trees(1 << 17, 9, lanes=8, block=1 << 16, most=512) == 8
    with pytest.raises(Mismatch, match="a node tests feature 10, and rows have 10"):
        rows_of_trees(10, 10, lanes=8, block=1 << 16, most=512)
