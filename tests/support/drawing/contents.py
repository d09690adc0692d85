"""Calls whose results depend on contents: indices, choices, loops."""

from __future__ import annotations

import numpy as np

from support.drawing.graphs import FLOATS, Graphs, Made, count, dtype_of, replaced, worst
from support.drawing.numbers import unary


def indices(g: Graphs, dim, shape) -> Made:
    """Indices along an axis, valid in every run."""
    least = min(dim)

    def array(sizes, rng):
        return rng.integers(-least, max(least, 1), sizes).astype(kind)

    kind = np.dtype(g.pick(["int64", "int32"]))
    if g.is_static(shape) and g.chance(2):
        made = array(tuple(d[0] for d in shape), np.random.default_rng(g.choose(1000)))
        return Made(g.b.initializer(f"i{g.choose(1000)}", made), kind.name, shape, least)
    made = g.input(kind.name, shape, least, 1.0, array)
    g.pool.pop()  # calls that compute with it would not be valid indices
    return made


def gather(g: Graphs):
    x = g.some(rank=1)
    axis, named = g.axis(x)
    if 0 in x.shape[axis]:
        return None
    if g.chance(3):
        shape = tuple(
            g.pick([d, d if 0 in d else g.one]) if a != axis else g.pick(g.dims)
            for a, d in enumerate(x.shape)
        )
        i = indices(g, x.shape[axis], shape)
        return g.same(x, g.b.GatherElements(x.value, i.value, axis=named), shape=shape)
    shape = g.shape(0, 2)
    i = indices(g, x.shape[axis], shape)
    return g.same(x, g.b.Gather(x.value, i.value, axis=named), shape=replaced(x.shape, axis, *shape))


def evaluated(g: Graphs):
    """A call that kernels do not compute."""
    x = g.some(rank=1, kinds=("float", "double", "int64", "int32"))
    if x.rank < 1:
        return None
    axis, named = g.axis(x)
    n = count(x, [axis])
    if g.chance(2):
        high, error = n * x.high, n * (x.error + 2.0**-22 * x.high)
        return g.result(g.b.CumSum(x.value, np.array(named)), x.kind, x.shape, high, error, x.grain)
    if x.kind == "float" and x.exact and x.shape[axis][0] and len(set(x.shape[axis])) == 1:
        values, places = g.b.TopK(x.value, [1], axis=named)
        shape = replaced(x.shape, axis, g.one)
        return [g.same(x, values, shape=shape), g.result(places, "int64", shape, n)]
    return None


def selected(g: Graphs):
    """Sizes that only contents decide, and what folds them away."""
    x = g.some(rank=1, kinds=FLOATS)
    if x.rank < 1:
        return None
    axis = g.choose(x.rank)
    keep = g.new("bool", (x.shape[axis],))
    part = g.b.Compress(x.value, keep.value, axis=axis)
    part = g.b.Add(g.b.Mul(part, part), np.array(1, dtype_of(x.kind)))
    n = count(x, [axis])
    high = n * (x.high**2 + 1)
    error = n * (2 * x.high * x.error + 2.0**-21 * (x.high**2 + 1))
    total = g.b.ReduceSum(part, [axis], keepdims=1)
    return g.result(total, x.kind, replaced(x.shape, axis, g.one), high, error)


def branch(g: Graphs):
    x = g.some(kinds=FLOATS)
    how = g.choose(3)
    if g.nested or not x.is_float:
        return None
    if how == 0:
        condition = g.new("bool", ()).value
    elif how == 1:
        condition = g.constant("bool", ()).value
    else:
        y = g.some(kinds=("int64",))
        if y.kind != "int64":
            return None
        condition = g.b.Greater(g.b.ReduceSum(y.value, keepdims=0), np.array(0))
    found: list[Made | None] = []

    def body(inner):
        saved, g.b, g.nested = g.b, inner, True
        try:
            made = unary(g, x) or Made(inner.Tanh(x.value), x.kind, x.shape, 1.0, x.error + 1e-6, 0.0)
            if g.chance(2):
                made = unary(g, made) or made
        finally:
            g.b, g.nested = saved, False
        found.append(made)
        return made.value

    value = g.b.If(condition, then_branch=body, else_branch=body)
    return g.result(value, x.kind, x.shape, **worst([f for f in found if f]))


def loop(g: Graphs):
    x = g.some(kinds=("float",))
    if g.nested or x.kind != "float" or any(len(set(d)) > 1 for d in x.shape):
        return None
    trips = g.pick([2, 3, 1, 0])
    sizes = [d[0] for d in x.shape]

    def body(inner):
        inner.input("turn", "int64", [])
        going = inner.input("going", "bool", [])
        carried = inner.input("carried", "float", sizes)
        last = inner.Tanh(inner.Add(carried, x.value))
        return going, last, inner.Mul(last, last)

    last, each = g.b.Loop(trips, np.ones((), bool), x.value, body=body, outputs=2)
    error = 8 * x.error + 1e-5
    return [
        g.result(last, "float", x.shape, max(x.high, 1), error),
        g.result(each, "float", ((trips,) * g.runs, *x.shape), 1, 2 * error),
    ]
