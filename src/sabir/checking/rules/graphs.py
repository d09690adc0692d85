"""Graphs: names, declared types of inputs and outputs, and value_info."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._described import described_twice
from sabir.checking._examples import GOOD, HEAD, IF, RELU, X, Y, float_info, in_graph
from sabir.checking._rule import Problem, Textproto, rule
from sabir.checking._survey import lacks_name
from sabir.inference import contradiction
from sabir.ir import OptionalType, SequenceType, SparseTensorType, TensorType
from sabir.schema import supplied_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.checking._survey import GraphSite
    from sabir.ir import Type, Value


@rule(
    "GRAPH001",
    "Each graph MUST specify a name.",
    source="ir.txt",
    over="graph",
    bad=in_graph(f"{RELU} {X} {Y}"),
    good=GOOD,
)
def named(site: GraphSite) -> Iterator[Problem]:
    """Every graph has a name; the body of a function has the function's."""
    if not site.graph.name and site.kind != "function":
        yield Problem("the graph has no name", site.where, "name it, for example 'main'")


@rule(
    "GRAPH002",
    "Each main (top-level) graph MUST define the names, types and shapes of its inputs and outputs, which are"
    " specified as 'value info' structures.",
    source="ir.txt",
    over="root",
    bad=(
        HEAD + "g (x) => (float[N] y) { y = Relu(x) }",
        HEAD + "g (float[] x) => (float[N] y) { y = Relu(x) }",
    ),
    good=(GOOD, HEAD + "g (seq(float[N]) x) => (float[N] y) { y = ConcatFromSequence<axis = 0>(x) }"),
)
def typed_ports(site: GraphSite) -> Iterator[Problem]:
    """An input or output of the main graph has a type; a tensor's type has an element type and a rank."""
    if site.kind != "main":
        return
    for kind, values in (("input", site.graph.inputs), ("output", site.graph.outputs)):
        for index, value in enumerate(values):
            missing = "name" if value is None or not value.name else _missing(value.type)
            undefined = value is not None and bool(value.name) and value.source is None
            if missing and not undefined:  # GRAPH005 reports those
                name = value.name if value is not None else ""
                yield Problem(
                    f"the {kind} has no {missing}",
                    site.where.at(kind, index=index, name=name),
                    "declare the element type and the rank; a dimension may be a name or unknown",
                )


def _missing(kind: Type | None) -> str:
    match kind:
        case None:
            return "type"
        case TensorType() | SparseTensorType():
            return "element type" if not kind.element.number else "shape" if kind.shape is None else ""
        case SequenceType() | OptionalType():
            return "" if kind.item is not None else "item type"
        case _:
            return ""


@rule(
    "GRAPH003",
    "Nested subgraphs (specified as attribute values) MUST define the names of its inputs and outputs and MAY"
    " define the types of its inputs and outputs.",
    source="ir.txt",
    over="graph",
    bad=Textproto(
        'ir_version: 8 opset_import { version: 17 } graph { name: "g" input { name: "c" type { tensor_type'
        ' { elem_type: 9 shape { } } } } node { op_type: "If" input: "c" output: "y" attribute { name:'
        ' "then_branch" type: GRAPH g { name: "t" node { op_type: "Constant" output: "a" attribute { name:'
        ' "value_float" type: FLOAT f: 1 } } output { type { tensor_type { elem_type: 1 shape { } } } } } }'
        ' attribute { name: "else_branch" type: GRAPH g { name: "e" node { op_type: "Constant" output: "b"'
        ' attribute { name: "value_float" type: FLOAT f: 1 } } output { name: "b" type { tensor_type {'
        ' elem_type: 1 shape { } } } } } } } output { name: "y" type { tensor_type { elem_type: 1 shape'
        " { } } } } }"
    ),
    good=GOOD,
)
def named_ports(site: GraphSite) -> Iterator[Problem]:
    """An input or output of a subgraph has a name."""
    if site.kind != "subgraph":
        return
    for kind, values in (("input", site.graph.inputs), ("output", site.graph.outputs)):
        for index, value in enumerate(values):
            if lacks_name(value):
                yield Problem(f"the {kind} has no name", site.where.at(kind, index=index), "name it")


_INFO = "Used to store the type and shape information of values that are not inputs or outputs."


def _info_twice(first: str, second: str) -> Textproto:
    """Return an example that has two entries in value_info for one value, with these dimensions."""
    info = 'value_info {{ name: "t" type {{ tensor_type {{ elem_type: 1 shape {{ {} }} }} }} }}'
    return in_graph(
        f'node {{ op_type: "Relu" input: "x" output: "t" }} node {{ op_type: "Neg" input: "t" output: "y" }}'
        f' name: "g" {X} {Y} {info.format(first)} {info.format(second)}'
    )


