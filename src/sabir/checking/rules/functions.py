"""Functions of a model: unique, not recursive, and with the same operator versions as the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._examples import in_model
from sabir.checking._rule import Problem, Textproto, rule
from sabir.checking._survey import lacks_name
from sabir.ir import Function, canonical_domain, find_opset
from sabir.proto import FunctionProto
from sabir.schema import Version, function_label, implicit_imports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.checking._survey import FunctionSite, GraphSite, Survey

_MAIN = '<ir_version: 10, opset_import: ["" : 17, "d" : 1]>\ng (float[N] x) => (float[N] y) { y = d.f(x) }\n'
_F = '<domain: "d", opset_import: ["" : 17]>\nf (a) => (b) { b = Relu(a) }\n'
_GOOD = _MAIN + _F
_DEEPEST, _MOST = 100, 10_000


def _with_function(fields: str) -> Textproto:
    """Return an example whose main graph calls the function with these fields."""
    main = (
        'graph { name: "g" input { name: "x" type { tensor_type { elem_type: 1 shape { dim {'
        ' dim_param: "N" } }'
        ' } } } output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_param: "N" } } } } }'
        ' node { op_type: "f" domain: "d" input: "x" output: "y" } }'
    )
    body = 'node { op_type: "Relu" input: "a" output: "b" } opset_import { version: 17 }'
    return in_model(
        f'opset_import {{ domain: "d" version: 1 }} {main} functions {{ {fields} {body} }}', ir_version=10
    )


@rule(
    "FUNC001",
    "The names of operators within a domain.",
    source="ir.txt",
    over="model",
    bad=_MAIN + _F + _F,
    good=_GOOD + '<domain: "d", overload: "fast", opset_import: ["" : 17]>\nf (a) => (b) { b = Relu(a) }\n',
)
def defined_once(survey: Survey) -> Iterator[Problem]:
    """No two functions have the same domain, name and overload."""
    seen: set[tuple[str, str, str]] = set()
    for site in survey.functions:
        if site.function.key in seen:
            label = function_label(site.function)
            yield Problem(f"{label} is defined twice", site.where, "rename one, or give it an overload")
        seen.add(site.function.key)


@rule(
    "FUNC002",
    "A function is an operator whose semantics is formally expressed via expansion into a sub-graph (called"
    " the function body) using other operators (and functions).",
    source="ir.txt",
    over="function",
    bad=Textproto(
        'ir_version: 8 opset_import { version: 17 } graph { name: "g" } functions { domain: "d"'
        " opset_import {"
        " version: 17 } }"
    ),
    good=_GOOD,
)
def named(site: FunctionSite) -> Iterator[Problem]:
    """A function has a name and a domain."""
    function = site.function
    missing = "name" if not function.name else "domain" if not function.domain else ""
    if missing:
        hint = "set it: calls refer to a function by domain and name"
        yield Problem(f"the function has no {missing}", site.where, hint)


def _callees(site: FunctionSite) -> dict[Function, None]:
    return {c: None for inner in site.body.with_subgraphs() for c in inner.calls if isinstance(c, Function)}


@rule(
    "FUNC003",
    "Recursion is not allowed among the functions of a model.",
    source="functions",
    over="model",
    bad=(
        _MAIN + '<domain: "d", opset_import: ["" : 17, "d" : 1]>\nf (a) => (b) { b = d.f(a) }\n',
        _MAIN
        + '<domain: "d", opset_import: ["" : 17, "d" : 1]>\nf (a) => (b) { b = d.g(a) }\n'
        + '<domain: "d", opset_import: ["" : 17, "d" : 1]>\ng (a) => (b) { b = d.f(a) }\n',
    ),
    good=_GOOD,
)
def not_recursive(survey: Survey) -> Iterator[Problem]:
    """No function calls itself, directly, through other functions or in subgraphs."""
    sites = {site.function: site for site in survey.functions}
    calls = {function: list(_callees(site)) for function, site in sites.items()}
    for function in _in_cycles(calls):
        yield Problem(
            f"{function_label(function)} calls itself, possibly through other functions",
            sites[function].where,
            "remove the recursion",
        )


def _in_cycles(calls: dict[Function, list[Function]]) -> list[Function]:
    """Return the functions in cycles of calls: Tarjan's strongly connected components."""
    order: dict[Function, int] = {}
    low: dict[Function, int] = {}
    open_, found = list[Function](), list[Function]()
    for root, callees in calls.items():
        if root in order:
            continue
        path = [(root, iter(callees))]
        order[root] = low[root] = len(order)
        open_.append(root)
        while path:
            function, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[function])
                if low[function] == order[function]:
                    start = open_.index(function)
                    component = open_[start:]
                    del open_[start:]
                    if len(component) > 1 or function in calls.get(function, ()):
                        found += component
            elif following not in order:
                order[following] = low[following] = len(order)
                open_.append(following)
                path.append((following, iter(calls.get(following, ()))))
            elif following in open_:
                low[function] = min(low[function], order[following])
    return found


