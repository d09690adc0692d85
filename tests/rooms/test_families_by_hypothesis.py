"""Families of operators against numpy, on shapes and types drawn at random."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabir.ir import Expr
from sabir.schema import Example
from support.rooms import OPERATORS, bindings, inferred, model_of, run

BY_NAME = {o.name: o for o in OPERATORS if not o.domain}
FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS = [*FLOATS, *INTEGERS]
SHAPES = st.lists(st.integers(0, 4), max_size=4)
FULL_SHAPES = st.lists(st.integers(1, 4), max_size=4)
SOLID_SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=3)
WIDE = 2**63 - 1

few = settings(max_examples=25)
some = settings(max_examples=50)


def array(draw, shape, dtypes=NUMBERS, *, least=-8, most=8):
    """An array of small whole numbers and, among floats, halves: sums and products of them are exact."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if dtype.kind == "b":
        return rng.integers(0, 2, shape) > 0
    low = max(least, 0) if dtype.kind == "u" else least
    made = rng.integers(low, most + 1, shape)
    return (made / 2 if dtype.kind == "f" else np.asarray(made)).astype(dtype)


def like(draw, x, shape, **bounds):
    return np.asarray(array(draw, shape, [x.dtype.name], **bounds))


def partners(draw):
    """Two shapes that broadcast to one another's."""
    joint = draw(SHAPES)
    pair = []
    for _ in range(2):
        kept = joint[draw(st.integers(0, len(joint))) :]
        pair.append([1 if draw(st.booleans()) else n for n in kept])
    return pair


def check(op, arrays, *expected, opset=21, rtol=0.0, ranked=True, **attributes):
    """Hold what the operator computes against numpy's, and what inference says against that.

    Where the rank depends on sizes (`ranked=False`), inference from symbols may leave it open.
    """
    call = Example(opset, *arrays, outputs=len(expected), **attributes)
    model, feeds = model_of(BY_NAME[op], call)
    expected = [np.asarray(x) for x in expected]
    for value, wanted in zip(run(model, feeds), expected, strict=True):
        assert isinstance(value, np.ndarray)
        assert value.dtype == wanted.dtype
        assert value.shape == wanted.shape
        np.testing.assert_allclose(value, wanted, rtol=rtol, atol=rtol)
    for kind, wanted in zip(inferred(model, feeds, known=True), expected, strict=True):
        assert kind.element.dtype == wanted.dtype
        assert kind.shape == wanted.shape
    for kind, wanted in zip(inferred(model, feeds, known=True, symbolic=True), expected, strict=True):
        assert kind.element.dtype == wanted.dtype
        assert kind.shape is not None or not ranked
        holds(kind.shape, feeds, wanted.shape)


def holds(shape, feeds, real):
    """Assert that an inferred shape, if any, is the real one once its symbols have their sizes."""
    if shape is not None:
        sizes = [d.substitute(bindings(feeds)) if isinstance(d, Expr) else d for d in shape]
        assert len(sizes) == len(real)
        assert all(s is None or s == n for s, n in zip(sizes, real, strict=True))


# elementwise

BINARY = {
    "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Min": np.minimum, "Max": np.maximum,
    "Equal": np.equal, "Less": np.less, "Greater": np.greater, "LessOrEqual": np.less_equal,
    "GreaterOrEqual": np.greater_equal,
}  # fmt: skip
UNARY = {
    "Abs": np.abs, "Neg": np.negative, "Ceil": np.ceil, "Floor": np.floor, "Round": np.rint, "Exp": np.exp,
    "Sign": np.sign, "Sin": np.sin, "Cos": np.cos, "Tanh": np.tanh, "Atan": np.arctan,
}  # fmt: skip
POSITIVE = {"Sqrt": np.sqrt, "Log": np.log, "Reciprocal": np.reciprocal}
LOGIC = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}


@pytest.mark.parametrize("op", BINARY)
@few
@given(st.data())
def test_binary(op, data):
    left, right = partners(data.draw)
    a = array(data.draw, left)
    b = like(data.draw, a, right)

    check(op, [a, b], BINARY[op](a, b))