@rule(
    "GRAPH010",
    _INFO,
    source="ir.txt",
    over="graph",
    bad=_info_twice('dim { dim_param: "N" }', 'dim { dim_param: "N" } dim { dim_value: 1 }'),
    good=(
        HEAD + "g (float[N] x) => (float[N] y) <float[N] t> { t = Relu(x)  y = Neg(t) }",
        _info_twice('dim { dim_param: "N" }', 'dim { dim_param: "N" }'),
    ),
)
def described_without_contradiction(site: GraphSite) -> Iterator[Problem]:
    """Two entries of value_info for one value agree; contradicting entries are both ignored."""
    for value, first, where in described_twice(site.graph, site.where):
        message = contradiction(first.type, value.type)
        if message:
            yield Problem(f"{quote(value.name)} is described twice: {message}", where, "keep one of the two")


@rule(
    "GRAPH019",
    _INFO,
    source="ir.txt",
    over="graph",
    severity="warning",
    note="both are valid, but a reader may use either, and so know less than the file declares",
    bad=_info_twice('dim { dim_param: "N" }', "dim { }"),
    good=_info_twice('dim { dim_param: "N" }', 'dim { dim_param: "N" }'),
)
def described_once(site: GraphSite) -> Iterator[Problem]:
    """A value has one entry in value_info, or several equal ones."""
    for value, first, where in described_twice(site.graph, site.where):
        if value.type != first.type and not contradiction(first.type, value.type):
            shown = " and as ".join(str(v.type or "of unknown type") for v in (first, value))
            message = f"{quote(value.name)} is described twice: as {shown}"
            yield Problem(message, where, "keep one entry with the facts of both")


@rule(
    "GRAPH011",
    _INFO,
    source="ir.txt",
    over="graph",
    severity="warning",
    group="style",
    note="such an entry has no effect",
    bad=in_graph(f'{RELU} name: "g" {X} {Y} {float_info("value_info", "ghost")}'),
    good=HEAD + "g (float[N] x) => (float[N] y) <float[N] t> { t = Relu(x)  y = Neg(t) }",
)
def described_values_exist(site: GraphSite) -> Iterator[Problem]:
    """value_info describes values that its graph defines."""
    if not site.graph.orphan_value_info:
        return
    names = {v.name for v in site.values}
    for value in site.graph.orphan_value_info:
        if value.name not in names:
            where = site.where.at("value_info", index=value.value_info_index, name=value.name)
            yield Problem(
                f"value_info describes {quote(value.name)}, which the graph does not define",
                where,
                "drop the entry",
            )


@rule(
    "GRAPH012",
    "In models with IR version <= 3, users MAY use the same name as both a subgraph initializer and subgraph"
    " input, but this is restricted to support constants via initializers.",
    source="ir.txt",
    over="graph",
    until=3,
    bad='<ir_version: 3, opset_import: ["" : 7]>\n'
    "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }",
    good='<ir_version: 3, opset_import: ["" : 7]>\n'
    "g (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add(x, w) }",
)
def initializers_are_inputs(site: GraphSite) -> Iterator[Problem]:
    """Up to IR 3 an initializer is the default of an input, and must be listed as one."""
    inputs = set(site.graph.inputs)
    for value in site.graph.initializers:
        if value not in inputs:
            where = site.where.at("initializer", name=value.name)
            yield Problem(
                f"the initializer {quote(value.name)} is not an input, as IR 3 and earlier require",
                where,
                "raise ir_version to 4 or more",
            )


@rule(
    "GRAPH013",
    "In models with IR version >= 4, in nested subgraphs used as attribute values, users MUST NOT"
    " use the same"
    " name as both a subgraph initializer and subgraph input unless the corresponding op's specification"
    " explicitly allows it.",
    source="ir.txt",
    over="graph",
    since=4,
    bad=HEAD
    + "g (int64 n, bool c, float[2] x) => (float[2] y) { y = Loop (n, c, x) <body = b (int64 i, bool k,"
    " float[2] s = {1, 2}) => (bool k2, float[2] s2) { k2 = Identity(k)  s2 = Neg(s) }> }",
    good=HEAD
    + "g (int64 n, bool c, float[2] x) => (float[2] y) { y = Loop (n, c, x) <body = b (int64 i, bool k,"
    " float[2] s) => (bool k2, float[2] s2) { k2 = Identity(k)  s2 = Neg(s) }> }",
)
def inner_inputs_without_defaults(site: GraphSite) -> Iterator[Problem]:
    """An input of a subgraph has no initializer: the node with the subgraph supplies it."""
    if site.kind != "subgraph":
        return
    for index, value in enumerate(site.graph.inputs):
        if value in site.graph.initializers:
            where = site.where.at("input", index=index, name=value.name)
            yield Problem(
                f"{quote(value.name)} is both an input and an initializer of a subgraph",
                where,
                "remove one of them",
            )


