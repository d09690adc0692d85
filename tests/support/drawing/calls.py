"""Graphs drawn at random, of all calls: what a test draws."""

from __future__ import annotations

from support.drawing.contents import branch, evaluated, gather, loop, selected
from support.drawing.graphs import Graphs
from support.drawing.numbers import (
    binary,
    cast,
    clip,
    compare,
    domain_of_function,
    jump,
    logic,
    of_integers,
    unary,
    where,
)
from support.drawing.products import attention, gemm, heads, matmul
from support.drawing.rows import extreme, normalisation, reduction, softmax
from support.drawing.views import (
    concat,
    cut,
    expand,
    filled,
    flatten,
    pad,
    reshape,
    shape_as_number,
    split,
    squeeze,
    tile,
    transpose,
    unsqueeze,
)

CALLS = {
    unary: 3, binary: 6, transpose: 3, matmul: 5, reduction: 5, softmax: 3, reshape: 4, normalisation: 3, cut: 3, concat: 3,
    where: 2, gather: 3, pad: 2, attention: 3, heads: 2, expand: 2, split: 2, unsqueeze: 1, squeeze: 1, flatten: 1, tile: 1,
    shape_as_number: 1, filled: 1, domain_of_function: 2, jump: 1, compare: 2, logic: 1, cast: 2, clip: 1, of_integers: 1, extreme: 2,
    gemm: 2, evaluated: 1, selected: 1, branch: 1, loop: 1,
}  # fmt: skip
_WEIGHTED = [call for call, weight in CALLS.items() for _ in range(weight)]


def step(g: Graphs):
    """Add one call, where what is drawn is possible."""
    g.add(g.pick(_WEIGHTED)(g))


def draw(choose, runs, most=14):
    """Draw a whole graph; runs of it have different sizes."""
    g = Graphs(choose, runs)
    kind = g.pick(["float", "double", "int64", "bool"][: g.pick([1, 1, 4])])
    g.add(g.new(kind, g.shape(1)))
    for _ in range(1 + choose(most)):
        step(g)
    return g.finish()