@some
@given(st.data())
def test_division_goes_toward_zero(data):
    left, right = partners(data.draw)
    a = array(data.draw, left)
    b = like(data.draw, a, right, least=1)
    b = b if a.dtype.kind == "u" or data.draw(st.booleans()) else -b
    if a.dtype.kind == "f":
        check("Div", [a, b], a / b, rtol=1e-3 if a.dtype.itemsize == 2 else 1e-6)
    else:
        wide, by = a.astype(np.int64), b.astype(np.int64)
        check("Div", [a, b], (np.sign(wide) * np.sign(by) * (abs(wide) // abs(by))).astype(a.dtype))


@some
@given(st.data())
def test_remainder_takes_its_sign_from_either_side(data):
    left, right = partners(data.draw)
    a = array(data.draw, left)
    b = like(data.draw, a, right, least=1)
    b = b if a.dtype.kind == "u" or data.draw(st.booleans()) else -b
    truncated = a.dtype.kind == "f" or data.draw(st.booleans())
    check("Mod", [a, b], (np.fmod if truncated else np.mod)(a, b), fmod=int(truncated))


@some
@given(st.data())
def test_power_keeps_the_type_of_the_base(data):
    left, right = partners(data.draw)
    a = array(data.draw, left, ["float32", "float64", "int32", "int64"], least=0, most=4)
    b = array(data.draw, right, ["float32", "float64", "int32", "int64"], least=0, most=4)
    expected = np.power(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
    check("Pow", [a, b], expected, rtol=1e-5 if a.dtype.kind == "f" else 0)


@pytest.mark.parametrize("op", LOGIC)
@few
@given(st.data())
def test_logic(op, data):
    left, right = partners(data.draw)
    a, b = array(data.draw, left, ["bool"]), array(data.draw, right, ["bool"])

    check(op, [a, b], LOGIC[op](a, b))


@pytest.mark.parametrize("op", [*UNARY, *POSITIVE])
@few
@given(st.data())
def test_unary(op, data):
    signed = ["int8", "int16", "int32", "int64"] if op in {"Abs", "Neg", "Sign"} else []
    x = array(data.draw, data.draw(SHAPES), [*FLOATS, *signed], least=1 if op in POSITIVE else -8)
    wide = (UNARY | POSITIVE)[op](x.astype(np.float64)).astype(x.dtype)

    check(op, [x], wide, opset=22, rtol=2e-3 if x.dtype == np.float16 else 1e-6)


# reductions

REDUCTIONS = {
    "ReduceSum": np.sum, "ReduceProd": np.prod, "ReduceMean": np.mean, "ReduceMax": np.max, "ReduceMin": np.min,
}  # fmt: skip


@pytest.mark.parametrize("op", REDUCTIONS)
@some
@given(st.data())
def test_reductions(op, data):
    shape = data.draw(SHAPES if op in {"ReduceSum", "ReduceProd"} else FULL_SHAPES)
    x = array(data.draw, shape, ["float32", "float64", "int32", "int64"], least=-2, most=2)
    if op == "ReduceMean":
        x = x.astype(np.float64)
    rank = len(shape)
    chosen = [a for a in range(rank) if data.draw(st.booleans())]
    signed = [a - rank if data.draw(st.booleans()) else a for a in chosen]
    keep, noop = data.draw(st.integers(0, 1)), data.draw(st.integers(0, 1))
    inputs = [x, np.array(signed, np.int64)] if chosen or data.draw(st.booleans()) else [x]
    axes = tuple(chosen) if chosen or noop else tuple(range(rank))
    expected = REDUCTIONS[op](x, axis=axes, keepdims=bool(keep)).astype(x.dtype)

    check(op, inputs, expected, rtol=1e-6, keepdims=keep, noop_with_empty_axes=noop)


# indexing


def places(draw, size, shape, dtype=np.int64):
    """Indices along a dimension, from either end."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return np.asarray(rng.integers(-size, size, shape)).astype(dtype)


@some
@given(st.data())
def test_gather_is_take(data):
    x = array(data.draw, data.draw(SOLID_SHAPES), [*NUMBERS, "bool"])
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    kind = data.draw(st.sampled_from([np.int32, np.int64]))
    indices = places(data.draw, x.shape[axis], data.draw(st.lists(st.integers(0, 3), max_size=2)), kind)

    check("Gather", [x, indices], np.take(x, indices, axis), axis=axis)


@some
@given(st.data())
def test_gather_elements_follows_its_indices(data):
    x = array(data.draw, data.draw(SOLID_SHAPES))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    wanted = [data.draw(st.integers(0, n)) for n in x.shape]
    wanted[axis] = data.draw(st.integers(0, 5))
    indices = places(data.draw, x.shape[axis], wanted)
    expected = np.zeros(wanted, x.dtype)
    for spot in np.ndindex(*wanted):
        source = list(spot)
        source[axis] = indices[spot]
        expected[spot] = x[tuple(source)]

    check("GatherElements", [x, indices], expected, axis=axis)


@some
@given(st.data())
def test_gather_nd_follows_its_rows(data):
    x = array(data.draw, data.draw(SOLID_SHAPES))
    batch = data.draw(st.integers(0, x.ndim - 1))
    width = data.draw(st.integers(1, x.ndim - batch))
    outer = [*x.shape[:batch], *data.draw(st.lists(st.integers(0, 3), max_size=2))]
    indices = np.stack([places(data.draw, n, outer) for n in x.shape[batch : batch + width]], -1)
    expected = np.zeros([*outer, *x.shape[batch + width :]], x.dtype)
    for spot in np.ndindex(*outer):
        expected[spot] = x[*spot[:batch], *indices[spot]]

    check("GatherND", [x, indices], expected, ranked=False, batch_dims=batch)


def stops(start, end, step, size):
    """The places that the standard's rule for bounds leaves of a slice."""
    start, end = (v + size if v < 0 else v for v in (start, end))
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first = min(max(start, 0), high)
    return list(range(first, min(max(end, low), high), step)) if size else []


@settings(max_examples=150)
@given(st.data())
def test_slice_with_steps_of_either_sign_and_bounds_outside(data):
    x = array(data.draw, data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)))
    axes = [a for a in range(x.ndim) if data.draw(st.booleans())] or [0]
    bound = st.one_of(st.integers(-8, 8), st.sampled_from([-WIDE, WIDE]))
    starts, ends = ([data.draw(bound) for _ in axes] for _ in range(2))
    steps = [data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3])) for _ in axes]
    named = [a - x.ndim if data.draw(st.booleans()) else a for a in axes]
    expected = x
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        expected = np.take(expected, np.array(stops(start, end, step, x.shape[axis]), np.int64), axis)

    check("Slice", [x, *(np.array(v, np.int64) for v in (starts, ends, named, steps))], expected)


