"""Calls that compute each element from those in its place."""

from __future__ import annotations

import math

import numpy as np

from support.drawing.graphs import FLOATS, INTEGERS, Graphs, Made, broadcast, dtype_of, worst

SIGNED = ("int64", "int32", "int8", "int16")
NUMBERS = (*FLOATS, *INTEGERS)


UNARY = {  # how much a function can stretch distances, and the magnitude of its results
    "Relu": (1, lambda h: h), "Tanh": (1, lambda _: 1), "Sigmoid": (1, lambda _: 1), "Erf": (1.2, lambda _: 1),
    "Abs": (1, lambda h: h), "Neg": (1, lambda h: h), "Softplus": (1, lambda h: h + 1), "Softsign": (1, lambda _: 1),
    "Atan": (1, lambda _: 2), "Sin": (1, lambda _: 1), "Cos": (1, lambda _: 1), "Asinh": (1, lambda h: h),
    "LeakyRelu": (1, lambda h: h), "Elu": (1, lambda h: h + 1), "Selu": (1.8, lambda h: 1.8 * h + 2),
    "Gelu": (1.2, lambda h: h), "HardSigmoid": (1, lambda _: 1), "HardSwish": (2, lambda h: h), "Mish": (1.2, lambda h: h),
    "Swish": (1.2, lambda h: h), "Celu": (1, lambda h: h + 1), "Identity": (1, lambda h: h),
}  # fmt: skip
KEEPS = {"Relu", "Abs", "Neg", "Identity"}  # the grain
JUMPS = ("Floor", "Ceil", "Round", "Sign", "ThresholdedRelu", "Shrink")


def unary(g: Graphs, x: Made | None = None):
    x = x or g.some(kinds=FLOATS)
    name = g.pick(list(UNARY))
    if name == "Celu" and x.kind != "float":
        return None
    stretch, high = UNARY[name]
    if name in {"Sin", "Cos"} and x.high > 1000:
        return None
    value = getattr(g.b, name)(x.value)
    return g.result(value, x.kind, x.shape, high(x.high), stretch * x.error, x.grain if name in KEEPS else 0)


def domain_of_function(g: Graphs):
    """A function whose operand must be positive, or small."""
    x = g.some(kinds=FLOATS)
    positive = g.b.Add(g.b.Abs(x.value), np.array(1, dtype_of(x.kind)))
    how = g.choose(6)
    if how == 0 and x.high <= 8:
        high = math.exp(x.high)
        return g.result(g.b.Exp(x.value), x.kind, x.shape, high, high * x.error)
    if how == 1:
        return g.result(g.b.Log(positive), x.kind, x.shape, math.log1p(x.high), x.error)
    if how == 2:
        return g.result(g.b.Sqrt(positive), x.kind, x.shape, 1 + math.sqrt(x.high), x.error)
    if how == 3:
        return g.result(g.b.Reciprocal(positive), x.kind, x.shape, 1, x.error)
    if how == 4:
        return g.result(
            g.b.Pow(positive, np.array(0.5, dtype_of(x.kind))),
            x.kind,
            x.shape,
            1 + math.sqrt(x.high),
            x.error,
        )
    power = g.pick([2, 3])
    error = power * x.high ** (power - 1) * x.error
    return g.result(
        g.b.Pow(x.value, np.array(power, dtype_of(x.kind))),
        x.kind,
        x.shape,
        x.high**power,
        error,
        x.grain**power,
    )


def jump(g: Graphs):
    x = g.some(kinds=FLOATS, exact=True)
    if not x.exact:
        return None
    return g.result(getattr(g.b, g.pick(JUMPS))(x.value), x.kind, x.shape, x.high + 1, 0.0, min(x.grain, 0.5))


def partner(g: Graphs, x: Made) -> Made:
    """A value that broadcasts with another."""
    fit = [y for y in g.pool if y.kind == x.kind and broadcast(x.shape, y.shape) is not None]
    how = g.choose(4)
    if how < 2 and fit:
        return g.pick(fit)
    if how == 2:
        return x
    shape = tuple(g.one if g.chance(3) else d for d in x.shape)[g.choose(x.rank + 1) :]
    return g.new(x.kind, shape)


