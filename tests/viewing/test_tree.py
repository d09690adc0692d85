"""Nodes as a tree of boxes."""

import string

import numpy as np

from sabir.viewing._tree import MOST_ITEMS, Leaf, tree_of


def leaves(layers, kinds=None):
    """Nodes in a chain, with these layers."""
    kinds = kinds or list(range(len(layers)))
    return [
        Leaf(n, tuple(filter(None, layer.split("/"))), kinds[n], (n - 1,) if n else (), f"Op{kinds[n]}")
        for n, layer in enumerate(layers)
    ]


def shown(box):
    """A box as nested tuples: names, and numbers of nodes."""
    return [
        item.number if isinstance(item, Leaf) else (item.kind, item.name, shown(item)) for item in box.items
    ]


def boxes(box):
    yield box
    for item in box.items:
        if not isinstance(item, Leaf):
            yield from boxes(item)


def test_layers_are_boxes():
    root = tree_of(leaves(["a", "a/b", "a/b", "a", "c", "c", ""]), "g")
    # the last node has no layers, and stands at the end, after those of c
    assert shown(root) == [("layer", "a", [0, ("layer", "b", [1, 2]), 3]), ("layer", "c", [4, 5]), 6]


def test_a_box_of_one_item_is_joined_with_it():
    root = tree_of(leaves(["a/b/c", "a/b/c", "a/b/d/e", "x"]), "g")
    assert shown(root) == [("layer", "a/b", [("layer", "c", [0, 1]), 2]), 3]


def test_a_graph_of_one_box_has_its_items():
    assert shown(tree_of(leaves(["m/a", "m/a", "m/b", "m/b"]), "g")) == [
        ("layer", "a", [0, 1]),
        ("layer", "b", [2, 3]),
    ]


def test_a_node_without_layers_is_in_those_around_it():
    root = tree_of(leaves(["m/a", "", "m/a", "", "m/b", "m/b"]), "g")
    assert shown(root) == [("layer", "a", [0, 1, 2]), 3, ("layer", "b", [4, 5])]


def test_equal_layers_are_one_repeat():
    layers = [f"layers.{n // 4}" for n in range(24)]
    (repeat,) = tree_of(leaves(["in", *layers, "out"], [9, *[0, 1, 2, 3] * 6, 8]), "g").items[1:-1]
    assert (repeat.kind, repeat.name, len(repeat.items)) == ("repeat", "layers.0 … layers.5", 6)
    assert all(block.kind == "block" and len(block.items) == 4 for block in repeat.items)


def test_blocks_without_names_are_found():
    root = tree_of(leaves([""] * 26, [9, *[0, 1, 2, 3] * 6, 8]), "g")
    first, repeat, last = root.items
    assert (first.number, repeat.kind, repeat.name, last.number) == (0, "repeat", "equal blocks", 25)
    assert [block.name for block in repeat.items] == [f"block {n}" for n in range(1, 7)]


def test_repeats_inside_repeats():
    inner = [0, 1, 2] * 5
    (repeat,) = tree_of(leaves([""] * 64, [*inner, 7] * 4), "g").items
    assert len(repeat.items) == 4
    (inside, last) = repeat.items[0].items
    assert (inside.kind, len(inside.items), last.op) == ("repeat", 5, "Op7")


def test_no_box_has_many_items():
    generator = np.random.default_rng(0)
    for count in (MOST_ITEMS + 1, 500, 5000):
        root = tree_of(leaves([""] * count, generator.integers(50, size=count).tolist()), "g")
        assert all(len(box.items) <= MOST_ITEMS for box in boxes(root))
        assert [leaf.number for leaf in root.leaves()] == list(range(count))


def test_many_repeats_are_in_parts():
    root = tree_of(leaves([""] * 1000, [0, 1, 2, 3] * 250), "g")
    (repeat,) = root.items
    assert {part.kind for part in repeat.items} == {"part"}
    assert len(repeat.items) <= MOST_ITEMS


def test_a_constant_stands_before_its_first_reader():
    nodes = [
        Leaf(0, (), 0, (), "Constant"),
        Leaf(1, (), 0, (), "Constant"),
        Leaf(2, (), 1, (), "Unread"),
        Leaf(3, (), 2, (), "First"),
        Leaf(4, (), 3, (3,), "Second"),
        Leaf(5, (), 4, (4, 0), "Third"),
        Leaf(6, (), 5, (5, 1, 0, 1), "Fourth"),
    ]
    assert [leaf.number for leaf in tree_of(nodes, "g").leaves()] == [2, 3, 4, 0, 5, 1, 6]


def test_layers_deeper_than_a_page_shows():
    deep = "/".join(string.ascii_lowercase * 40)
    root = tree_of(leaves([deep, deep, "x", "x"]), "g")
    assert len(root.items[0].name.split("/")) == 12


def test_parts_are_cut_where_few_values_cross():
    # stages of 9 nodes, in which every node is read by the last one of its stage
    reads: list[tuple[int, ...]] = [(n - 1,) if n % 9 else () for n in range(90)]
    for last in range(8, 90, 9):
        reads[last] = tuple(range(last - 8, last))
    chain = [Leaf(n, (), n, reads[n], "Op") for n in range(90)]
    sizes = [len(list(part.leaves())) for part in tree_of(chain, "g").items]
    assert all(size % 9 == 0 for size in sizes)