_BODY = (
    '<ir_version: 3, opset_import: ["" : 8]>\n'
    "g (int64 n, bool c, float[2] x) => (float[2] y) {{ y = Loop (n, c, x) <body = b (int64 i, bool k,"
    " {inputs}) => (bool k2, float[2] s2) {{ k2 = Identity(k)  s2 = Add(s, w) }}> }}"
)


@rule(
    "GRAPH017",
    "In particular, the control-flow operator semantics determines the set of inputs supplied to the"
    " execution of the subgraph, and these input names MUST NOT appear as subgraph initializers.",
    source="ir.txt",
    over="graph",
    until=3,
    bad=(
        _BODY.format(inputs="float[2] s = {1, 2}, float[2] w = {1, 2}"),
        _BODY.format(inputs="float[2] w = {1, 2}, float[2] s"),
    ),
    good=_BODY.format(inputs="float[2] s, float[2] w = {1, 2}"),
)
def supplied_inputs_without_defaults(site: GraphSite) -> Iterator[Problem]:
    """Up to IR 3 the inputs that a Loop or Scan supplies come first, and have no initializer."""
    for index, value in enumerate(site.graph.inputs[: _supplied(site)]):
        if value in site.graph.initializers:
            where = site.where.at("input", index=index, name=value.name)
            message = f"the node supplies the input {quote(value.name)}, which is an initializer too"
            yield Problem(message, where, "list constants after the inputs that the node supplies")


def _supplied(site: GraphSite) -> int:
    """Return the number of inputs of a subgraph that its node supplies."""
    node = site.holder
    version = None if node is None else site.scope.version(node)
    return 0 if node is None or version is None else supplied_inputs(version.inputs, len(node.inputs))


@rule(
    "GRAPH014",
    "Graphs SHOULD be populated with documentation strings, which MAY be interpreted using GitHub-style"
    " markdown syntax.",
    source="ir.txt",
    over="graph",
    severity="warning",
    group="style",
    bad=GOOD,
    good=in_graph(f'{RELU} name: "g" doc_string: "The positive part of x." {X} {Y}'),
)
def documented(site: GraphSite) -> Iterator[Problem]:
    """A main graph has a doc string."""
    if site.kind == "main" and not site.graph.doc:
        yield Problem("the graph has no doc string", site.where, "describe what the model computes")


@rule(
    "GRAPH015",
    "The outputs of a subgraph have types, so that a reader needs no inference to know them.",
    source="practice",
    over="graph",
    severity="warning",
    group="pedantic",
    note="the standard makes these types optional: a subgraph MAY define the types of its inputs and outputs",
    bad=HEAD + "g (bool c, float[N] x) => (float[N] y) { y = If (c) <then_branch = a () => (t)"
    " { t = Relu(x) }, else_branch = b () => (float[N] v) { v = Abs(x) }> }",
    good=IF.format(then="u"),
)
def typed_inner_outputs(site: GraphSite) -> Iterator[Problem]:
    """An output of a subgraph declares its type."""
    if site.kind != "subgraph":
        return
    for index, value in enumerate(site.graph.outputs):
        if value is not None and value.name and value.type is None:
            where = site.where.at("output", index=index, name=value.name)
            yield Problem(f"the output {quote(value.name)} has no type", where, "declare it")


@rule(
    "GRAPH018",
    _INFO,
    source="ir.txt",
    over="graph",
    bad=(
        HEAD + "g (float[N] x) => (int64[N] x) { }",
        in_graph(
            f'{RELU} name: "g" {X} {Y}'
            ' value_info { name: "x" type { tensor_type { elem_type: 1 shape { } } } }'
        ),
    ),
    good=(
        HEAD + "g (float[N] x) => (float[M] x) { }",
        in_graph(f'{RELU} name: "g" {X} {Y} {float_info("value_info", "y")}'),
    ),
)
def described_alike(site: GraphSite) -> Iterator[Problem]:
    """The declarations of a value as input, as output and in value_info do not contradict one another."""
    if not site.graph.orphan_value_info and not site.graph.output_infos:
        return
    ports = [*site.graph.inputs, *(v for v in site.graph.outputs if v is not None)]
    by_name = {v.name: v for v in reversed(ports) if v.name}
    for value, described, where in _again(site):
        message = contradiction(by_name.get(value.name, value).type, described.type)
        if message:
            yield Problem(f"{quote(value.name)} is described twice: {message}", where, "keep one of the two")


def _again(site: GraphSite) -> Iterator[tuple[Value, Value, Location]]:
    """Yield the values with a further declaration, that declaration, and its location."""
    for index, (value, described) in site.graph.output_infos.items():
        yield value, described, site.where.at("output", index=index, name=value.name)
    for value in site.graph.orphan_value_info:
        yield value, value, site.where.at("value_info", index=value.value_info_index, name=value.name)
