"""Repeated blocks of a sequence."""

import numpy as np
import pytest

from sabir.viewing._repeats import Repeat, repeats


def chain(kinds):
    """A sequence in which each item reads the one before it."""
    return [[place - 1] if place else [] for place in range(len(kinds))]


def found(kinds, reads=None, least=4):
    return repeats(kinds, reads or chain(kinds), [1] * len(kinds), least)


def test_a_block_between_other_items():
    kinds = [7, *[1, 2, 3] * 4, 8]
    assert found(kinds) == [Repeat(1, 3, 4)]


def test_several_repeats_stay_in_order():
    kinds = [*[1, 2, 3] * 4, 9, *[4, 5] * 6]
    assert found(kinds) == [Repeat(0, 3, 4), Repeat(13, 2, 6)]


def test_a_repeat_that_spares_little_is_none():
    kinds = [1, 2, 1, 2, 3]
    assert found(kinds, least=2) == [Repeat(0, 2, 2)]
    assert not found(kinds, least=3)


def test_weights_count():
    assert repeats([1, 1], [[], [0]], [10, 10], 10) == [Repeat(0, 1, 2)]
    assert not repeats([1, 1], [[], [0]], [10, 10], 11)


def test_a_block_begins_where_fewest_values_cross():
    # Conv Conv Add, where Add reads what entered the block: cut anywhere else, three values cross
    kinds = [5, *[1, 1, 2] * 4, 1]
    reads = chain(kinds)
    for block in range(4):
        reads[3 + 3 * block] = sorted({2 + 3 * block, 3 * block})
    assert found(kinds, reads) == [Repeat(1, 3, 4)]


def test_equal_kinds_with_other_links_are_no_repeat():
    kinds = [1, 2, 3] * 3
    reads = chain(kinds)
    reads[5] = [3]  # in the second block the third item reads the first one
    assert not found(kinds, reads, least=3)


def test_blocks_are_counted_up_to_the_first_other_links():
    kinds = [1, 2, 3] * 4
    reads = chain(kinds)
    reads[11] = [9]
    assert found(kinds, reads) == [Repeat(0, 3, 3)]


@pytest.mark.parametrize("seed", range(3))
def test_found_blocks_are_equal_and_disjoint(seed):
    generator = np.random.default_rng(seed)
    kinds = generator.integers(3, size=300).tolist()
    end = 0
    for repeat in found(kinds):
        assert repeat.start >= end
        end = repeat.stop
        block = kinds[repeat.start : repeat.start + repeat.period]
        assert kinds[repeat.start : repeat.stop] == block * repeat.count


def test_no_items():
    assert not found([])
