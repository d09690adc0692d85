"""Tracks of a text picture: lines cross, and never run over each other."""

import numpy as np
import pytest

from sabir.drawing._layout import Leg
from sabir.drawing._tracks import tracks_of


def test_straight_legs_need_no_track():
    assert tracks_of([Leg(0, 4, (4,))]).height == 0


def test_legs_side_by_side_share_a_track():
    assert tracks_of([Leg(0, 2, (6,)), Leg(1, 9, (8, 12))]).height == 1


def test_a_leg_that_ends_where_another_begins_is_below_it():
    found = tracks_of([Leg(0, 2, (8,)), Leg(1, 8, (14,))])
    assert found.tracks == {1: 0, 0: 1}


def test_legs_that_change_places_take_a_detour():
    found = tracks_of([Leg(0, 2, (8,)), Leg(1, 8, (2,))])
    assert [(run.net, run.top, run.bottoms, run.after) for run in found.runs] == [
        (0, 2, (3,), None), (1, 8, (2,), None), (0, 3, (8,), 0),
    ]  # fmt: skip
    assert found.tracks == {0: 0, 1: 1, 2: 2}


@pytest.mark.parametrize("seed", range(10))
def test_runs_never_overlap(seed):
    rng = np.random.default_rng(seed)
    tops, bottoms = (rng.permutation(np.arange(0, 40, 2))[:10].tolist() for _ in range(2))
    legs = [Leg(n, tops[n], tuple(sorted(bottoms[2 * n : 2 * n + 2]))) for n in range(5)]
    found = tracks_of(legs)
    cells = {}
    for number, run in enumerate(found.runs):
        track = found.tracks[number]
        first = 0 if run.after is None else found.tracks[run.after] + 1
        is_part = any(other.after == number for other in found.runs)
        down = [(row, run.top) for row in range(first, track)]
        down += [
            (row, bottom)
            for bottom in run.bottoms
            for row in range(track + 1, track + 1 if is_part else found.height)
        ]
        along = [(track, column) for column in range(run.ends[0], run.ends[1] + 1)]
        for direction, places in (("down", down), ("along", along)):
            for place in places:
                assert cells.setdefault((direction, *place), run.net) == run.net
