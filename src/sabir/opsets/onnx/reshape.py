"""Reshape: the same elements under another shape."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import (
    Builder,
    Dim,
    Shape,
    TensorType,
    Value,
    exact_quotient,
    known_equal,
    lower_bound,
    may_be_equal,
    product,
)
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import as_list, check_rank
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT8,
    FLOATS,
    SMALL_TYPES,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

reshape = Operator("Reshape", summary="The elements of `data`, in order, under another shape.")

T = Constraint("T", FLOATS)
_SHAPE = "The new shape; 0 copies the input's dimension, a single -1 is computed from the rest."

v1 = reshape.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("reshaped", T, "The same elements, row by row.", differentiable=True)],
    attributes=[Attribute("consumed_inputs", "ints", legacy=True), Attribute("shape", "ints", _SHAPE)],
)
v5 = v1.evolve(
    5,
    "`shape` moves from attribute to input; every element type is admitted.",
    inputs=[
        Input("data", T, "A tensor of any shape.", differentiable=True),
        Input("shape", "tensor(int64)", _SHAPE, differentiable=False),
    ],
    drop=["consumed_inputs", "shape"],
    widen={"T": CLASSIC},
)
v13 = v5.widen(13, T=BFLOAT16)
v14 = v13.extend(
    14,
    "`allowzero` makes a 0 in `shape` a dimension of size 0.",
    attributes=[Attribute("allowzero", "int", "1: a 0 in `shape` is a dimension of size 0.", default=0)],
)
v25 = v14.widen_stepwise({19: FLOAT8, **SMALL_TYPES}, "T")


@v1.infer
def infer_from_attribute(data: TensorType, /, *, shape: Ints, call: Call) -> TensorType:
    return _reshaped(data, resolve(shape or (), data.shape, allowzero=0), call)


@v5.infer
def infer(data: TensorType, shape: TensorType, /, *, call: Call, allowzero: int = 0) -> TensorType:
    check_rank("shape", shape, 1)
    if shape.known is None:
        rank = shape.shape[0] if shape.shape else None
        if not isinstance(rank, int) or rank > contents.MOST:
            return TensorType(data.element)
        return TensorType(data.element, (data.size,) if rank == 1 else (None,) * rank)
    dims = [k if not isinstance(k, (float, str)) else None for k in shape.known]
    return _reshaped(data, resolve(dims, data.shape, allowzero=allowzero), call)


@v1.evaluate
def evaluate_from_attribute(data: Array, /, *, shape: Ints) -> Array:
    return _sized(data, resolve(shape or (), data.shape, allowzero=0))


@v1.lower
def lower(data: Expression, shape: Expression | None = None, /, *, call: Lowering) -> Expression:
    """The inferred shape tells what the operand or the attribute means; an unknown operand may be wrong."""
    if shape is None:
        return loops.reshape(data, call.shape())
    wanted, named = list(call.shape()), kernels.sizes_of(shape, "`shape`")
    if -1 in named:  # inference does not know whether the other sizes divide the elements
        place = named.index(-1)
        elements, others = product(data.shape), product(d for i, d in enumerate(wanted) if i != place)
        rest = None if elements is None or others is None else loops.divided(elements, others)
        wanted[place] = wanted[place] if rest is None else rest
    return loops.reshape(data, wanted)


@v5.evaluate
def evaluate(data: Array, shape: Array, /, *, allowzero: int = 0) -> Array:
    dims = as_list("shape", shape)
    if data.size and 0 not in dims and sorted(dims)[:2].count(-1) == 1:  # as most calls: -1 is what is left
        left, rest = divmod(data.size, -math.prod(dims))
        if not rest and min(dims) == -1:
            return _sized(data, tuple(left if d == -1 else d for d in dims))
    return _sized(data, resolve(dims, data.shape, allowzero=allowzero))


@v5.upgrade
def shape_becomes_an_input(b: Builder, data: Value, /, *, shape: Ints) -> Value:
    return b.Reshape(data, b.initializer("shape", np.array(shape or (), np.int64)))


@v5.downgrade
def shape_becomes_an_attribute(b: Builder, data: Value, shape: Value, /) -> Value:
    known = contents.ints(shape.type.known) if isinstance(shape.type, TensorType) else None
    if not known:
        raise Unconvertible("`shape` is computed at run time, and Reshape:1 needs it as an attribute")
    return b.Reshape(data, shape=known)


@v14.downgrade
def zero_must_copy(b: Builder, data: Value, shape: Value, /, *, allowzero: int) -> Value:
    known = shape.type.known if isinstance(shape.type, TensorType) else None
    if allowzero and (known is None or 0 in known):
        raise Unconvertible("before Reshape:14 a 0 in `shape` cannot be a dimension of size 0")
    return b.Reshape(data, shape)


def resolve(target: Sequence[Dim], source: Shape | None, *, allowzero: int) -> tuple[Dim, ...]:
    """Replace each 0 by the dimension that it copies, and -1 by the remaining size."""
    dims = list(target)
    if sum(d == -1 for d in dims) > 1 or any(isinstance(d, int) and d < -1 for d in dims):
        raise InferenceError(f"`shape` {_shown(dims)} must be sizes, with at most one -1")
    if not allowzero:
        dims = [_copied(source, i) if d == 0 else d for i, d in enumerate(dims)]
    if -1 not in dims:
        return _completed(dims, source)
    rest = [d for d in dims if d != -1]
    if allowzero and 0 in rest:
        raise InferenceError(f"`shape` {_shown(dims)}: -1 cannot be computed next to a dimension of size 0")
    left = None if source is None else _left_over(source, rest)
    return tuple(left if d == -1 else d for d in dims)


def _completed(dims: list[Dim], source: Shape | None) -> tuple[Dim, ...]:
    """Return the sizes; a single unknown one is computed from the rest, as -1 is."""
    rest = [d for d in dims if d is not None]
    if source is None or len(rest) != len(dims) - 1 or not lower_bound(product(rest)):
        return tuple(dims)
    left = _left_over(source, rest)
    return tuple(left if d is None else d for d in dims)


def _copied(source: Shape | None, place: int) -> Dim:
    if source is None:
        return None
    if place >= len(source):
        raise InferenceError(f"a 0 at place {place} of `shape` copies from a tensor of rank {len(source)}")
    return source[place]


def _left_over(source: Shape, rest: Sequence[Dim]) -> Dim:
    """Divide the sizes; common unknown dimensions cancel first."""
    whole, parts = list(source), list(rest)
    for part in rest:
        match = next((i for i, d in enumerate(whole) if part is not None and known_equal(d, part)), None)
        if match is not None:
            del whole[match]
            parts.remove(part)
    size, part = product(whole), product(parts)
    if isinstance(size, int) and isinstance(part, int) and (part == 0 or size % part):
        raise InferenceError(f"{_shown(source)} cannot be divided into {_shown(rest)}")
    return exact_quotient(size, part)


def _reshaped(data: TensorType, dims: tuple[Dim, ...], call: Call) -> TensorType:
    before, after = data.size, product(dims)
    call.suppose(before, after, f"the elements of the constant shape {_shown(dims)}")
    if not may_be_equal(before, after):
        raise InferenceError(f"{before} elements cannot take the shape {_shown(dims)}")
    return contents.moved(TensorType(data.element, dims), lambda x: x, data)


def _sized(data: Array, dims: Sequence[Dim]) -> Array:
    return data.reshape([d for d in dims if isinstance(d, int)])


def _shown(dims: Sequence[Dim]) -> str:
    return f"[{', '.join('?' if d is None else str(d) for d in dims)}]"


@v14.gradient
def gradient(g: Gradient, data: Value, shape: Value, /) -> tuple[Value, None]:
    return g.Reshape(g.dy, g.sizes(data), allowzero=1), None


@reshape.examples
def examples() -> Iterator[Example]:
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    yield Example(1, data, shape=[0, -1], expect=[data.reshape(2, 12)])
    for opset in (5, 13, 14, 19, 21, 23, 24, 25):
        yield Example(opset, data, [4, 0, -1], expect=[data.reshape(4, 3, 2)])
    yield Example(
        14, np.zeros((0, 3), np.float32), [3, 0], allowzero=1, expect=[np.zeros((3, 0), np.float32)]
    )
    yield Example(14, np.zeros((0, 3), np.float32), [0, -1], expect=[np.zeros((0, 3), np.float32)])
    yield Example(5, "text", [1, 1], expect=[[["text"]]])
    yield Example(5, [7], [], expect=[7])
