"""Sparse tensors: values, indices, and the dense shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import SabirError, counted
from sabir.checking._examples import RELU, X, Y, in_graph
from sabir.checking._messages import size_of
from sabir.checking._rule import Problem, Textproto, rule
from sabir.elements import INT64
from sabir.ir import ExternalTensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from sabir.checking._survey import SparseSite
    from sabir.ir import Array

    Indices = npt.NDArray[np.int64]

_VALUES = "dims: 2 data_type: 1 float_data: [1, 2]"
_INDICES = "dims: 2 data_type: 7 int64_data: [0, 5]"
_PAIR = 2


def _sparse(dims: str, values: str = _VALUES, indices: str = _INDICES) -> Textproto:
    """Return an example with a sparse initializer."""
    parts = f'values {{ name: "w" {values} }} indices {{ {indices} }}'
    return in_graph(f'{RELU} name: "g" sparse_initializer {{ {dims} {parts} }} {X} {Y}')


def _matrix(entries: str) -> str:
    return f"dims: 2 dims: 2 data_type: 7 int64_data: [{entries}]"


_GOOD = (_sparse("dims: 6"), _sparse("dims: 2 dims: 3", indices=_matrix("0, 0, 1, 2")))


def _indices(site: SparseSite) -> Indices | None:
    """Return the indices if they satisfy SPARSE003 and are in the model itself."""
    tensor = site.tensor.indices
    if not _fit(site) or isinstance(tensor, ExternalTensor):
        return None
    try:
        return tensor.array()
    except SabirError:  # rules about tensors report it
        return None


def _fit(site: SparseSite) -> bool:
    indices, count = site.tensor.indices, site.tensor.values.shape
    return (
        indices.element is INT64
        and len(count) == 1
        and indices.shape in {count, (*count, len(site.tensor.shape))}
    )


@rule(
    "SPARSE001",
    "The values of a sparse tensor are a tensor of shape [NNZ].",
    source="onnx.proto",
    over="sparse",
    bad=_sparse("dims: 6", values="dims: 2 dims: 1 data_type: 1 float_data: [1, 2]"),
    good=_GOOD,
)
def values_in_a_row(site: SparseSite) -> Iterator[Problem]:
    """The values of a sparse tensor have rank 1."""
    shape = site.tensor.values.shape
    if len(shape) != 1:
        where = site.where.at("values")
        yield Problem(f"the rank of the values is {len(shape)}", where, "it must be 1")


@rule(
    "SPARSE002",
    "The dims of a sparse tensor are the shape of the dense tensor that it represents.",
    source="onnx.proto",
    over="sparse",
    note="the text does not forbid 0, but such a tensor has no values, and onnx refuses it",
    bad=(
        _sparse("", values="dims: 0 data_type: 1", indices="dims: 0 data_type: 7"),
        _sparse("dims: -6", values="dims: 0 data_type: 1", indices="dims: 0 data_type: 7"),
        _sparse("dims: 0", values="dims: 0 data_type: 1", indices="dims: 0 data_type: 7"),
        _sparse("dims: 4294967296 dims: 4294967296"),
    ),
    good=_GOOD,
)
def dense_shape(site: SparseSite) -> Iterator[Problem]:
    """The dense shape has at least one dimension, all positive, and its size fits 64 bits."""
    shape = site.tensor.shape
    if not shape:
        yield Problem("the sparse tensor has no shape", site.where, "set dims to the dense shape")
    elif min(shape) < 1:
        yield Problem(f"the sparse tensor has the dimension {min(shape)}", site.where, "it must be positive")
    elif size_of(shape) is None:
        yield Problem("the number of elements of the sparse tensor exceeds 64 bits", site.where)


@rule(
    "SPARSE003",
    "The indices of a sparse tensor are INT64, of shape [NNZ, rank], or [NNZ] if they count in the flattened"
    " tensor.",
    source="onnx.proto",
    over="sparse",
    bad=(
        _sparse("dims: 6", indices="dims: 2 data_type: 6 int32_data: [0, 5]"),
        _sparse("dims: 6", indices="dims: 1 data_type: 7 int64_data: 0"),
        _sparse("dims: 2 dims: 3", indices="dims: 2 dims: 1 data_type: 7 int64_data: [0, 1]"),
        _sparse("dims: 6", indices="dims: 2 dims: 1 dims: 1 data_type: 7 int64_data: [0, 5]"),
    ),
    good=_GOOD,
)
def indices_fit(site: SparseSite) -> Iterator[Problem]:
    """Each value has an index: one number, or one number for each dimension of the dense shape."""
    indices, values = site.tensor.indices, site.tensor.values
    where = site.where.at("indices")
    if indices.element is not INT64:
        yield Problem(f"the element type of the indices is {indices.element}", where, "it must be int64")
    elif len(values.shape) == 1 and not _fit(site):
        (count,), rank = values.shape, len(site.tensor.shape)
        found = list(indices.shape) if len(indices.shape) <= _PAIR else f"rank {len(indices.shape)}"
        shapes = f"[{count}] or [{count}, {rank}]"
        yield Problem(f"indices for {counted(count, 'value')} have the shape {shapes}, found {found}", where)


@rule(
    "SPARSE004",
    "Each index of a sparse tensor is the index of an element of the dense tensor.",
    source="onnx.proto",
    over="sparse",
    bad=(
        _sparse("dims: 5"),
        _sparse("dims: 6", indices="dims: 2 data_type: 7 int64_data: [-1, 5]"),
        _sparse("dims: 2 dims: 3", indices=_matrix("0, 0, 0, 3")),
    ),
    good=_GOOD,
)
def indices_in_range(site: SparseSite) -> Iterator[Problem]:
    """Each index is inside the dense shape."""
    indices, shape = _indices(site), site.tensor.shape
    size = size_of(shape)
    if indices is None or not size or not indices.size:
        return
    ends: Any = size if indices.ndim == 1 else np.array(shape, np.int64)
    odd = (indices < 0) | (indices >= ends)
    if odd.any():
        place = int((odd if odd.ndim == 1 else odd.any(axis=1)).argmax())
        message = f"index {place} is {indices[place].tolist()}, outside the shape {list(shape)}"
        yield Problem(message, site.where.at("indices"))


@rule(
    "SPARSE005",
    "The indices of a sparse tensor ascend, row by row in lexicographic order, and none occurs twice.",
    source="onnx.proto",
    over="sparse",
    bad=(
        _sparse("dims: 6", indices="dims: 2 data_type: 7 int64_data: [5, 0]"),
        _sparse("dims: 6", indices="dims: 2 data_type: 7 int64_data: [5, 5]"),
        _sparse("dims: 2 dims: 3", indices=_matrix("1, 0, 0, 2")),
    ),
    good=_GOOD,
)
def indices_ascend(site: SparseSite) -> Iterator[Problem]:
    """Each index is greater than the one before it."""
    indices = _indices(site)
    if indices is None or len(indices) < _PAIR or not indices.size:
        return
    rows = indices.reshape(len(indices), -1)
    before, after = rows[:-1], rows[1:]
    first = (before != after).argmax(axis=1)  # the first column that differs
    at = np.arange(len(first))
    odd = after[at, first] <= before[at, first]
    if odd.any():
        place = int(odd.argmax()) + 1
        index, previous = indices[place].tolist(), indices[place - 1].tolist()
        message = f"index {place} is {index}, not greater than the one before, {previous}"
        yield Problem(
            message, site.where.at("indices"), "sort the values by their indices, and drop duplicates"
        )


@rule(
    "SPARSE006",
    "The values of a sparse tensor differ from the default: they are not zero, and strings are not empty.",
    source="onnx.proto",
    over="sparse",
    severity="warning",
    group="pedantic",
    note="an explicit zero is redundant",
    bad=_sparse("dims: 6", values="dims: 2 data_type: 1 float_data: [1, 0]"),
    good=_GOOD,
)
def values_that_count(site: SparseSite) -> Iterator[Problem]:
    """No value of a sparse tensor is zero."""
    values = site.tensor.values
    if isinstance(values, ExternalTensor):
        return
    try:
        array = values.array()
    except SabirError:  # rules about tensors report it
        return
    zeros = _zeros(array)
    if zeros:
        yield Problem(f"the values contain {counted(zeros, 'zero')}", site.where.at("values"), "drop them")


def _zeros(array: Array) -> int:
    """Return the number of elements with all bits zero, or empty strings."""
    if array.dtype == object:
        return array.tolist().count("")
    codes = np.ascontiguousarray(array).view(np.uint8).reshape(array.size, array.dtype.itemsize)
    return array.size - int(codes.any(axis=1).sum())
