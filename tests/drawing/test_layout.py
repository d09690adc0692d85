"""Layouts: nothing overlaps, lines begin and end at their boxes, and positions are the best ones."""

import itertools

import pytest

import sabir
from sabir.drawing._layering import layers_of
from sabir.drawing._layout import laid_out
from sabir.drawing._levels import levels_of
from sabir.drawing._nets import Frame, Net, Spacing
from sabir.drawing._ordering import crossings, order
from sabir.drawing._settling import Wish, settle
from support.random_graphs import frames_and_nets

SPACING = Spacing(boxes=4, lines=2, pins=2, label=1)


def layers(layout):
    return {
        place.box: number
        for number, row in enumerate(layout.layers)
        for place in row
        if place.box is not None
    }


@pytest.mark.parametrize("seed", range(12))
def test_nothing_overlaps(seed):
    frames, nets = frames_and_nets(seed, 4 + 3 * seed)
    layout = laid_out(frames, nets, SPACING)
    leaving = {}
    for number, net in enumerate(nets):
        label = frames[net.source].labels[net.exit]
        leaving.setdefault(net.source, []).append(
            layout.exits[number] + (label + SPACING.label if label else 0)
        )
    for row in layout.layers:
        for left, right in itertools.pairwise(row):
            end = max(left.left + left.width, *leaving.get(left.box, [0]))
            gap = SPACING.boxes if left.box is not None and right.box is not None else SPACING.lines
            assert end + gap <= right.left, "with their labels"
        assert all(place.left >= 0 and place.left + place.width <= layout.width for place in row)
    assert sorted(layers(layout)) == list(range(len(frames)))
    assert all(
        place.width >= frames[place.box].width
        for row in layout.layers
        for place in row
        if place.box is not None
    )


@pytest.mark.parametrize("seed", range(12))
def test_lines_lead_from_their_box_to_all_readers(seed):
    frames, nets = frames_and_nets(seed, 4 + 3 * seed)
    layout = laid_out(frames, nets, SPACING)
    layer = layers(layout)
    for number, net in enumerate(nets):
        columns, reached = {layout.exits[number]}, set()
        source = next(p for row in layout.layers for p in row if p.box == net.source)
        assert source.left < layout.exits[number] < source.left + source.width
        for gap in range(layer[net.source], max(layer[r] for r in net.readers)):
            (leg,) = [leg for leg in layout.legs[gap] if leg.net == number]
            assert {leg.top} == columns, "a leg begins where the one above ended"
            bends = {p.x for p in layout.layers[gap + 1] if p.net == number}
            entered = [
                p.box
                for p in layout.layers[gap + 1]
                for x in leg.bottoms
                if p.box is not None and p.left < x < p.left + p.width
            ]
            assert len(leg.bottoms) == len(bends) + len(entered)
            reached.update(entered)
            columns = bends
        assert reached == set(net.readers)
    pins = [(gap, x) for gap, legs in enumerate(layout.legs) for leg in legs for x in leg.bottoms]
    assert len(pins) == len(set(pins)), "two lines never touch a box at the same place"


def test_a_box_is_below_its_sources_and_near_its_readers():
    # 0 -> 1 -> 2 -> 3, and 4, which only 5 reads after 3
    nets = [Net(0, 0, (1,)), Net(1, 0, (2,)), Net(2, 0, (3,)), Net(3, 0, (5,)), Net(4, 0, (5,))]
    assert layers_of(6, nets) == [0, 1, 2, 3, 3, 4]


def test_a_chain_is_straight_and_a_diamond_symmetrical():
    chain = laid_out([Frame(9, 3, (0,))] * 4, [Net(n, 0, (n + 1,)) for n in range(3)], SPACING)
    assert len({row[0].x for row in chain.layers}) == 1
    diamond = laid_out(
        [Frame(9, 3, (0,))] * 4, [Net(0, 0, (1, 2)), Net(1, 0, (3,)), Net(2, 0, (3,))], SPACING
    )
    ((top,), (left, right), (bottom,)) = diamond.layers
    assert left.x + right.x == pytest.approx(2 * top.x, abs=1)
    assert top.x == bottom.x


def test_blocks_with_a_line_beside_them_stay_below_each_other():
    """Each box reads the one before and the one two before, as residual blocks do."""
    nets = [
        Net(n, 0, tuple(r for r in (n + 1, n + 3) if r < 30 and (r == n + 1 or n % 3 == 0)))
        for n in range(29)
    ]
    layout = laid_out([Frame(20, 3, (0,))] * 30, nets, SPACING)
    assert layout.width < 60


def test_all_readers_of_a_value_share_its_bends():
    nets = [Net(0, 0, (1, 2, 3)), Net(1, 0, (2,)), Net(2, 0, (3,))]
    assert list(levels_of(4, nets).nets.values()) == [0, 0]


def test_sweeps_remove_crossings():
    before = after = 0
    for seed in range(8):
        _, nets = frames_and_nets(seed, 24)
        levels = levels_of(24, nets)
        before += crossings(levels)
        order(levels)
        after += crossings(levels)
    assert after < before / 2


def test_crossings_are_counted_as_pairs():
    for seed in range(3):
        _, nets = frames_and_nets(seed, 16)
        levels = levels_of(16, nets)
        counted = 0
        for upper, lower, links in zip(levels.layers, levels.layers[1:], levels.links, strict=False):
            for a, b in itertools.combinations(links, 2):
                over = upper.index(a.upper) - upper.index(b.upper)
                counted += over * (lower.index(a.lower) - lower.index(b.lower)) < 0
        assert crossings(levels) == counted


def test_positions_are_the_best_whole_ones():
    """Compared with all positions of three items."""
    for wishes in itertools.product((-2, 0, 3), repeat=3):
        weighted = list(itertools.starmap(Wish, zip(wishes, (1, 4, 2), strict=True)))

        def cost(positions, weighted=weighted):
            return sum(w.weight * (x - w.position) ** 2 for x, w in zip(positions, weighted, strict=True))

        found = settle(weighted, [2, 3])
        assert found[1] - found[0] >= 2
        assert found[2] - found[1] >= 3
        every = (
            p for p in itertools.product(range(-8, 9), repeat=3) if p[1] - p[0] >= 2 and p[2] - p[1] >= 3
        )
        # rounding moves each item of a pool by half a column at most
        assert cost(found) <= min(map(cost, every)) + sum(w.weight for w in weighted) / 4


def test_too_many_bends_are_refused():
    nets = [
        Net(0, 0, (200,)),
        *(Net(n, 0, (n + 1,)) for n in range(200)),
        *(Net(n, 1, (200,)) for n in range(150)),
    ]
    with pytest.raises(
        sabir.UnsupportedError, match=r"at most 5,000 bends of lines around boxes, and this one \d"
    ):
        laid_out([Frame(9, 3, (0, 0, 0))] * 201, nets, SPACING)


def test_no_boxes():
    assert laid_out([], [], SPACING).layers == ()