@rule(
    "FUNC004",
    "The names of values - node inputs & outputs, tensor values (if named), graph inputs, outputs.",
    source="ir.txt",
    over="function",
    bad=(
        _with_function('name: "f" domain: "d" input: "a" output: "b" output: "b"'),
        _with_function('name: "f" domain: "d" input: "a" output: "b" attribute: "k" attribute: "k"'),
    ),
    good=_GOOD,
)
def ports_once(site: FunctionSite) -> Iterator[Problem]:
    """A function lists each output and attribute once; GRAPH004 covers its inputs."""
    function, residue = site.function, site.function.residue
    seen: set[str] = set()
    for index, value in enumerate(function.graph.outputs):
        name = value.name if value is not None else ""
        if name and name in seen:
            where = site.where.at("output", index=index, name=name)
            yield Problem(f"the output {quote(name)} is listed twice", where, "list it once")
        seen.add(name)
    if residue is not None and residue.wire:
        again = FunctionProto.FromString(residue.wire)
        for name in dict.fromkeys(again.attribute):
            if function.attributes.get(name) is not None or name not in function.attributes:
                continue
            where = site.where.at("attribute", name=name)
            yield Problem(f"the attribute {quote(name)} is listed twice", where, "list it once")


@rule(
    "FUNC005",
    "The names in `attribute` and those of `attribute_proto` are disjoint.",
    source="functions",
    over="function",
    bad=_with_function(
        'name: "f" domain: "d" input: "a" output: "b" attribute: "k" attribute_proto { name: "k"'
        " type: INT i: 1 }"
    ),
    good=_with_function(
        'name: "f" domain: "d" input: "a" output: "b" attribute: "j" attribute_proto { name: "k"'
        " type: INT i: 1 }"
    ),
)
def default_or_none(site: FunctionSite) -> Iterator[Problem]:
    """An attribute is declared with a default or without one, not both."""
    function, residue = site.function, site.function.residue
    if residue is None or not residue.wire:
        return
    again = FunctionProto.FromString(residue.wire)
    for name in dict.fromkeys([*again.attribute, *(a.name for a in again.attribute_proto)]):
        if function.attributes.get(name) is not None:
            where = site.where.at("attribute", name=name)
            yield Problem(f"the attribute {quote(name)} is declared twice", where, "keep one of the two")


@rule(
    "FUNC006",
    "The operator sets that a function imports must be compatible with the model's.",
    source="functions",
    over="function",
    bad=_MAIN.replace("17", "12")
    + '<domain: "d", opset_import: ["" : 13]>\nf (a) => (b) { b = Softmax<axis = 0>(a) }\n',
    good=_MAIN.replace("17", "14")
    + '<domain: "d", opset_import: ["" : 13]>\nf (a) => (b) { b = Softmax<axis = 0>(a) }\n',
)
def same_operators(site: FunctionSite) -> Iterator[Problem]:
    """The imports of a function and of the model select the same versions of operators and documents."""
    reported: set[str] = set()
    for inner in site.body.with_subgraphs():
        for callee, (index, *_) in inner.calls.items():
            node = inner.nodes[index]
            domain = canonical_domain(node.domain)
            called = callee if isinstance(callee, Version) else inner.scope.declaration(node)
            opset = find_opset(site.model.opsets, domain)
            if called is None or opset is None or str(called) in reported:
                continue
            outside = inner.scope.registry.in_force(domain, node.op, opset)
            if outside is None or outside.since != called.since:
                reported.add(str(called))
                other = f"the model's opset {opset} has {outside or 'no such operator'}"
                yield Problem(
                    f"the function imports {called}; {other}",
                    inner.at_node(index),
                    f"import the same version of {domain or 'ai.onnx'} in both",
                )