def binary(g: Graphs):
    x = g.some(kinds=NUMBERS)
    y = partner(g, x)
    if g.chance(2):
        x, y = y, x
    shape = broadcast(x.shape, y.shape)
    if shape is None:
        return None
    if x.is_float:
        return _of_floats(g, x, y, shape)
    name = g.pick(["Add", "Sub", "Mul", "Max", "Min", "Div", "Mod", "BitwiseAnd", "BitwiseOr", "BitwiseXor"])
    high = x.high * y.high if name == "Mul" else 2.0**70 if name.startswith("B") else x.high + y.high
    return g.result(
        getattr(g.b, name)(x.value, y.value), x.kind, shape, high if x.kind[0] == "i" else 2.0**70
    )


def _of_floats(g: Graphs, x, y, shape):
    name = g.pick(["Add", "Sub", "Mul", "Max", "Min", "Mean", "Sum", "Div", "PRelu"])
    grain = 0.0 if 0 in {x.grain, y.grain} else min(x.grain, y.grain)
    high, error = x.high + y.high, x.error + y.error
    divisor = y.value
    if name == "Div":
        divisor = g.b.Add(g.b.Abs(y.value), np.array(1, dtype_of(x.kind)))
        high, error, grain = x.high, x.error + x.high * y.error, 0.0
    if name == "Mean":
        grain = 0.0
    if name in {"Mul", "PRelu"}:
        high, error = x.high * max(y.high, 1), x.error * max(y.high, 1) + y.error * x.high
        grain = x.grain * min(y.grain, 1)
        if name == "PRelu" and broadcast(x.shape, y.shape) != x.shape:
            return None
    return g.result(getattr(g.b, name)(x.value, divisor), x.kind, shape, high, error, grain)


def compare(g: Graphs):
    x = g.some(kinds=NUMBERS, exact=True)
    y = partner(g, x)
    shape = broadcast(x.shape, y.shape)
    if shape is None or not (x.exact and y.exact):
        return None
    name = g.pick(["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"])
    return g.result(getattr(g.b, name)(x.value, y.value), "bool", shape)


def logic(g: Graphs):
    x = g.some(kinds=("bool",))
    y = partner(g, x)
    shape = broadcast(x.shape, y.shape)
    if shape is None:
        return None
    name = g.pick(["And", "Or", "Xor", "Not", "Equal"])
    if name == "Not":
        return g.result(g.b.Not(x.value), "bool", x.shape)
    return g.result(getattr(g.b, name)(x.value, y.value), "bool", shape)


def where(g: Graphs):
    x = g.some()
    y = partner(g, x)
    both = broadcast(x.shape, y.shape)
    if both is None:
        return None
    fit = [c for c in g.pool if c.kind == "bool" and broadcast(c.shape, both) is not None]
    c = g.pick(fit) if fit else g.new("bool", both[g.choose(len(both) + 1) :])
    shape = broadcast(c.shape, both)
    return (
        None
        if shape is None
        else g.result(g.b.Where(c.value, x.value, y.value), x.kind, shape, **worst([x, y]))
    )


def cast(g: Graphs):
    x = g.some(exact=g.chance(2))
    kind = g.pick(["float", "int64", "double", "int32", "bool", "uint8", "int8"])
    if x.is_float and kind not in FLOATS and not (x.exact and (kind == "bool" or x.high < 100)):
        return None
    if x.is_float and kind[0] == "u":
        return None  # what a negative number becomes is not defined
    if not x.is_float and kind in FLOATS and x.high > 2**20:
        return None
    grain = 1.0 if x.kind not in FLOATS or kind not in FLOATS else x.grain
    return g.result(g.b.Cast(x.value, to=kind), kind, x.shape, x.high, x.error, grain)


def clip(g: Graphs):
    x = g.some(kinds=NUMBERS)
    low, high = np.array([0 if x.kind[0] == "u" else -1, 3], dtype_of(x.kind))
    bounds = g.pick([(low, high), (None, high), (low, None)])
    return g.result(g.b.Clip(x.value, *bounds), x.kind, x.shape, max(x.high, 3), x.error, min(x.grain, 1))


def of_integers(g: Graphs):
    x = g.some(kinds=SIGNED)
    if x.kind not in SIGNED:
        return None
    return g.result(
        getattr(g.b, g.pick(["Neg", "Abs", "Sign", "BitwiseNot", "Relu"]))(x.value), x.kind, x.shape, 2.0**70
    )