MERGES = {"none": lambda _, new: new, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("reduction", MERGES)
@few
@given(st.data())
def test_scatter_elements(reduction, data):
    x = array(data.draw, data.draw(SOLID_SHAPES), ["float32", "int32", "int64"], least=-2, most=2)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    wanted = [data.draw(st.integers(0, n)) for n in x.shape]
    indices = places(data.draw, x.shape[axis], wanted)
    if reduction == "none":  # no place twice: the order of writes is not told
        along = [1] * x.ndim
        along[axis] = wanted[axis]
        order = data.draw(st.permutations(range(x.shape[axis])))[: wanted[axis]]
        indices = np.broadcast_to(np.array(order, np.int64).reshape(along), wanted).copy()
    updates = like(data.draw, x, wanted, least=-2, most=2)
    expected = x.copy()
    for spot in np.ndindex(*wanted):
        target = list(spot)
        target[axis] = indices[spot]
        expected[tuple(target)] = MERGES[reduction](expected[tuple(target)], updates[spot])

    check("ScatterElements", [x, indices, updates], expected, axis=axis, reduction=reduction)


@pytest.mark.parametrize("reduction", MERGES)
@few
@given(st.data())
def test_scatter_nd(reduction, data):
    x = array(data.draw, data.draw(SOLID_SHAPES), ["float32", "int32", "int64"], least=-2, most=2)
    width = data.draw(st.integers(1, x.ndim))
    rows = st.sampled_from(list(itertools.product(*map(range, x.shape[:width]))))
    chosen = data.draw(st.lists(rows, max_size=4, unique=reduction == "none"))
    indices = np.array(chosen, np.int64).reshape(len(chosen), width)
    updates = like(data.draw, x, [len(chosen), *x.shape[width:]], least=-2, most=2)
    expected = x.copy()
    for row, update in zip(chosen, updates, strict=True):
        expected[row] = MERGES[reduction](expected[row], update)

    check("ScatterND", [x, indices, updates], expected, reduction=reduction)


# shapes

ANY = [*NUMBERS, "bool"]


def ints(*values):
    return np.array(values, np.int64)


@some
@given(st.data())
def test_reshape_with_copied_and_computed_sizes(data):
    shape = data.draw(SHAPES)
    x = array(data.draw, shape, ANY)
    target = list(data.draw(st.permutations(shape)))
    if not target and data.draw(st.booleans()):
        target = [1, 1]
    told = [
        0 if a < len(shape) and shape[a] == n and data.draw(st.booleans()) else n
        for a, n in enumerate(target)
    ]
    others = [n for n in target if n == 0]
    if target and not others and data.draw(st.booleans()):
        told[data.draw(st.integers(0, len(told) - 1))] = -1
    zero = int(any(t == 0 and (a >= len(shape) or shape[a]) for a, t in enumerate(told) if target[a] == 0))
    if zero:  # a zero that copies nothing: zeros stand for themselves, so none may copy
        told = target

    check("Reshape", [x, np.array(told, np.int64)], x.reshape(target), allowzero=zero)


@some
@given(st.data())
def test_transpose(data):
    x = array(data.draw, data.draw(SHAPES), ANY)
    if data.draw(st.booleans()):
        check("Transpose", [x], x.T)
    else:
        perm = data.draw(st.permutations(range(x.ndim)))
        check("Transpose", [x], x.transpose(perm), perm=perm)


@some
@given(st.data())
def test_concat(data):
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    first = array(data.draw, shape, ANY)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    parts = [first]
    for _ in range(data.draw(st.integers(0, 3))):
        other = list(shape)
        other[axis] = data.draw(st.integers(0, 3))
        parts.append(like(data.draw, first, other))

    check("Concat", parts, np.concatenate(parts, axis), axis=axis)


@some
@given(st.data())
def test_split_by_sizes(data):
    shape = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=4))
    shape[axis] = sum(sizes)
    x = array(data.draw, shape, ANY)

    check("Split", [x, ints(*sizes)], *np.split(x, np.cumsum(sizes)[:-1], axis), axis=axis)


