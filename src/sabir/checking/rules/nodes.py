"""Nodes: the callee exists, and the call fits its signature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError, quote
from sabir.checking._examples import GOOD, HEAD, X, Y, around, in_graph
from sabir.checking._rule import Problem, rule
from sabir.ir import Function
from sabir.proto import NodeProto
from sabir.schema import Version, check_call, function_label, port_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.base import Location
    from sabir.checking._survey import AttributeSite, GraphSite, Survey
    from sabir.ir import Node
    from sabir.schema import Scope

_SIGNATURE = (
    "The number of inputs and outputs in a node, their types, the set of attributes specified in a node and"
    " their types MUST satisfy the constraints imposed by the signature of the node's operator."
)
_F = '\n<domain: "d", opset_import: ["" : 17]>\nf (a) => (b) { b = Relu(a) }'
_IMPORTS_D = '<ir_version: 10, opset_import: ["" : 17, "d" : 1]>\n'


def _unknown_calls(site: GraphSite) -> Iterator[tuple[int, Node]]:
    """Yield the nodes with an unknown callee in an imported domain."""
    for callee, places in site.calls.items():
        node = site.nodes[places[0]]
        if isinstance(callee, SchemaError) and node.op and site.scope.opset(node.domain) is not None:
            yield from ((index, site.nodes[index]) for index in places)


@rule(
    "NODE001",
    "Each operator used within a graph MUST be explicitly declared by one of the operator sets"
    " imported by the"
    " model.",
    source="ir.txt",
    over="calls",
    bad=(
        HEAD + "g (float[N] x) => (float[N] y) { y = Reluu(x) }",
        HEAD + "g (float[N] x) => (float[N] y) { y = Gelu(x) }",
        HEAD + "g (float[N] x) => (float[N] y) { y = d.f(x) }" + _F,
    ),
    good=GOOD,
)
def calls_what_exists(site: GraphSite) -> Iterator[Problem]:
    """A node's domain is imported, and has the operator at that version, or the function."""
    for callee, places in site.calls.items():
        if isinstance(callee, Version):
            continue
        node = site.nodes[places[0]]
        imported = site.scope.opset(node.domain) is not None
        if isinstance(callee, Function):
            if imported:
                continue
            message, hint = (
                f"the operator set of {quote(node.domain)} is not imported",
                "import it",
            )
        elif not node.op or (imported and (not site.scope.knows(node) or site.scope.overloads(node))):
            continue
        else:
            message, hint = str(callee), ""
        for index in places:
            yield Problem(message, site.at_node(index), hint)


@rule(
    "NODE002",
    _SIGNATURE,
    source="ir.txt",
    over="calls",
    bad=(
        HEAD + "g (float[N] x) => (float[N] y) { y = Relu(x, x) }",
        HEAD + "g (float[N] x) => (float[N] y) { y = Add(x) }",
        HEAD + 'g (float[N] x) => (float[N] y) { y = Max(x, "", x) }',
        HEAD + 'g (float[N] x, int64[1] k) => (int64[M] y) { "", y = TopK(x, k) }',
        _IMPORTS_D + "g (float[N] x) => (float[N] y) { y = d.f(x, x) }" + _F,
    ),
    good=GOOD,
)
def arity(site: GraphSite) -> Iterator[Problem]:
    """The number of inputs and outputs of a node fits the operator or function."""
    for callee, places in site.calls.items():
        if isinstance(callee, SchemaError):
            continue
        sound: set[tuple[int, int]] = set()
        for index in places:
            node, inputs = site.nodes[index], site.reads[index]
            key = (len(inputs), len(node.outputs))
            is_whole = None not in inputs and None not in node.outputs
            if is_whole and key in sound:
                continue
            problem = _problem_of(lambda c=callee, n=node: _check_arity(c, n), site, index)
            if problem is not None:
                yield problem
            elif is_whole:
                sound.add(key)


def _check_arity(callee: Version | Function, node: Node) -> None:
    if isinstance(callee, Function):
        check_call(callee, node)
    else:
        callee.formal.check_arity(node.inputs, len(node.outputs))
        _check_output_names(callee, node)


def _check_output_names(version: Version, node: Node) -> None:
    """Raise SchemaError for an empty name of a required output; `check_arity` does so for inputs."""
    ports = version.formal.outputs
    for place, value in enumerate(node.outputs):
        port = port_at(ports, place)
        if value is None and not port.optional and not port.variadic:
            raise SchemaError(
                f"{version} requires the output {port.name!r} (number {place}), but its name is empty"
            )


