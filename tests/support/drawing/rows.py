"""Folds, and what is computed row by row."""

from __future__ import annotations

import math

import numpy as np

from support.drawing.graphs import FLOATS, INTEGERS, WIDE, Graphs, Made, count, dtype_of

NUMBERS = (*FLOATS, *INTEGERS)


def axes_of(g: Graphs, x):
    chosen = sorted({g.choose(x.rank) for _ in range(g.pick([1, 1, 2, 3]))})
    return list(range(x.rank)) if g.chance(6) else chosen


def folded(x, axes, g, keep):
    return tuple(g.one if a in axes else d for a, d in enumerate(x.shape) if keep or a not in axes)


def reduction(g: Graphs):
    x = g.some(rank=1, kinds=(*FLOATS, *WIDE))
    if x.rank < 1:
        return None
    axes, keep = axes_of(g, x), g.choose(2)
    n = count(x, axes)
    empty = any(0 in x.shape[a] for a in axes)
    long = (
        n * x.high,
        n * x.error + 4 * math.log2(n + 1) * 2.0**-23 * x.high * n * (x.kind == "float"),
        x.grain,
    )
    name = g.pick(["Sum", "Mean", "Max", "Min", "SumSquare", "L1", "L2", "Prod", "LogSumExp"])
    high, error, grain = {
        "Mean": (x.high, x.error, 0.0), "Max": (x.high, x.error, x.grain), "Min": (x.high, x.error, x.grain),
        "SumSquare": (n * x.high**2, 2 * long[1] * x.high, x.grain**2), "L2": (math.sqrt(n) * x.high, math.sqrt(n) * x.error, 0.0),
        "Prod": (max(x.high, 1) ** n if n < 5 else 1e99, n * max(x.high, 1) ** min(n, 5) * x.error, x.grain**min(n, 5)),
        "LogSumExp": (x.high + math.log(n), x.error, 0.0),
    }.get(name, long)  # fmt: skip
    if empty and name not in {"Sum", "SumSquare", "L1", "L2", "Prod"}:
        return None
    if not x.is_float and name in {"Mean", "L2", "LogSumExp"}:
        return None
    if not x.is_float:
        high = 2.0**70
    given = [] if axes == list(range(x.rank)) and g.chance(2) else [[a - x.rank * g.choose(2) for a in axes]]
    value = getattr(g.b, f"Reduce{name}")(x.value, *given, keepdims=keep)
    return g.result(value, x.kind, folded(x, axes, g, keep), high, error, grain)


def extreme(g: Graphs):
    x = g.some(rank=1, kinds=NUMBERS, exact=True)
    if x.rank < 1 or not x.exact:
        return None
    axis, named = g.axis(x)
    if 0 in x.shape[axis]:
        return None
    keep = g.choose(2)
    if x.kind in FLOATS and g.chance(4):
        return g.result(g.b.Hardmax(x.value, axis=named), x.kind, x.shape, 1, 0.0, 1.0)
    name = g.pick(["ArgMax", "ArgMin"])
    value = getattr(g.b, name)(x.value, axis=named, keepdims=keep, select_last_index=g.choose(2))
    return g.result(value, "int64", folded(x, [axis], g, keep), max(x.shape[axis]))


def softmax(g: Graphs, x: Made | None = None):
    x = x or g.some(rank=1, kinds=FLOATS)
    if x.rank < 1:
        return None
    axis, named = g.axis(x)
    how, n = g.choose(3), count(x, [axis])
    if how == 0:
        return g.result(g.b.Softmax(x.value, axis=named), x.kind, x.shape, 1, x.error)
    if how == 1:
        return g.result(
            g.b.LogSoftmax(x.value, axis=named), x.kind, x.shape, 2 * x.high + math.log(n), 2 * x.error
        )
    if 0 in x.shape[axis]:
        return None
    e = g.b.Exp(g.b.Sub(x.value, g.b.ReduceMax(x.value, [axis])))
    return g.result(
        g.b.Div(e, g.b.ReduceSum(e, [axis])), x.kind, x.shape, 1, 2 * x.error + 2e-6 * (x.kind == "float")
    )


def normalisation(g: Graphs):
    x = g.some(rank=1, kinds=FLOATS)
    if x.rank < 1:
        return None
    axis, named = g.axis(x)
    n = count(x, range(axis, x.rank))
    dtype, epsilon = dtype_of(x.kind), g.pick([0.1, 1.0, 1e-3])
    stretch = (math.sqrt(n) + 1) / math.sqrt(epsilon)
    error = stretch * (x.error + 8 * 2.0**-23 * x.high)
    how = g.choose(4)
    if any(0 in d for d in x.shape):
        return None
    scale = g.new(x.kind, x.shape[axis:], high=1.0)
    if how == 0:
        value = g.b.LayerNormalization(x.value, scale.value, axis=named, epsilon=epsilon)
    elif how == 1:
        bias = g.new(x.kind, x.shape[axis:], high=1.0)
        value = g.b.LayerNormalization(x.value, scale.value, bias.value, axis=named, epsilon=epsilon)
    elif how == 2:
        value = g.b.RMSNormalization(x.value, scale.value, axis=named, epsilon=epsilon)
    else:
        axes = list(range(axis, x.rank))
        centred = g.b.Sub(x.value, g.b.ReduceMean(x.value, axes))
        spread = g.b.Sqrt(g.b.Add(g.b.ReduceMean(g.b.Mul(centred, centred), axes), np.array(epsilon, dtype)))
        value = g.b.Mul(g.b.Div(centred, spread), scale.value)
    return g.result(value, x.kind, x.shape, math.sqrt(n) + 1, error)