@some
@given(st.data())
def test_split_into_a_number_of_parts_leaves_the_last_one_smaller(data):
    shape = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    parts, each = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    shape[axis] = parts * each - data.draw(st.integers(0, min(parts, each) - 1))
    x = array(data.draw, shape, ANY)

    check("Split", [x], *np.split(x, range(each, parts * each, each), axis), axis=axis, num_outputs=parts)


@some
@given(st.data())
def test_squeeze_and_unsqueeze_are_inverse(data):
    small = array(data.draw, data.draw(SHAPES), ANY)
    more = data.draw(st.integers(0, 2))
    rank = small.ndim + more
    axes = sorted(data.draw(st.permutations(range(rank)))[:more])
    large = np.expand_dims(small, tuple(axes))
    named = ints(*(a - rank if data.draw(st.booleans()) else a for a in axes))

    check("Unsqueeze", [small, named], large)
    if axes:
        check("Squeeze", [large, named], small)
    check("Squeeze", [large], large.squeeze(), ranked=False)


@some
@given(st.data())
def test_expand_broadcasts_both_ways(data):
    own, other = partners(data.draw)
    x = array(data.draw, own, ANY)

    check("Expand", [x, ints(*other)], np.broadcast_to(x, np.broadcast_shapes(tuple(own), tuple(other))))


@some
@given(st.data())
def test_tile(data):
    x = array(data.draw, data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)), ANY)
    repeats = [data.draw(st.integers(0, 3)) for _ in x.shape]

    check("Tile", [x, ints(*repeats)], np.tile(x, repeats))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@some
@given(st.data())
def test_pad(mode, data):
    shape = data.draw(st.lists(st.integers(0 if mode == "constant" else 1, 4), min_size=1, max_size=3))
    x = array(data.draw, shape)
    sides = [[data.draw(st.integers(0, n - 1 if mode == "reflect" else 3)) for n in shape] for _ in range(2)]
    widths = list(zip(*sides, strict=True))
    inputs = [x, ints(*sides[0], *sides[1])]
    extra: dict[str, Any] = {}
    if mode == "constant" and data.draw(st.booleans()):
        value = like(data.draw, x, [])
        inputs, extra = [*inputs, value], {"constant_values": value}

    check("Pad", inputs, np.pad(x, widths, mode=mode, **extra), mode=mode)


@some
@given(st.data())
def test_negative_pads_cut(data):
    x = array(data.draw, data.draw(SOLID_SHAPES))
    heads = [data.draw(st.integers(0, n)) for n in x.shape]
    tails = [data.draw(st.integers(0, n - h)) for n, h in zip(x.shape, heads, strict=True)]
    expected = x[tuple(slice(h, n - t) for h, t, n in zip(heads, tails, x.shape, strict=True))]

    check("Pad", [x, -ints(*heads, *tails)], expected)


@some
@given(st.data())
def test_flatten(data):
    x = array(data.draw, data.draw(SHAPES), ANY)
    axis = data.draw(st.integers(-x.ndim, x.ndim))
    place = axis + x.ndim if axis < 0 else axis
    rows, columns = (int(np.prod(part, dtype=np.int64)) for part in (x.shape[:place], x.shape[place:]))

    check("Flatten", [x], x.reshape(rows, columns), axis=axis)