@rule(
    "NODE003",
    _SIGNATURE,
    source="ir.txt",
    over="calls",
    bad=(
        HEAD + "g (float[N] x) => (float[N] y) { y = Relu<slope = 1>(x) }",
        HEAD + 'g (float[N] x) => (float[N] y) { y = Softmax<axis = "0">(x) }',
        HEAD + "g (float[N] x) => (int64[N] y) { y = Cast(x) }",
        _IMPORTS_D + "g (float[N] x) => (float[N] y) { y = d.f<k = 1>(x) }" + _F,
    ),
    good=HEAD + "g (float[N] x) => (float[N] y) { y = Softmax<axis = 0>(x) }",
)
def attributes(site: GraphSite) -> Iterator[Problem]:
    """The operator or function has each attribute of a node, with its type; no required one is missing."""
    attributed = set(site.attributed)
    for callee, places in site.calls.items():
        if isinstance(callee, SchemaError):
            continue
        demanding = isinstance(callee, Version) and callee.formal.requires
        for index in places if demanding else attributed.intersection(places):
            problem = _problem_of(
                lambda c=callee, n=site.nodes[index]: _check_attributes(site, c, n), site, index
            )
            if problem is not None:
                yield problem


def _check_attributes(site: GraphSite, callee: Version | Function, node: Node) -> None:
    if isinstance(callee, Function):
        site.scope.of_call(callee, node)
    else:  # runtimes use such names for private attributes
        known = {name: a for name, a in node.attributes.items() if name and not name.startswith("__")}
        callee.formal.check_attributes(known)


def _problem_of(test: Callable[[], object], site: GraphSite, index: int) -> Problem | None:
    try:
        test()
    except SchemaError as error:
        return Problem(str(error), site.at_node(index))
    return None


@rule(
    "NODE004",
    "Must be unique among attributes, inputs, and outputs for any given operator and node.",
    source="ir.txt",
    over="graph",
    bad=around(
        'node { op_type: "Softmax" input: "x" output: "y" attribute { name: "axis" type: INT i: 0 }'
        ' attribute { name: "axis" type: INT i: 0 } }'
    ),
    good=HEAD + "g (float[N] x) => (float[N] y) { y = Softmax<axis = 0>(x) }",
)
def attributes_once(site: GraphSite) -> Iterator[Problem]:
    """A node has no duplicate attribute."""
    for index, node in enumerate(site.nodes):
        if node.residue is not None and node.residue.wire:
            for again in NodeProto.FromString(node.residue.wire).attribute:
                where = site.at_node(index)
                yield Problem(f"the attribute {quote(again.name)} occurs twice", where, "keep one of them")


@rule(
    "NODE005",
    "The union of the operator sets specified by a given model MUST have a compatible operator"
    " declaration for"
    " each node in the model's graph.",
    source="versioning.txt",
    over="calls",
    bad=HEAD + "g (float[N] x, int64[M] i, float[M] u) => (float[N] y) { y = Scatter(x, i, u) }",
    good=HEAD + "g (float[N] x, int64[M] i, float[M] u) => (float[N] y) { y = ScatterElements(x, i, u) }",
)
def not_deprecated(site: GraphSite) -> Iterator[Problem]:
    """No node calls an operator that is deprecated in the imported version."""
    for callee, places in site.calls.items():
        if isinstance(callee, Version) and callee.deprecated:
            for index in places:
                yield Problem(f"{callee} is deprecated: {callee.changes}", site.at_node(index))


