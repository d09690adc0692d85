"""Calls that move the elements of values."""

from __future__ import annotations

import numpy as np

from support.drawing.graphs import Graphs, broadcast, dtype_of, product, replaced, worst

FAR = 2**40


def transpose(g: Graphs):
    x = g.some(rank=1)
    order = list(range(x.rank))
    for i in range(x.rank):
        j = i + g.choose(x.rank - i)
        order[i], order[j] = order[j], order[i]
    return g.same(x, g.b.Transpose(x.value, perm=order), shape=tuple(x.shape[a] for a in order))


def reshape(g: Graphs):
    """Axes merge, a known one is divided, ones come and go."""
    x = g.some()
    shape = list(x.shape)
    how = g.choose(4)
    if how == 0 and x.rank > 1:
        axis = g.choose(x.rank - 1)
        shape[axis : axis + 2] = [product(shape[axis : axis + 2], g.runs)]
    elif how == 1 and x.rank:
        axis = g.choose(x.rank)
        factors = [f for f in (2, 3, 4, 5) if all(n % f == 0 for n in shape[axis])]
        if factors:
            f = g.pick(factors)
            parts = [(f,) * g.runs, tuple(n // f for n in shape[axis])]
            shape[axis : axis + 1] = parts if g.chance(2) else parts[::-1]
    elif how == 2:
        shape = [product(shape, g.runs)]
    else:
        shape.insert(g.choose(x.rank + 1), g.one)
    target, open_ = [], 0
    for i, d in enumerate(shape):
        if len(set(d)) == 1 and d[0]:
            target.append(d[0])
        elif i < x.rank and x.shape[i] == d:
            target.append(0)
        else:
            target.append(-1)
            open_ += 1
    if open_ < 2 and not (open_ and any(0 in d for d in shape)):
        return g.same(x, g.b.Reshape(x.value, np.array(target, np.int64)), shape=tuple(shape))
    sizes = g.sizes(tuple(shape))
    if sizes is None:
        return None
    return g.same(x, g.b.Reshape(x.value, sizes, allowzero=1), shape=tuple(shape))


def flatten(g: Graphs):
    x = g.some()
    axis = g.choose(x.rank + 1)
    shape = product(x.shape[:axis], g.runs), product(x.shape[axis:], g.runs)
    return g.same(x, g.b.Flatten(x.value, axis=axis), shape=shape)


def unsqueeze(g: Graphs):
    x = g.some()
    axis = g.choose(x.rank + 1)
    return g.same(x, g.b.Unsqueeze(x.value, [axis]), shape=(*x.shape[:axis], g.one, *x.shape[axis:]))


def squeeze(g: Graphs):
    x = g.some(rank=1)
    axes = [a for a, d in enumerate(x.shape) if d == g.one]
    if not axes:
        return None
    return g.same(
        x, g.b.Squeeze(x.value, axes), shape=tuple(d for a, d in enumerate(x.shape) if a not in axes)
    )


def cut(g: Graphs):
    x = g.some(rank=1)
    axes = sorted({g.choose(x.rank) for _ in range(g.pick([1, 1, 2]))})
    starts = [g.pick([0, 1, 2, -1, -2, -3, 5, FAR]) for _ in axes]
    ends = [g.pick([FAR, -1, 1, 2, 4, -2, 0, -FAR]) for _ in axes]
    steps = [g.pick([1, 1, 2, -1, 3, -2]) for _ in axes]
    shape = list(x.shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        shape[axis] = tuple(len(range(*slice(start, end, step).indices(n))) for n in shape[axis])
    return g.same(x, g.b.Slice(x.value, starts, ends, axes, steps), shape=tuple(shape))


def expand(g: Graphs):
    x = g.some()
    if any(len(set(d)) > 1 and 1 in d for d in x.shape):
        return None
    wide = [g.pick([*g.dims, g.one]) if d == g.one else d for d in x.shape]
    shape = (*(g.pick(g.dims) for _ in range(g.choose(3))), *wide)[: max(4, x.rank)]
    sizes = g.sizes(shape)
    if sizes is None or broadcast(shape, x.shape) != shape:
        return None
    return g.same(x, g.b.Expand(x.value, sizes), shape=shape)


def concat(g: Graphs):
    x = g.some(rank=1)
    axis, named = g.axis(x)
    parts = [x]
    for _ in range(g.pick([1, 2])):
        fit = [
            y
            for y in g.pool
            if y.kind == x.kind and y.rank == x.rank and replaced(y.shape, axis) == replaced(x.shape, axis)
        ]
        parts.append(
            g.new(x.kind, replaced(x.shape, axis, g.pick(g.dims))) if g.chance(3) or not fit else g.pick(fit)
        )
    if g.chance(2):
        parts.reverse()
    dim = tuple(map(sum, zip(*(p.shape[axis] for p in parts), strict=True)))
    return g.same(
        x,
        g.b.Concat(*(p.value for p in parts), axis=named),
        shape=replaced(x.shape, axis, dim),
        **worst(parts),
    )


def split(g: Graphs):
    x = g.some(rank=1)
    axis, named = g.axis(x)
    dim = x.shape[axis]
    parts = g.pick([2, 3])
    if g.chance(2) and len(set(dim)) == 1:
        first = g.choose(dim[0] + 1)
        sizes = [(first,) * g.runs, (dim[0] - first,) * g.runs]
        made = g.b.Split(x.value, [first, dim[0] - first], axis=named, outputs=2)
    else:
        each = [-(-n // parts) for n in dim]
        sizes = [
            tuple(max(0, min(e, n - i * e)) for n, e in zip(dim, each, strict=True)) for i in range(parts)
        ]
        if any(n < (parts - 1) * e for n, e in zip(dim, each, strict=True)):
            return None
        made = g.b.Split(x.value, num_outputs=parts, axis=named, outputs=parts)
    return [g.same(x, y, shape=replaced(x.shape, axis, d)) for y, d in zip(made, sizes, strict=True)]


def pad(g: Graphs):
    x = g.some(rank=1)
    mode = g.pick(["constant", "constant", "edge", "reflect", "wrap"])
    most = 3 if mode in {"constant", "edge"} else min(n - 1 for d in x.shape for n in d)
    if most < 0 or (mode != "constant" and any(0 in d for d in x.shape)):
        return None
    pads = [g.choose(min(most, 3) + 1) for _ in range(2 * x.rank)]
    shape = tuple(
        tuple(n + a + b for n in d) for d, a, b in zip(x.shape, pads[: x.rank], pads[x.rank :], strict=True)
    )
    fill = [] if mode != "constant" or g.chance(2) else [np.array(1, dtype_of(x.kind))]
    high = max(x.high, 1)
    grain = min(x.grain, 1)
    return g.same(x, g.b.Pad(x.value, pads, *fill, mode=mode), shape=shape, high=high, grain=grain)


def tile(g: Graphs):
    x = g.some(rank=1)
    repeats = [g.pick([1, 2, 1, 3]) for _ in x.shape]
    shape = tuple(tuple(n * r for n in d) for d, r in zip(x.shape, repeats, strict=True))
    return g.same(x, g.b.Tile(x.value, repeats), shape=shape)


def shape_as_number(g: Graphs):
    x = g.some(rank=1)
    axis = g.choose(x.rank)
    kind = g.pick(["float", "int64"])
    size = g.b.Gather(g.b.Shape(x.value), [axis])
    value = g.b.Cast(size, to="float") if kind == "float" else size
    return g.result(value, kind, (g.one,), max(x.shape[axis]), 0.0, 1.0)


def filled(g: Graphs):
    """One number in the shape of a value, which needs no memory."""
    x = g.some()
    kind = g.pick(["float", "float", "int64"])
    value = g.b.ConstantOfShape(g.b.Shape(x.value), value=np.array([2], dtype_of(kind)))
    return g.result(value, kind, x.shape, 2, 0.0, 1.0)
