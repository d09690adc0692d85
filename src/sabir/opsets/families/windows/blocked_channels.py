"""Images whose channels are stored in blocks, NCHWc, as onnxruntime stores them for convolutions.

A tensor of the declared shape (N, C, H, W) is stored as (N, C/c, H, W, c), where c is the number of channels
of a block: 8 or 16, as fits the vectors of the processor on which onnxruntime optimised the model. C is a
multiple of c; channels that the model lacks are 0. Filters of the declared shape (M, C/group, kH, kW) are
stored as (M/c, C/group, kH, kW, c) where they read unblocked images or one channel each, otherwise as
(M/c, C/group/c, kH, kW, c, c) with the filters of a block last.

No operator states c, which is the same for all calls of a model. It follows from numbers of channels that
admit only one size, or from the environment variable SABIR_NCHWC_BLOCK; otherwise a call is refused.
`rewriting.one_size_of_blocks` looks at all calls of a model, a room at one.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.ir import Tensor, TensorType
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.schema import Constraint, Input, Output, Unconvertible, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from sabir.ir import Builder, Dim, Model, Value
    from sabir.opsets.typing import Array
    from sabir.schema import Attribute, Operator, Version

SETTING = "SABIR_NCHWC_BLOCK"
_UNKNOWN = (
    "A call that does not determine the size of its blocks by numbers of channels is refused, unless the "
    f"environment variable {SETTING} has the size, 8 or 16."
)
LACKS = (_UNKNOWN,)
DOMAIN = "com.microsoft.nchwc"
BODY_OPSET = 18
ELEMENTWISE = frozenset({
    "Abs", "Add", "Clip", "Div", "Elu", "Exp", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Max",
    "Min", "Mul", "Neg", "Relu", "Sigmoid", "Softplus", "Sub", "Sum", "Tanh",
})  # fmt: skip
"""Operators of the standard that compute the same of blocked images as of others, if all have one shape."""
NOT_LOWERED = "a model is planned with the bodies; a call that is left depends on sizes that a run knows"
T = Constraint("T", tensors("float"))
RANK = 4  # a batch, channels, height, width
_SIZES = (8, 16)  # that onnxruntime uses


class Blocks(NamedTuple):
    """The sizes of blocks that a call admits, the smallest first."""

    sizes: tuple[int, ...]

    @classmethod
    def of(cls, *channels: Dim) -> Blocks:
        """Return the sizes that divide numbers of channels, of those that the setting admits.

        Raises InferenceError where there is none, UnsupportedError for a setting of another size.
        """
        return cls(admitted_sizes()).that_divide(*channels)

    def that_divide(self, *channels: Dim) -> Blocks:
        """Return the sizes that divide numbers of channels; raises InferenceError where there is none."""
        known = [c for c in channels if isinstance(c, int)]
        return self._chosen(lambda size: not any(c % size for c in known), f"{known} channels")

    def that_pad(self, channels: Dim, padded: Dim) -> Blocks:
        """Return the sizes whose multiple `padded` is the next from `channels` on; raises InferenceError."""
        if not isinstance(channels, int) or not isinstance(padded, int):
            return self
        return self._chosen(
            lambda size: padded == padded_to(channels, size), f"{padded} for {channels} channels"
        )

    def that_hold(self, channels: int) -> Blocks:
        """Return the sizes that divide a number of channels or are above it; raises InferenceError."""
        return self._chosen(lambda size: channels < size or not channels % size, f"{channels} channels")

    def _chosen(self, admits: Callable[[int], bool], what: str) -> Blocks:
        found = tuple(filter(admits, self.sizes))
        if not found:
            raise InferenceError(f"{what} cannot be stored in blocks of {' or '.join(map(str, self.sizes))}")
        return Blocks(found)

    def size(self, *image: Dim) -> int:
        """Return the size for images of a height and a width; raises UnsupportedError where it is not known.

        Images of one pixel are stored alike in blocks of any size.
        """
        if len(self.sizes) == 1 or (image and all(d == 1 for d in image)):
            return self.sizes[0]
        raise UnsupportedError(
            "the numbers of channels do not determine whether blocks have 8 or 16 of them: set the "
            f"environment variable {SETTING} to 16 if onnxruntime optimised the model on a processor with "
            "AVX-512, to 8 for other x86 processors; or let onnxruntime optimise to ORT_ENABLE_EXTENDED only"
        )


@contextmanager
def unconvertible() -> Generator[None]:
    """Turn the UnsupportedError of a size that is not known into Unconvertible, as a body must raise it."""
    try:
        yield
    except UnsupportedError as error:
        raise Unconvertible(str(error)) from error


_ASSUMED: ContextVar[tuple[int, ...]] = ContextVar("assumed sizes of blocks", default=())


@contextmanager
def assumed(sizes: tuple[int, ...]) -> Generator[None]:
    """Let all calls have blocks of one of these sizes, as long as the context lasts."""
    token = _ASSUMED.set(sizes)
    try:
        yield
    finally:
        _ASSUMED.reset(token)


def admitted_sizes() -> tuple[int, ...]:
    """Return the assumed sizes, or else that of the setting, or else all that onnxruntime uses.

    Raises UnsupportedError for a setting of another size.
    """
    if assumption := _ASSUMED.get():
        return assumption
    told = os.environ.get(SETTING, "")
    if not told:
        return _SIZES
    if told not in map(str, _SIZES):
        raise UnsupportedError(f"{SETTING} is {told!r}, and must be {' or '.join(map(str, _SIZES))}")
    return (int(told),)


def calls_blocks(model: Model) -> bool:
    """Return whether a model calls an operator whose tensors are stored in blocks of channels."""
    return DOMAIN in model.opsets and any(
        node.domain == DOMAIN for graph in model.graphs() for node in graph.all_nodes()
    )


def padded_to(channels: int, size: int) -> int:
    """Return the first multiple of the size from a number of channels on."""
    return -(-channels // size) * size


# ---------------------------------------------------------------- declarations


def declare(operator: Operator, result: str, attributes: Sequence[Attribute]) -> Version:
    """Declare the first version of an operator of one blocked image, X, which makes another, Y."""
    return operator.first(
        1,
        inputs=[Input("X", T, "The image, stored in blocks, (N, C, H, W).", differentiable=True)],
        outputs=[Output("Y", T, f"{result}, stored in blocks.", differentiable=True)],
        attributes=attributes,
    )


def check_image(name: str, x: TensorType) -> None:
    """Raise InferenceError for a tensor that is no blocked image."""
    check_rank(name, x, RANK)
    if x.shape is not None:
        Blocks.of(x.shape[1])


def pooled_to_one(x: TensorType, /) -> TensorType:
    """Return the type of a blocked image with one element for each channel."""
    check_image("X", x)
    batch, channels, *_ = x.shape or (None, None)
    return TensorType(x.element, (batch, channels, 1, 1))


# ---------------------------------------------------------------- storage


def unblocked(x: Array, size: int) -> Array:
    """Return a blocked image as it is without blocks, (N, C, H, W)."""
    n, channels, height, width = x.shape
    stored = x.reshape(n, channels // size, height, width, size)
    return np.ascontiguousarray(stored.transpose(0, 1, 4, 2, 3)).reshape(x.shape)


def blocked(x: Array, size: int) -> Array:
    """Return an image (N, C, H, W) stored in blocks; C is a multiple of their size."""
    n, channels, height, width = x.shape
    separate = x.reshape(n, channels // size, size, height, width)
    return np.ascontiguousarray(separate.transpose(0, 1, 3, 4, 2)).reshape(x.shape)


def evaluate_unblocked(x: Array, compute: Callable[[Array], Array]) -> Array:
    """Return what a function computes of a blocked image, stored in blocks; its argument has none."""
    check_rank("X", x, RANK)
    size = Blocks.of(x.shape[1]).size(*x.shape[2:])
    return blocked(compute(unblocked(x, size)), size)


def restored_filters(w: Array, size: int, *, read_blocks: bool) -> Array:
    """Return filters (M, C/group, kH, kW) in the order of Conv; `read_blocks` says how they are stored."""
    shape, order = _filter_storage(w.shape, size, read_blocks=read_blocks)
    return np.ascontiguousarray(w.reshape(shape).transpose(order)).reshape(w.shape)


def _filter_storage(
    shape: Sequence[int], size: int, *, read_blocks: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape in which filters are stored, and the order of its axes that restores them."""
    filters, channels, *kernel = shape
    if read_blocks:
        return (filters // size, channels // size, *kernel, size, size), (0, 5, 1, 4, 2, 3)
    return (filters // size, channels, *kernel, size), (0, 4, 1, 2, 3)


# ---------------------------------------------------------------- graphs


def emit_last(b: Builder, x: Value, channels: int, size: int) -> Value:
    """Emit a blocked image as (N, H, W, C)."""
    stored = b.Reshape(x, as_input(b, "stored", [0, channels // size, 0, 0, size]))
    return b.Reshape(b.Transpose(stored, perm=[0, 2, 3, 1, 4]), as_input(b, "last", [0, 0, 0, channels]))


def emit_unblocked(b: Builder, x: Value, channels: int, size: int) -> Value:
    """Emit a blocked image as it is without blocks, (N, C, H, W)."""
    return b.Transpose(emit_last(b, x, channels, size), perm=[0, 3, 1, 2])


def emit_from_last(b: Builder, x: Value, channels: int, size: int) -> Value:
    """Emit an image (N, H, W, C) stored in blocks."""
    separate = b.Reshape(x, as_input(b, "separate", [0, 0, 0, channels // size, size]))
    return b.Reshape(b.Transpose(separate, perm=[0, 3, 1, 2, 4]), as_input(b, "blocked", [0, channels, 0, 0]))


def emit_blocked(b: Builder, y: Value, channels: int, size: int) -> Value:
    """Emit an image (N, C, H, W) stored in blocks."""
    return emit_from_last(b, b.Transpose(y, perm=[0, 2, 3, 1]), channels, size)


def joins_channels(op: str, axis: object) -> bool:
    """Return whether an operator of the standard appends the channels of images."""
    return op == "Concat" and axis in {1, 1 - RANK}


def emit_on_unblocked(b: Builder, x: Value, build: Callable[[Value], Value]) -> Value:
    """Emit what a function builds of a blocked image, stored in blocks; its argument has none."""
    _, channels, *image = shape_of("X", x)
    with unconvertible():
        size = Blocks.of(channels).size(*image)
    known = known_channels(channels)
    return emit_blocked(b, build(emit_unblocked(b, x, known, size)), known, size)


def known_channels(channels: Dim) -> int:
    """Return a number of channels; raises Unconvertible where it is unknown."""
    if not isinstance(channels, int):
        raise Unconvertible("the number of channels is unknown, and so is the number of blocks")
    return channels


def known_shape(w: Value) -> tuple[int, ...]:
    """Return the shape of filters; raises Unconvertible where a size is unknown."""
    shape = shape_of("W", w)
    sizes = tuple(d for d in shape if isinstance(d, int))
    if len(sizes) != len(shape):
        raise Unconvertible("the shape of the filters is unknown, and so is the number of their blocks")
    return sizes


def emit_filters(b: Builder, w: Value, shape: Sequence[int], size: int, *, read_blocks: bool) -> Value:
    """Emit filters of a shape in the order of Conv; `read_blocks` says how they are stored.

    Those of an initializer become another initializer.
    """
    if isinstance(w.constant, Tensor) and not w.is_input:
        return b.initializer("filters", restored_filters(w.constant.array(), size, read_blocks=read_blocks))
    stored, order = _filter_storage(shape, size, read_blocks=read_blocks)
    moved = b.Transpose(b.Reshape(w, as_input(b, "stored", stored)), perm=order)
    return b.Reshape(moved, as_input(b, "filters", shape))