@rule(
    "NODE006",
    "Attribute values are runtime constants, in that their values are determined when a model graph is"
    " constructed and therefore not computed at runtime.",
    source="ir.txt",
    over="attribute",
    bad=(
        HEAD + "g (float[N] x) => (float[N] y) { y = Softmax<axis: int = @k>(x) }",
        _IMPORTS_D + "g (float[N] x) => (float[N] y) { y = d.f(x) }\n"
        '<domain: "d", opset_import: ["" : 17]>\nf (a) => (b) { b = Softmax<axis: int = @k>(a) }',
    ),
    good=_IMPORTS_D + "g (float[N] x) => (float[N] y) { y = d.f<k = 0>(x) }\n"
    '<domain: "d", opset_import: ["" : 17]>\nf <k> (a) => (b) { b = Softmax<axis: int = @k>(a) }',
)
def references(site: AttributeSite) -> Iterator[Problem]:
    """An attribute reference is in the body of a function, which declares the attribute."""
    name, function = site.attribute.ref, site.function
    if not name:
        return
    if function is None:
        yield Problem(
            f"the attribute refers to {quote(name)}, but only a function's body may refer to attributes",
            site.where,
        )
    elif name not in function.attributes:
        yield Problem(
            f"the attribute refers to {quote(name)}, which {function_label(function)} does not declare",
            site.where,
        )


@rule(
    "NODE007",
    "An implementation must support all operators in the set or reject the model.",
    source="ir.txt",
    over="calls",
    severity="warning",
    note="only the owner of a custom domain can check its operators",
    bad='<ir_version: 8, opset_import: ["" : 17, "custom" : 1]>\n'
    "g (float[N] x) => (float[N] y) { y = custom.Thing(x) }",
    good=_IMPORTS_D + "g (float[N] x) => (float[N] y) { y = d.f(x) }" + _F,
)
def known_domain(site: GraphSite) -> Iterator[Problem]:
    """A node calls an operator of a known domain, or a function.

    The body of a function may be in the model or in the document of an operator set. What the body of a
    document calls is known too.
    """
    for index, node in _unknown_calls(site):
        if site.scope.knows(node):
            continue
        declaration = site.scope.declaration(node)
        if declaration is None:
            message = f"{quote(f'{node.domain}.{node.op}')} cannot be checked: Sabir does not know its domain"
        else:
            message = f"{declaration} cannot be checked: its operator set document has no body for it"
        yield Problem(message, site.at_node(index))
    registry = site.scope.registry
    for callee, places in site.calls.items() if registry.operator_sets else ():
        if isinstance(callee, Function) and registry.is_documented(callee):
            error = _unknown_inside(callee, site.scope)
            shown = site.scope.declaration(site.nodes[places[0]]) or function_label(callee)
            for index in places if error else ():
                yield Problem(f"{shown} cannot be checked: in its body, {error}", site.at_node(index))


@rule(
    "NODE008",
    "Each node represents a call to an operator or a model local function.",
    source="ir.txt",
    over="calls",
    bad=_IMPORTS_D + "g (float[N] x) => (float[N] y) { y = d.f:fast(x) }" + _F,
    good=_IMPORTS_D + "g (float[N] x) => (float[N] y) { y = d.f(x) }" + _F,
)
def known_overload(site: GraphSite) -> Iterator[Problem]:
    """The model defines the overload that a call names."""
    for index, node in _unknown_calls(site):
        others = site.scope.overloads(node)
        if others:
            yield Problem(
                f"{quote(f'{node.domain}.{node.op}')} has no overload {quote(node.overload)}",
                site.at_node(index),
                "omit the overload"
                if others == [""]
                else f"its overloads are {', '.join(map(quote, others))}",
            )


@rule(
    "NODE009",
    "Each node represents a call to an operator or a model local function.",
    source="ir.txt",
    over="calls",
    bad=around('node { input: "x" output: "y" }'),
    good=GOOD,
)
def has_an_operator(site: GraphSite) -> Iterator[Problem]:
    """A node names an operator."""
    for index, node in enumerate(site.nodes):
        if not node.op:
            yield Problem(
                "the node has no op_type", site.at_node(index), "name an operator, or drop the node"
            )


@rule(
    "NODE010",
    "Each node has zero or more inputs and one or more outputs.",
    source="ir.txt",
    over="graph",
    severity="warning",
    note="a node without outputs can be dropped",
    bad=in_graph(
        f'name: "g" {X} {Y} node {{ op_type: "Relu" input: "x" output: "y" }}'
        ' node { op_type: "Split" input: "x" output: "" }'
    ),
    good=GOOD,
)
def has_outputs(site: GraphSite) -> Iterator[Problem]:
    """A node names at least one output."""
    for index, node in enumerate(site.nodes):
        if node.outputs.count(None) == len(node.outputs):
            yield Problem(
                "the node names no output", site.at_node(index), "drop the node: nothing can use its results"
            )


