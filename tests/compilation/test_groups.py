"""The order of groups: what a group needs comes forward, and nothing else changes its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabir.compilation.fusion.groups import Group, in_order


def groups_of(*needs, gone=()):
    """Groups that need others, each with all that these need."""
    groups = [Group("gone" if n in gone else "nest", n) for n in range(len(needs))]

    def closure(number, seen):
        for other in needs[number]:
            if other not in seen:
                seen.add(other)
                closure(other, seen)
        return seen

    for group in groups:
        group.after = sum(1 << n for n in closure(group.number, set()))
    return groups


def numbers(groups):
    return [g.number for g in in_order(groups)]


def test_groups_that_need_nothing_later_keep_their_places():
    assert numbers(groups_of([], [0], [], [1, 2])) == [0, 1, 2, 3]


def test_what_a_group_needs_comes_forward():
    assert numbers(groups_of([], [4], [], [], [3])) == [0, 3, 4, 1, 2]


def test_groups_that_are_gone_are_not_in_the_order():
    assert numbers(groups_of([2], [], [3], [], gone=(2,))) == [3, 0, 1]


def test_groups_that_wait_for_each_other():
    with pytest.raises(AssertionError, match="depend on each other"):
        in_order(groups_of([1], [2], [0]))


def test_a_long_chain_backwards():
    count = 3000
    groups = [Group("nest", n) for n in range(count)]
    for group in groups:
        group.after = (1 << count) - (1 << (group.number + 1))
    assert numbers(groups) == list(reversed(range(count)))


@given(st.data())
def test_every_group_runs_once_and_after_what_it_needs(data):
    count = data.draw(st.integers(1, 12))
    rank = data.draw(st.permutations(range(count)))  # any order that there may be
    needs = [
        sorted(data.draw(st.sets(st.sampled_from([m for m in range(count) if rank[m] < rank[n]] or [n]))))
        for n in range(count)
    ]
    needs = [[m for m in found if m != n] for n, found in enumerate(needs)]
    order = numbers(groups_of(*needs))
    assert sorted(order) == list(range(count))
    for number, found in enumerate(needs):
        assert all(order.index(m) < order.index(number) for m in found)
