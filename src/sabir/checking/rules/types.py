"""Types: valid elements, shapes and containers, which agree with the inferred types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import quote
from sabir.checking._examples import GOOD, HEAD, RELU, X, Y, around, in_graph, with_tensor
from sabir.checking._rule import Problem, rule
from sabir.elements import find_element
from sabir.ir import (
    NEWEST_IR,
    Expr,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
    elements_of_type,
    first_ir_of_element,
    parts_of_type,
)
from sabir.proto import TypeProto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import Survey, TypeSite


@rule(
    "TYPE001",
    "The number of inputs and outputs in a node, their types, the set of attributes specified in a node and"
    " their types MUST satisfy the constraints imposed by the signature of the node's operator.",
    source="ir.txt",
    over="model",
    bad=(
        HEAD + "g (float[2] x, float[3] z) => (float[2] y) { y = Add(x, z) }",
        HEAD + "g (float[N] x) => (int64[N] y) { y = Relu(x) }",
        HEAD + "g (string[N] x) => (string[N] y) { y = Relu(x) }",
    ),
    good=GOOD,
)
def consistent(_: Survey) -> Iterator[Problem]:
    """Inference finds no type that an operator does not admit, and no contradiction of shapes."""
    yield from ()  # the engine adds what one inference over the whole model finds


@rule(
    "TYPE008",
    "The types of a node can be inferred: its operator has inference, which accepts the call.",
    source="practice",
    over="model",
    severity="warning",
    note="the model may be valid; the results of such a node keep their declared types",
    bad=around(
        f'node {{ op_type: "Constant" output: "c" attribute {{ name: "value" type: TENSOR t {{ data_type: 1'
        f" {'dims: 1 ' * 65} float_data: 1 }} }} }} {RELU}"
    ),
    good=GOOD,
)
def judged(_: Survey) -> Iterator[Problem]:
    """Inference covers each node: its operator has inference, and its tensors can be represented."""
    yield from ()  # as TYPE001


@rule(
    "TYPE002",
    "Primitive numeric, string, and Boolean types MUST be used as elements of tensors.",
    source="ir.txt",
    over="type",
    bad=in_graph(
        f'name: "g" {RELU} {X} {Y} input {{ name: "z" type {{ tensor_type {{ elem_type: 99 shape {{'
        f" }} }} }} }}"
    ),
    good=GOOD,
)
def known_elements(site: TypeSite) -> Iterator[Problem]:
    """Element types are defined in the standard."""
    for element in elements_of_type(site.type):
        if element.number and find_element(element.number) is None:
            yield Problem(f"element type {element.number} is not in the standard", site.where)


@rule(
    "TYPE003",
    "S is the shape of the tensor (a list of non-negative integers).",
    source="ir.txt",
    over="type",
    bad=in_graph(
        'name: "g" input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: -5 } } } } }'
        ' output { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: -5 } } } } }'
    ),
    good=GOOD,
)
def dimensions_count(site: TypeSite) -> Iterator[Problem]:
    """A dimension is a name, unknown, or at least 0."""
    for kind in parts_of_type(site.type):
        shape = kind.shape if isinstance(kind, (TensorType, SparseTensorType)) else None
        for dim in shape or ():
            if isinstance(dim, int) and dim < 0:
                yield Problem(
                    f"the dimension {dim} is negative",
                    site.where,
                    "leave the dimension unset if its size is unknown",
                )
                return


@rule(
    "TYPE004",
    "Maps are associative tables, defined by a key type and a value type.",
    source="ir.txt",
    over="type",
    bad=in_graph(
        'name: "g" input { name: "x" type { map_type { key_type: 1 value_type { tensor_type {'
        " elem_type: 1 shape"
        ' { } } } } } } output { name: "x" type { map_type { key_type: 1 value_type { tensor_type {'
        " elem_type: 1 shape { } } } } } }"
    ),
    good=HEAD + "g (map(int64, float[N]) x) => (map(int64, float[N]) x) { }",
)
def map_keys(site: TypeSite) -> Iterator[Problem]:
    """The keys of a map are integers or strings, as the comment on TypeProto.Map.key_type says."""
    for kind in parts_of_type(site.type):
        if isinstance(kind, MapType) and not kind.has_valid_keys:
            yield Problem(
                f"a map cannot have keys of type {kind.key}", site.where, "use an integer type or string"
            )


@rule(
    "TYPE005",
    "Optionals are wrappers that may contain an element of tensor, sequence, or map type, or may be empty"
    " (containing none).",
    source="ir.txt",
    over="type",
    severity="warning",
    note="the format can represent it, and an operator may admit it",
    bad=HEAD + "g (optional(optional(float[N])) x) => (optional(optional(float[N])) x) { }",
    good=HEAD + "g (optional(seq(float[N])) x) => (optional(seq(float[N])) x) { }",
)
def optional_of_something(site: TypeSite) -> Iterator[Problem]:
    """The element of an optional is not an optional."""
    for kind in parts_of_type(site.type):
        if isinstance(kind, OptionalType) and isinstance(kind.item, OptionalType):
            yield Problem("an optional contains an optional", site.where, "remove one of the two")


@rule(
    "TYPE006",
    "Sequences are dense, ordered, collections of elements that are of homogeneous types.",
    source="ir.txt",
    over="type",
    bad=in_graph(
        f'name: "g" {X} node {{ op_type: "Relu" input: "x" output: "y" }} output {{ name: "y" type {{'
        f" tensor_type"
        ' { elem_type: 1 shape { dim { dim_param: "N" } } } } } node { op_type: "SequenceConstruct"'
        ' input: "y"'
        ' output: "s" } value_info { name: "s" type { sequence_type { elem_type { tensor_type { } } } } }'
    ),
    good=HEAD + "g (seq(float[N]) x) => (seq(float[N]) x) { }",
)
def stated_elements(site: TypeSite) -> Iterator[Problem]:
    """A tensor, sequence, map or optional declares its element type, and an opaque type its name."""
    for kind in parts_of_type(site.type):
        match kind:
            case TensorType() | SparseTensorType():
                missing = not kind.element.number
            case SequenceType() | OptionalType():
                missing = kind.item is None
            case MapType():
                missing = not kind.key.number or kind.value is None
            case OpaqueType():
                missing = not kind.name
            case _:
                missing = False
        if missing:
            yield Problem(f"the type {quote(str(site.type))} does not declare its element type", site.where)
            return


@rule(
    "TYPE007",
    "Breaking changes to the format or semantics of the ONNX specification require an increment of"
    " the version.",
    source="versioning.txt",
    over="model",
    bad=(
        '<ir_version: 8, opset_import: ["" : 17]>\ng (int4[N] x) => (int4[N] x) { }',
        with_tensor('data_type: 22 dims: 2 raw_data: "\\001"'),
    ),
    good='<ir_version: 10, opset_import: ["" : 21]>\ng (int4[N] x) => (int4[N] x) { }',
)
def elements_of_their_time(survey: Survey) -> Iterator[Problem]:
    """The IR version has each element type: int4 came with IR 10, float6 with IR 14, ..."""
    version = survey.model.ir_version
    if not 0 < version < NEWEST_IR:
        return
    typed = ((site, elements_of_type(site.type)) for site in survey.types)
    constants = ((site, (site.tensor.element,)) for site in survey.tensors)
    for site, elements in (*typed, *constants):
        for element in elements:
            since = first_ir_of_element(element)
            if version < since:
                message = f"{element.name} came with IR {since}; the model has IR {version}"
                yield Problem(message, site.where, f"raise ir_version to {since}")
                break


@rule(
    "TYPE009",
    'A dimension variable "N" represents the same value across the entire graph in a model.',
    source="ir.txt",
    over="model",
    severity="warning",
    note="a model for one size may declare it; more often an input was made dynamic later",
    bad=HEAD + "g (float[N, 3] x) => (float[2, 3] y) { y = Relu(x) }",
    good=HEAD + "g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }",
)
def claimed_sizes(_: Survey) -> Iterator[Problem]:
    """No result declares a fixed size that depends on the dimensions of the inputs."""
    yield from ()  # the engine adds what one inference over the whole model finds


@rule(
    "TYPE010",
    "The dimension variables M or N must be omitted from the above type if that dimension does not have a"
    " fixed size across all tensors in the sequence.",
    source="ir.txt",
    over="model",
    severity="warning",
    note="no runtime enforces it, and the standard's own test cases violate it",
    bad=(
        HEAD + "g (float[2] x, float[3] z) => (seq(float[N]) y) { y = SequenceConstruct(x, z) }",
        HEAD + "g (float[2] x, float[1,3] z) => (seq(float[N]) y) { y = SequenceConstruct(x, z) }",
        HEAD + "g (seq(float[2]) x, float[3] z) => (seq(float[2]) y) { y = SequenceInsert(x, z) }",
    ),
    good=(
        HEAD + "g (float[2] x, float[3] z) => (seq(float[?]) y) { y = SequenceConstruct(x, z) }",
        HEAD + "g (float[2] x, float[1,3] z) => (seq(float[]) y) { y = SequenceConstruct(x, z) }",
        HEAD + "g (float[N] x, float[3] z) => (seq(float[N]) y) { y = SequenceConstruct(x, z) }",
    ),
)
def even_items(_: Survey) -> Iterator[Problem]:
    """The items of a sequence with a declared item shape have this shape."""
    yield from ()  # the engine adds what one inference over the whole model finds


_EMPTY = 'type { tensor_type { elem_type: 1 shape { dim { dim_param: "" } } } }'


@rule(
    "TYPE011",
    "The use of an empty string (as a dimension variable) to denote an unknown dimension not related to any"
    " other dimension.",
    source="ir.txt",
    over="type",
    severity="warning",
    group="pedantic",
    note="the text discourages this spelling; every reader treats it as an unknown dimension",
    bad=in_graph(f'{RELU} name: "g" input {{ name: "x" {_EMPTY} }} output {{ name: "y" {_EMPTY} }}'),
    good=HEAD + "g (float[?] x) => (float[?] y) { y = Relu(x) }",
)
def no_empty_variables(site: TypeSite) -> Iterator[Problem]:
    """An unknown dimension has neither a number nor a name, not even an empty one."""
    if site.type.note is None or not site.type.note.wire:
        return
    if _has_empty_variable(TypeProto.FromString(site.type.note.wire)):
        message = "the name of a dimension is empty"
        yield Problem(message, site.where, "leave dim_param unset for an unknown dimension")


def _has_empty_variable(proto: Any) -> bool:
    while proto.WhichOneof("value") in {"sequence_type", "optional_type", "map_type"}:
        container = getattr(proto, proto.WhichOneof("value"))
        is_map = proto.WhichOneof("value") == "map_type"
        proto = container.value_type if is_map else container.elem_type
    which = proto.WhichOneof("value")
    if which not in {"tensor_type", "sparse_tensor_type"}:
        return False
    dims = getattr(proto, which).shape.dim
    return any(d.WhichOneof("value") == "dim_param" and not d.dim_param for d in dims)


@rule(
    "TYPE012",
    "In the current implementation, the number of dimensions in a shape MUST represent the rank of the"
    " tensor.",
    source="ir.txt",
    over="type",
    severity="warning",
    note="every reader treats it as one dimension, which the author may have intended",
    bad=HEAD + 'g (float["*"] x) => (float["*"] y) { y = Relu(x) }',
    good=HEAD + "g (float[N] x) => (float[N] y) { y = Relu(x) }",
)
def no_stars(site: TypeSite) -> Iterator[Problem]:
    """No dimension is named `*`, which would be one dimension, not any number of them."""
    for kind in parts_of_type(site.type):
        shape = kind.shape if isinstance(kind, (TensorType, SparseTensorType)) else None
        if any(isinstance(dim, Expr) and str(dim) == "*" for dim in shape or ()):
            hint = "omit the shape if the rank is unknown, or name the dimension"
            yield Problem(
                "a dimension is named '*', which is one dimension, not any number of them", site.where, hint
            )
            return
