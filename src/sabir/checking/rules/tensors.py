"""Tensors: a type, a shape, and as much data as these two ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.checking._examples import GOOD, HEAD, RELU, X, Y, in_graph, with_tensor
from sabir.checking._messages import fields_of
from sabir.checking._rule import Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._messages import Data
    from sabir.checking._survey import GraphSite, TensorSite

_ONE_FIELD = (
    "The values of a tensor stand in exactly one of its fields: `raw_data`, or the one that its data_type"
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
    """A tensor states its data_type, and it is one of the standard's."""
    held = site.message
    if held is not None and held.element is None and site.proto is not None:
        number = site.proto.data_type
        told = f"data_type {number} is not in the standard" if number else "the tensor states no data_type"
        yield Problem(told, site.where, "set the type of its elements")


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
    """One field holds the data, and none does where the tensor has no elements."""
    held = site.message
    if held is None or held.element is None or held.size is None or held.is_external:
        return
    if len(held.fields) > 1:
        told = f"both {held.fields[0]} and {held.fields[1]} hold data"
        yield Problem(told, site.where, "keep the one that is meant")
    elif held.fields and not held.size:
        yield Problem(f"the tensor has no elements, and {held.fields[0]} holds data", site.where)
    elif held.size and not held.fields:
        yield Problem(f"the tensor has {held.size} elements and no data", site.where)


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
    """The data stands in raw_data, where strings never do, or in the field that the type wants."""
    held = site.message
    if held is None or held.element is None or held.is_external:
        return
    wanted = fields_of(held.element)
    fields = held.fields if held.size and len(held.fields) == 1 else ()
    if held.element.kind == "string" and "raw_data" in held.present and not held.fields[1:]:
        fields = ("raw_data",)  # even an empty one
    if fields and fields[0] not in wanted:
        told = f"the data of type {held.element} is in {fields[0]}"
        yield Problem(told, site.where, f"it belongs in {' or '.join(wanted)}")


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
    """No dimension is negative, and the number of elements fits 64 bits."""
    held = site.message
    if held is None or held.size is not None or site.proto is None:
        return
    negative = next((d for d in site.proto.dims if d < 0), None)
    told = (
        "the number of elements is past 64 bits"
        if negative is None
        else f"the dimension {negative} is negative"
    )
    yield Problem(told, site.where)


def _misfit(data: Data, site: TensorSite) -> Problem:
    unit = "bytes" if data.field == "raw_data" else f"entries of {data.field}"
    told = f"{data.size} elements of {data.element} take {data.needed} {unit}, found {data.length}"
    return Problem(told, site.where)


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
    """A tensor's data is as long as its shape asks for."""
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
    """A tensor's data is no longer than its shape asks for."""
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
    """An initializer has a name; that of a sparse one is the name of its values."""
    for index, value in enumerate(site.graph.initializers):
        if not value.name:
            where = site.where.at("initializer", index=index)
            yield Problem("the initializer has no name", where, "nothing can read it: name it, or drop it")


@rule(
    "TENSOR012",
    "A tensor too large for one message may be cut into segments, of which the message tells its own.",
    source="onnx.proto",
    over="tensor",
    severity="warning",
    note="nothing says where the other segments are, and no implementation reads them",
    bad=with_tensor("dims: 1 data_type: 1 float_data: 1 segment { begin: 0 end: 1 }"),
    good=GOOD,
)
def no_segments(site: TensorSite) -> Iterator[Problem]:
    """A tensor is not one segment of a larger one."""
    if site.message is not None and "segment" in site.message.present:
        yield Problem(
            "the tensor says that it is a segment", site.where, "use external data for a large tensor"
        )
