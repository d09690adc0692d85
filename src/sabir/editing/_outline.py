"""Nodes that become a call of a new function: the inverse of inlining."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, quote, run_with_limits
from sabir.editing._finding import Finder, described
from sabir.editing._tracing import reads, trace
from sabir.ir import (
    VALUE_INFO,
    FreshNames,
    Function,
    Graph,
    Node,
    Value,
    canonical_domain,
    check_is_model,
    clone_node,
    features_of_function,
    find_opset,
)
from sabir.opsets import STANDARD
from sabir.rewriting import InsertionPoint, erase_node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.base import Limits
    from sabir.ir import Model
    from sabir.schema import Registry


def outline(
    model: Model,
    nodes: Iterable[str | Node],
    name: str,
    *,
    domain: str = "local",
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Model:
    """Return a copy of a model in which nodes are a call of a new function, whose body they become.

    `nodes` are nodes of one graph, or their names; the name of a value means the node that computes it. What
    they read of others, initializers too, become the inputs of the function, and what others read of them its
    outputs. The nodes keep their attributes. `sabir.inline` replaces the call by the nodes again.

    Raises NotFoundError, a KeyError, for a node that the model does not have; UnsupportedError where a path
    leads from the nodes through another node back to them, with the path, where nothing reads what they
    compute, where a function or operator has the name, and where the IR version of the model has no
    functions; LimitError beyond `limits`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { t = Neg (x)  u = Relu (t)  y = Add (u, x) }''')
    >>> changed = sabir.outline(model, ['t', 'u'], 'Block')
    >>> [node.op for node in changed.graph], [node.op for node in changed.functions[0].graph]
    (['Block', 'Add'], ['Neg', 'Relu'])
    """
    check_is_model(model)
    return run_with_limits(limits, lambda: _outlined(model, nodes, name, domain, registry))


def _outlined(model: Model, nodes: Iterable[str | Node], name: str, domain: str, registry: Registry) -> Model:
    finder = Finder(model)
    wanted = {finder.node(one) for one in ([nodes] if isinstance(nodes, (str, Node)) else nodes)}
    _require_free(model, name, domain, registry)
    copy = model.clone()
    copies = zip(model.graph.all_nodes(), copy.graph.all_nodes(), strict=True)
    body = _Body(copy, [new for old, new in copies if old in wanted])
    function = body.function(name, domain)
    copy.functions.append(function)
    if find_opset(copy.opsets, domain) is None:
        copy.opsets[domain] = 1
    body.replace_by(function)
    return copy


def _require_free(model: Model, name: str, domain: str, registry: Registry) -> None:
    """Raise UnsupportedError where the model cannot have a function of this name."""
    label = quote(f"{domain}.{name}" if domain else name)
    if not name:
        raise UnsupportedError("a function needs a name")
    if (canonical_domain(domain), name, "") in model.functions_by_key():
        raise UnsupportedError(f"the model has a function {label} already; choose another name")
    if registry.find_version(domain, name, model.opset(domain)) is not None:
        raise UnsupportedError(f"{label} is an operator; choose another name or domain")
    needed = max(feature.since for feature in features_of_function(Function(name, domain)))
    if model.ir_version < needed:
        raise UnsupportedError(
            f"functions need IR version {needed}, and the model has {model.ir_version}; "
            f"`sabir.convert(model, ir_version={needed})` changes it"
        )


class _Body:
    """The nodes of a model that become the body of a function, with what they read and compute for others."""

    def __init__(self, model: Model, nodes: Sequence[Node]) -> None:
        self._model = model
        self._graph = _graph_of(nodes)
        chosen = set(nodes)
        self._nodes = [node for node in self._graph.sorted_nodes() if node in chosen]
        self._inside = {scope for node in nodes for inner in node.graphs for scope in inner.scopes()}
        self._inputs = list(
            dict.fromkeys(v for node in self._nodes for v in reads(node) if v.node not in chosen)
        )
        self._chosen = chosen
        self._require_no_detour()
        self._referred = set(model.training_reads())
        for annotation in self._graph.annotations:
            self._referred.update((annotation.value, *(value for _, value in annotation.parameters)))
        self._outputs = [
            v for node in self._nodes for v in node.outputs if v is not None and self._is_read(v)
        ]
        if not self._outputs:
            raise UnsupportedError("nothing reads what these nodes compute, so a function has no outputs")

    def function(self, name: str, domain: str) -> Function:
        """Return the function, with copies of the nodes."""
        taken = FreshNames(
            v.name for node in self._nodes for v in (*node.outputs, *_defined_inside(node)) if v is not None
        )
        copies: dict[Value, Value | None] = {
            value: Value(taken.fresh(value.name), value.type) for value in self._inputs
        }
        graph = Graph(name, [new for new in copies.values() if new is not None])
        for node in self._nodes:
            graph.append(clone_node(node, copies))
        graph.outputs = [copies[value] for value in self._outputs]
        if self._model.ir_version < VALUE_INFO.since:
            for value in graph.defined():
                value.type = None
        domains = dict.fromkeys(canonical_domain(node.domain) for node in graph.all_nodes())
        versions = {domain: self._model.opset(domain) for domain in domains}
        opsets = {domain: version for domain, version in versions.items() if version is not None}
        return Function(name, domain, graph=graph, opsets=opsets)

    def replace_by(self, function: Function) -> None:
        """Let a call of the function compute what the nodes compute, and erase them."""
        graph, outputs = self._graph, self._outputs
        names = FreshNames(node.name for node in graph.all_nodes())
        point = InsertionPoint.after(self._nodes[-1])
        for node in self._nodes:
            node.outputs = ()
        call = Node(
            function.name, self._inputs, outputs, domain=function.domain, name=names.fresh(function.name)
        )
        point.insert(call)
        for node in self._nodes:
            erase_node(node)
        graph.clashes = {value: name for value, name in graph.clashes.items() if value.source is not None}
        graph.sort()

    def _is_read(self, value: Value) -> bool:
        """Return whether anything but the nodes refers to a value."""
        return value in self._referred or any(not self._is_inside(use.user) for use in value.uses)

    def _is_inside(self, user: Node | Graph) -> bool:
        if isinstance(user, Graph):
            return user in self._inside
        return user in self._chosen or user.graph in self._inside

    def _require_no_detour(self) -> None:
        """Raise UnsupportedError where the nodes read what depends on them through another node."""
        own = {v for node in self._nodes for v in node.outputs if v is not None}
        found = trace(self._graph, self._inputs, cuts=own)
        detour = next(iter(found.cuts), None)
        if detour is not None:
            raise UnsupportedError(
                f"the nodes read a value that another node computes from theirs: {found.path(detour)}; "
                "add the nodes of this path"
            )


def _graph_of(nodes: Sequence[Node]) -> Graph:
    """Return the graph of nodes; raises UnsupportedError for nodes of several graphs, and for none."""
    graphs = list(dict.fromkeys(node.graph for node in nodes if node.graph is not None))
    if not graphs:
        raise UnsupportedError("there are no nodes to make a function of")
    if len(graphs) > 1:
        where = " and ".join(map(described, graphs[:2]))
        raise UnsupportedError(f"the nodes are in {where}; a function is made of nodes of one graph")
    return graphs[0]


def _defined_inside(node: Node) -> Iterable[Value]:
    return (v for inner in node.graphs for scope in inner.scopes() for v in scope.defined())
