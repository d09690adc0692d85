"""Products of matrices, and attention."""

from __future__ import annotations

import numpy as np

from support.drawing.graphs import FLOATS, WIDE, Graphs, Made, broadcast, dtype_of


def matmul(g: Graphs):
    x = g.some(rank=1, kinds=(*FLOATS, "float", *WIDE))
    if x.rank < 1:
        return None
    first = x.rank == 1 or not g.chance(3)
    shape = _other(g, x, first=first)
    fit = [y for y in g.pool if y.kind == x.kind and y.shape == shape]
    y = g.pick(fit) if fit and not g.chance(3) else _turned(g, x, shape)
    a, b = (x, y) if first else (y, x)
    head = broadcast(a.shape[:-2], b.shape[:-2])
    if head is None:
        return None
    shape = (*head, *(a.shape[-2:-1] if a.rank > 1 else ()), *(b.shape[-1:] if b.rank > 1 else ()))
    value = g.b.MatMul(a.value, b.value)
    if not x.is_float:
        return g.result(value, x.kind, shape, 2.0**70)
    depth = max(1, *a.shape[-1])
    return g.result(value, x.kind, shape, depth * a.high * b.high, _error(a, b, depth), a.grain * b.grain)


def _other(g: Graphs, x: Made, *, first):
    """A shape that the product of `x`, as its first operand or its second, can have the other of."""
    depth, columns = x.shape[-1] if first else x.shape[-2], g.pick(g.dims)
    if g.chance(6):
        return (depth,)
    matrix = (depth, columns) if first else (columns, depth)
    if g.chance(3):
        return matrix
    batch = tuple(g.one if g.chance(4) else d for d in x.shape[:-2])
    return (*batch[g.choose(len(batch) + 1) :], *matrix)


def _turned(g: Graphs, x: Made, shape):
    """A new operand, sometimes one whose columns lie side by side."""
    if len(shape) == 1 or not g.chance(3):
        return g.new(x.kind, shape, exact=x.exact)
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    made = g.new(x.kind, tuple(shape[a] for a in order), exact=x.exact)
    return made._replace(value=g.b.Transpose(made.value, perm=order), shape=shape)


def _error(a: Made, b: Made, depth):
    """How far sums of products may be apart."""
    rounding = 2.0**-22 if a.kind == "float" else 2.0**-51
    return depth * (a.error * b.high + b.error * a.high + rounding * a.high * b.high)


def gemm(g: Graphs):
    x = g.some(rank=2, kinds=FLOATS)
    if x.rank != 2:
        return None
    flip_a, flip_b = g.choose(2), g.choose(2)
    rows, depth = x.shape[::-1] if flip_a else x.shape
    columns = g.pick(g.dims)
    w = g.new(x.kind, (columns, depth) if flip_b else (depth, columns))
    shapes = [(columns,), (g.one, columns), (rows, columns), (rows, g.one), ()]
    bias = [g.new(x.kind, g.pick(shapes)).value] if g.choose(2) else []
    factors = {"alpha": g.pick([1.0, 0.5]), "beta": g.pick([1.0, 2.0])}
    value = g.b.Gemm(x.value, w.value, *bias, transA=flip_a, transB=flip_b, **factors)
    n = max(1, *depth)
    return g.result(value, x.kind, (rows, columns), n * x.high * w.high + 8, _error(x, w, n))


def attention(g: Graphs):
    """Queries of the graph, new keys and values."""
    x = g.some(rank=2, kinds=FLOATS)
    if x.rank < 2 or any(0 in d for d in x.shape):
        return None
    dims = [d for d in (*g.dims, g.one) if 0 not in d]
    keys, wide = g.pick(dims), g.pick(dims)
    head = x.shape[:-2] if g.chance(2) else tuple(g.one for _ in x.shape[:-2])
    k = _turned(g, x, (*head, x.shape[-1], keys))
    v = g.new(x.kind, (*head, keys, wide))
    return _attended(g, x, k, v)


def _attended(g: Graphs, q: Made, k: Made, v: Made):
    """Scores, with a mask or a bias or neither, Softmax, and the sums of the values; `k` has keys as columns."""
    dtype, depth = dtype_of(q.kind), max(q.shape[-1])
    scale = 1 / max(depth * q.high * k.high, 1)
    scores = g.b.Mul(g.b.MatMul(q.value, k.value), np.array(scale, dtype))
    area = (q.shape[-2], k.shape[-1])
    how = g.choose(3)
    if how == 1:
        mask = g.new("bool", area[g.choose(3) :])
        scores = g.b.Where(mask.value, scores, np.array(g.pick([-1e4, -3.0]), dtype))
    elif how == 2:
        scores = g.b.Add(scores, g.new(q.kind, area[g.choose(3) :]).value)
    rows = g.b.Softmax(scores, axis=-1)
    error = 2 * scale * _error(q, k, depth) + 2.0**-20 * (q.kind == "float") + 2.0**-49
    shape = (*q.shape[:-1], v.shape[-1])
    made = g.result(g.b.MatMul(rows, v.value), q.kind, shape, v.high, 2 * v.high * error + v.error)
    if made is not None and g.chance(4):
        return [made, g.result(rows, q.kind, (*q.shape[:-1], k.shape[-1]), 1, error)]
    return made


def heads(g: Graphs):
    """Attention of a sequence to itself, in heads that one product computes and that lie beside one another."""
    x = g.some(rank=3, kinds=FLOATS)
    if x.rank != 3 or any(0 in d for d in x.shape) or not g.is_static(x.shape[-1:]):
        return None
    b, count, wide = g.b, g.pick([2, 1, 3]), g.pick([4, 1, 8, 5])
    size = count * wide
    w = g.constant(x.kind, (x.shape[-1], (3 * size,) * g.runs), high=1.0)
    all_three = b.MatMul(x.value, w.value)
    parts = b.Split(all_three, num_outputs=3, axis=-1, outputs=3)
    n = x.shape[-1][0]
    found = []
    for part, order in zip(parts, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True):
        split = b.Reshape(part, [0, 0, count, wide])
        shape = (x.shape[0], x.shape[1], (count,) * g.runs, (wide,) * g.runs)
        shape = tuple(shape[a] for a in order)
        value = b.Transpose(split, perm=order)
        found.append(Made(value, x.kind, shape, n * x.high, _error(x, w, n), 0.0))
    made = _attended(g, *found)
    if made is None or isinstance(made, list):
        return None
    joined = b.Reshape(b.Transpose(made.value, perm=[0, 2, 1, 3]), [0, 0, size])
    return g.same(made, joined, shape=(*x.shape[:2], (size,) * g.runs))
