"""Tensors: a type, a shape, and data of matching length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import counted
from sabir.checking._examples import GOOD, HEAD, RELU, X, Y, in_graph, with_tensor
from sabir.checking._messages import fields_of
from sabir.checking._rule import Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._messages import Data
    from sabir.checking._survey import GraphSite, TensorSite

_ONE_FIELD = (
    "The values of a tensor are in exactly one of its fields: `raw_data`, or the one that its data_type"
    " names."
)
_LENGTH = (
    "A tensor has as much data as its data_type and dims say: a value for each element, in row-major order."
)


@rule(
    "TENSOR001",
    "Primitive numeric, string, and Boolean types MUST be used as elements of tensors.",
    source="ir.txt",
    over="tensor",
    bad=(with_tensor(r'dims: 1 data_type: 99 raw_data: "\001"'), with_tensor("dims: 1 float_data: 1")),
    good=HEAD + "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }",
)
def element_type(site: TensorSite) -> Iterator[Problem]:
    """A tensor has a data_type of the standard."""
    header = site.message
    if header is not None and header.element is None and site.proto is not None:
        number = site.proto.data_type
        message = f"data_type {number} is not in the standard" if number else "the tensor has no data_type"
        yield Problem(message, site.where, "set data_type to the element type")


@rule(
    "TENSOR002",
    _ONE_FIELD,
    source="onnx.proto",
    over="tensor",
    bad=(
        with_tensor("dims: 1 data_type: 1"),
        with_tensor(r'dims: 1 data_type: 1 float_data: 1 raw_data: "\000\000\200\077"'),
        with_tensor("dims: 0 data_type: 1 float_data: 1"),
    ),
    good=(with_tensor("dims: 0 data_type: 1"), with_tensor('dims: 0 data_type: 1 raw_data: ""')),
)
def one_field(site: TensorSite) -> Iterator[Problem]:
    """The data is in one field; a tensor without elements has no data."""
    header = site.message
    if header is None or header.element is None or header.size is None or header.is_external:
        return
    if len(header.fields) > 1:
        message = f"both {header.fields[0]} and {header.fields[1]} have data"
        yield Problem(message, site.where, "keep the intended one")
    elif header.fields and not header.size:
        yield Problem(f"the tensor has no elements, but {header.fields[0]} has data", site.where)
    elif header.size and not header.fields:
        yield Problem(f"the tensor has {counted(header.size, 'element')}, but no data", site.where)


@rule(
    "TENSOR003",
    _ONE_FIELD,
    source="onnx.proto",
    over="tensor",
    bad=(
        with_tensor("dims: 1 data_type: 1 int64_data: 1"),
        with_tensor('dims: 1 data_type: 8 raw_data: "a"'),
        with_tensor('dims: 0 data_type: 8 raw_data: ""'),
        with_tensor("dims: 1 data_type: 10 float_data: 1"),
    ),
    good=(
        with_tensor('dims: 1 data_type: 8 string_data: "a"'),
        with_tensor("dims: 1 data_type: 10 int32_data: 15360"),
    ),
)
def field_of_its_type(site: TensorSite) -> Iterator[Problem]:
    """The data is in raw_data (not for strings) or in the field for the element type."""
    header = site.message
    if header is None or header.element is None or header.is_external:
        return
    wanted = fields_of(header.element)
    fields = header.fields if header.size and len(header.fields) == 1 else ()
    if header.element.kind == "string" and "raw_data" in header.present and not header.fields[1:]:
        fields = ("raw_data",)  # even an empty one
    if fields and fields[0] not in wanted:
        message = f"the elements of type {header.element} are in {fields[0]}"
        yield Problem(message, site.where, f"they belong in {' or '.join(wanted)}")


@rule(
    "TENSOR004",
    "S is the shape of the tensor (a list of non-negative integers).",
    source="ir.txt",
    over="tensor",
    bad=(
        with_tensor("dims: -1 data_type: 1 float_data: 1"),
        with_tensor("dims: 4294967296 dims: 4294967296 data_type: 1 float_data: 1"),
    ),
    good=with_tensor("dims: 4294967296 dims: 0 data_type: 1"),
)
def shape(site: TensorSite) -> Iterator[Problem]:
    """No dimension is negative, and the size fits 64 bits."""
    header = site.message
    if header is None or header.size is not None or site.proto is None:
        return
    negative = next((d for d in site.proto.dims if d < 0), None)
    message = (
        "the number of elements exceeds 64 bits"
        if negative is None
        else f"the dimension {negative} is negative"
    )
    yield Problem(message, site.where)


def _misfit(data: Data, site: TensorSite) -> Problem:
    elements = f"{counted(data.size, 'element')} of {data.element}"
    message = f"the length of {data.field} is {data.length}, and must be {data.needed} for {elements}"
    return Problem(message, site.where)


@rule(
    "TENSOR005",
    _LENGTH,
    source="onnx.proto",
    over="tensor",
    bad=(
        with_tensor(r'dims: 2 data_type: 1 raw_data: "\000\000\200\077"'),
        with_tensor("dims: 3 data_type: 7 int64_data: [1, 2]"),
        with_tensor(r'dims: 3 data_type: 27 raw_data: "\001\002"', ir_version=14),
    ),
    good=with_tensor(r'dims: 3 data_type: 27 raw_data: "\001\002\000"', ir_version=14),
)
def not_too_short(site: TensorSite) -> Iterator[Problem]:
    """A tensor has enough data for its shape."""
    data = site.data
    if data is not None and data.length < data.needed:
        yield _misfit(data, site)


@rule(
    "TENSOR006",
    _LENGTH,
    source="onnx.proto",
    over="tensor",
    bad=(
        with_tensor(r'dims: 1 data_type: 2 raw_data: "\001\002"'),
        with_tensor("dims: 1 data_type: 1 float_data: [1, 2]"),
        with_tensor(r'dims: 3 data_type: 22 raw_data: "\001\002\003"', ir_version=10),
        with_tensor("dims: 3 data_type: 22 int32_data: [1, 2, 3]", ir_version=10),
    ),
    good=(
        with_tensor(r'dims: 3 data_type: 22 raw_data: "\001\002"', ir_version=10),
        with_tensor("dims: 3 data_type: 22 int32_data: [1, 2]", ir_version=10),
        with_tensor("dims: 3 data_type: 28 int32_data: [1, 2, 63]", ir_version=14),
    ),
)
def not_too_long(site: TensorSite) -> Iterator[Problem]:
    """A tensor has no more data than its shape needs."""
    data = site.data
    if data is not None and data.length > data.needed:
        yield _misfit(data, site)


@rule(
    "TENSOR011",
    "A list of named tensor values.",
    source="ir.txt",
    over="graph",
    bad=(
        in_graph(f'{RELU} name: "g" {X} {Y} initializer {{ dims: 1 data_type: 1 float_data: 1 }}'),
        in_graph(
            f'{RELU} name: "g" {X} {Y} sparse_initializer {{ dims: 3'
            " indices { dims: 1 data_type: 7 int64_data: 1 }"
            " values { dims: 1 data_type: 1 float_data: 1 } }"
        ),
    ),
    good=GOOD,
)
def named(site: GraphSite) -> Iterator[Problem]:
    """An initializer has a name; a sparse one has the name of its values."""
    for index, value in enumerate(site.graph.initializers):
        if not value.name:
            where = site.where.at("initializer", index=index)
            yield Problem("the initializer has no name", where, "nothing can read it: name it, or drop it")


@rule(
    "TENSOR012",
    "A tensor too large for one message may be split into segments; each message states its own.",
    source="onnx.proto",
    over="tensor",
    severity="warning",
    note="no field locates the other segments, and no implementation reads them",
    bad=with_tensor("dims: 1 data_type: 1 float_data: 1 segment { begin: 0 end: 1 }"),
    good=GOOD,
)
def no_segments(site: TensorSite) -> Iterator[Problem]:
    """A tensor is not one segment of a larger one."""
    if site.message is not None and "segment" in site.message.present:
        yield Problem(
            "the tensor is a segment of a larger one, and no reader joins segments",
            site.where,
            "use external data for a large tensor",
        )