@rule(
    "NODE011",
    "The 'status' property indicates whether the syntax, semantics, or presence of the operator is in an"
    " experimental or stable stage.",
    source="ir.txt",
    over="calls",
    severity="warning",
    bad='<ir_version: 3, opset_import: ["" : 1]>\ng (float[1,1,2,2] x) => (float[1,1,4,4] y)'
    " { y = Upsample<height_scale = 2.0, width_scale = 2.0>(x) }",
    good='<ir_version: 3, opset_import: ["" : 7]>\ng (float[1,1,2,2] x) => (float[1,1,4,4] y)'
    " { y = Upsample<scales = [1.0, 1.0, 2.0, 2.0]>(x) }",
)
def stable(site: GraphSite) -> Iterator[Problem]:
    """No node calls an experimental operator, whose meaning may change in the next release."""
    for callee, places in site.calls.items():
        for index in places:
            name = _experimental(callee, site, site.nodes[index])
            if name is None:
                break
            message = f"{name} is experimental: its meaning may change without a new version"
            yield Problem(message, site.at_node(index), "use a stable operator")


def _experimental(callee: object, site: GraphSite, node: Node) -> str | None:
    """Return the name of the operator that a node calls, if it is experimental."""
    if isinstance(callee, Version):
        return str(callee) if callee.status == "experimental" else None
    declaration = site.scope.declaration(node)
    is_experimental = declaration is not None and declaration.entry.status == "experimental"
    return str(declaration) if is_experimental else None


@rule(
    "NODE012",
    "Must be unique among attributes, inputs, and outputs for any given operator and node.",
    source="ir.txt",
    over="graph",
    severity="warning",
    group="style",
    note="attributes and values have separate namespaces elsewhere; only a reader may confuse them",
    bad=(
        HEAD + "g (float[N] axis) => (float[N] y) { y = Softmax<axis = 0>(axis) }",
        HEAD + "g (float[N] x) => (float[N] axis) { axis = Softmax<axis = 0>(x) }",
    ),
    good=HEAD + "g (float[N] x) => (float[N] y) { y = Softmax<axis = 0>(x) }",
)
def attributes_unlike_values(site: GraphSite) -> Iterator[Problem]:
    """No attribute of a node has the name of an operand or result of it."""
    for index in site.attributed:
        node = site.nodes[index]
        values = {v.name for v in (*site.reads[index], *node.outputs) if v is not None}
        for name in node.attributes:
            if name and name in values:
                where = site.at_node(index).at("attribute", name=name)
                message = f"{quote(name)} names both an attribute and a value of the node"
                yield Problem(message, where, "rename the value")


@rule(
    "NODE019",
    "A runtime executes the operators of the standard; those of another publisher only if it has them.",
    source="practice",
    over="model",
    severity="warning",
    note="the model is valid: it needs a runtime that has these operators, as onnxruntime and Sabir do",
    bad='<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
    "g (float[N] x) => (float[N] y) { y = com.microsoft.QuickGelu(x) }",
    good=GOOD,
)
def calls_the_standard(survey: Survey) -> Iterator[Problem]:
    """No operator of onnxruntime is called, in its own domain or in one of the standard."""
    counts: dict[str, int] = {}
    first: Location | None = None
    for site in survey.graphs:
        for callee, places in site.calls.items():
            if isinstance(callee, Version) and callee.is_added:
                label = f"{callee.operator.domain or 'ai.onnx'}.{callee.operator.name}"
                counts[label] = counts.get(label, 0) + len(places)
                first = first or site.at_node(places[0])
    if first is not None:
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
        message = f"calls operators that onnxruntime adds to the standard: {listed}"
        yield Problem(message, first, "`sabir convert --standard-only` writes them in standard operators")


def _unknown_inside(function: Function, scope: Scope) -> str:
    """Return what is wrong with the first call of something unknown in a function's body, or ""."""
    seen, waiting = {function}, [(function, scope)]  # no recursion: a file chooses the depth of the calls
    while waiting:
        function, scope = waiting.pop()
        inner = scope.of_body(function)
        callees: list[tuple[Function, Scope]] = []
        for node in function.graph.all_nodes():
            try:
                callee = inner.callee(node)
            except SchemaError as error:
                return str(error)
            if isinstance(callee, Function) and callee not in seen:
                seen.add(callee)
                callees.append((callee, inner))
        waiting += reversed(callees)
    return ""