@rule(
    "FUNC007",
    "Each operator used within a graph MUST be explicitly declared by one of the operator sets"
    " imported by the"
    " model.",
    source="ir.txt",
    over="function",
    severity="warning",
    note="such a call means the function, but a reader expects the operator",
    bad='<ir_version: 10, opset_import: ["" : 17]>\ng (float[N] x) => (float[N] y) { y = Relu(x) }\n'
    '<domain: "ai.onnx", opset_import: ["" : 17]>\nRelu (a) => (b) { b = Neg(a) }\n',
    good=_GOOD,
)
def no_standard_names(survey_site: FunctionSite) -> Iterator[Problem]:
    """No function has the name of an operator of the standard."""
    function = survey_site.function
    registry = survey_site.body.scope.registry
    domain = canonical_domain(function.domain)
    if function.name and registry.find(domain, function.name) is not None:
        message = f"{function_label(function)} hides an operator of the standard"
        yield Problem(message, survey_site.where, "rename it, or move it to another domain")


@rule(
    "FUNC008",
    "Functions call one another at most 100 deep, and a model has at most 10 000 of them.",
    source="practice",
    over="model",
    bad='<ir_version: 10, opset_import: ["" : 17, "d" : 1]>\ng (float[N] x) => (float[N] y) { y = d.f0(x) }\n'
    + "".join(
        f'<domain: "d", opset_import: ["" : 17, "d" : 1]>\nf{i} (a) => (b) {{ b = d.f{i + 1}(a) }}\n'
        for i in range(_DEEPEST)
    )
    + f'<domain: "d", opset_import: ["" : 17]>\nf{_DEEPEST} (a) => (b) {{ b = Relu(a) }}\n',
    good=_GOOD,
)
def not_too_deep(survey: Survey) -> Iterator[Problem]:
    """Calls of functions are nested at most 100 deep, in at most 10 000 functions."""
    if len(survey.functions) > _MOST:
        message = f"the model has {len(survey.functions)} functions"
        yield Problem(message, survey.functions[0].where, f"at most {_MOST} are supported")
    depths: dict[Function, int] = {}
    sites = {site.function: site for site in survey.functions}
    calls = {function: list(_callees(site)) for function, site in sites.items()}
    if _in_cycles(calls):
        return  # FUNC003 reports it; a cycle has no depth
    for function in calls:
        _depth(function, calls, depths)
    deep = [f for f, depth in depths.items() if depth > _DEEPEST]
    if deep:
        message = f"calls from {function_label(deep[-1])} are nested {depths[deep[-1]]} deep"
        yield Problem(message, sites[deep[-1]].where, f"at most {_DEEPEST} are supported; inline some")


def _depth(root: Function, calls: dict[Function, list[Function]], depths: dict[Function, int]) -> None:
    """Compute the depth of calls from a function, without recursion: a chain may have ten thousand."""
    pending = [root]
    while pending:
        function = pending[-1]
        unknown = [f for f in calls.get(function, ()) if f not in depths]
        if unknown and function not in depths:
            pending += unknown
            continue
        pending.pop()
        depths[function] = 1 + max((depths[f] for f in calls.get(function, ())), default=0)


@rule(
    "FUNC009",
    "The names of values - node inputs & outputs, tensor values (if named), graph inputs, outputs.",
    source="ir.txt",
    over="function",
    bad=(
        _with_function('name: "f" domain: "d" input: "a" input: "" output: "b"'),
        _with_function('name: "f" domain: "d" input: "a" output: "b" output: ""'),
        _with_function('name: "f" domain: "d" input: "a" output: "b" attribute: ""'),
    ),
    good=_GOOD,
)
def named_ports(site: FunctionSite) -> Iterator[Problem]:
    """An input, output or attribute of a function has a name."""
    function = site.function
    for kind, values in (("input", function.graph.inputs), ("output", function.graph.outputs)):
        for index, value in enumerate(values):
            if lacks_name(value):
                yield Problem(f"the {kind} has no name", site.where.at(kind, index=index), "name it")
    if "" in function.attributes and function.attributes[""] is None:  # ATTR001 covers defaults
        yield Problem(
            "an attribute of the function has no name",
            site.where.at("attribute"),
            "name it, or drop the attribute",
        )


_USES_K = (
    '<domain: "d", opset_import: ["" : 17]>\nf {declared} (a) => (b) {{ b = Softmax<axis: int = @k>(a) }}\n'
)


@rule(
    "FUNC010",
    "The number of inputs and outputs in a node, their types, the set of attributes specified in a node and"
    " their types MUST satisfy the constraints imposed by the signature of the node's operator.",
    source="ir.txt",
    over="model",
    bad=(
        _MAIN.replace("f(x)", "f<k = 0.5>(x)") + _USES_K.format(declared="<k>"),
        _MAIN.replace("f(x)", 'f<k = "0">(x)') + _USES_K.format(declared="<k: int = 0>"),
        _MAIN + _USES_K.format(declared="<k: float = 0.5>"),
    ),
    good=(
        _MAIN.replace("f(x)", "f<k = 0>(x)") + _USES_K.format(declared="<k>"),
        _MAIN + _USES_K.format(declared="<k: int = 0>"),
    ),
)
def attributes_of_one_type(survey: Survey) -> Iterator[Problem]:
    """An attribute of a function has one type: in its default, in references and in calls."""
    types: dict[tuple[Function, str], str] = {}
    for site in survey.functions:
        for name, default in site.function.attributes.items():
            if default is not None and default.type != "undefined":
                types[site.function, name] = default.type
    for first, *_ in survey.attributes:
        function, attribute = first.function, first.attribute
        if attribute.ref and function is not None and attribute.type != "undefined":
            declared = types.setdefault((function, attribute.ref), attribute.type)
            if declared != attribute.type:
                message = f"{attribute.type} refers to {quote(attribute.ref)} of type {declared}"
                yield Problem(f"the attribute of type {message}", first.where, "both must have the same type")
    for site in survey.graphs:
        for callee, places in site.calls.items():
            if isinstance(callee, Function) and callee.attributes:
                yield from _of_other_types(site, callee, places, types)


def _of_other_types(
    site: GraphSite, callee: Function, places: Iterable[int], types: dict[tuple[Function, str], str]
) -> Iterator[Problem]:
    for index in places:
        for name, attribute in site.nodes[index].attributes.items():
            declared = types.get((callee, name), attribute.type)
            if attribute.type not in {declared, "undefined"}:
                where = site.at_node(index).at("attribute", name=name)
                yield Problem(
                    f"{function_label(callee)} takes {quote(name)} as {declared}, not {attribute.type}", where
                )


@rule(
    "FUNC011",
    "Must be unique among attributes, inputs, and outputs for any given operator and node.",
    source="ir.txt",
    over="function",
    severity="warning",
    note="attributes and values have separate namespaces elsewhere; only a reader may confuse them",
    bad=_MAIN.replace("f(x)", "f<a = 0>(x)")
    + '<domain: "d", opset_import: ["" : 17]>\nf <a> (a) => (b) { b = Relu(a) }\n',
    good=_MAIN.replace("f(x)", "f<k = 0>(x)")
    + '<domain: "d", opset_import: ["" : 17]>\nf <k> (a) => (b) { b = Relu(a) }\n',
)
def attributes_apart(site: FunctionSite) -> Iterator[Problem]:
    """No attribute of a function has the name of an input or output of it."""
    graph = site.function.graph
    names = {v.name for v in (*graph.inputs, *graph.outputs) if v is not None and v.name}
    for name in site.function.attributes:
        if name in names:
            where = site.where.at("attribute", name=name)
            yield Problem(
                f"{quote(name)} is also the name of an input or output", where, "rename one of the two"
            )


@rule(
    "FUNC013",
    "A function imports the operator sets of its nodes: readers look for operators in the imports of the"
    " function, and not in those of the model.",
    source="practice",
    over="model",
    since=8,
    bad=_MAIN + _F.replace('"" : 17', ""),
    good=_GOOD,
)
def imports_what_it_calls(survey: Survey) -> Iterator[Problem]:
    """A function that calls operators of the default domain imports it."""
    for function, node, version in implicit_imports(survey.model):
        if function is not None:
            site = survey.functions[function]
            what = f"{function_label(site.function)} calls {quote(node.op)}"
            message = f"{what} and does not import the default domain"
            yield Problem(message, site.where, f'add the opset_import "" : {version}, which the model has')
