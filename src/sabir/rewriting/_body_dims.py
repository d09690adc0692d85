"""Dimension variables of function bodies: each call of the function has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import (
    Expr,
    FreshNames,
    TensorType,
    Value,
    attribute_with_dims,
    dim_variables,
    known_equal,
    layout_with_dims,
    symbol,
    with_dims,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sabir.ir import Attribute, Dim, Graph, Node, Type

    Sizes = Mapping[str, Dim]

_TYPES = ("type", "types")


class BodyDimensions:
    """Chooses what the dimension variables of a function's body become in each call of it.

    `graphs` are those whose variables stay; no variable of a body becomes one of them by accident.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> body = sabir.syntax.parse_graph('b (float[N] a) => (float[M,N] b) { b = Expand (a, a) }')
    >>> sizes = BodyDimensions([model.graph]).of_call(body, [sabir.ir.tensor_type('float', [3])])
    >>> {name: str(size) for name, size in sizes.items()}
    {'M': 'M', 'N': '3'}
    """

    def __init__(self, graphs: Iterable[Graph]) -> None:
        self._graphs = graphs
        self._variables: dict[Graph, frozenset[str]] = {}
        self._names: FreshNames | None = None

    def of_call(self, body: Graph, operands: Sequence[Type | None]) -> Sizes:
        """Return the dimensions that replace the variables of a body in one call.

        A variable that is a dimension of an input is that dimension of the operand, where its type states
        one and all inputs with the variable agree; any other variable has a fresh name.
        """
        variables = self._variables.get(body)
        if variables is None:
            variables = self._variables[body] = frozenset(_variables(body))
        if not variables:
            return {}
        bound = _bound(body, operands)
        return {v: bound.get(v) or symbol(self._fresh(v)) for v in sorted(variables)}

    def _fresh(self, name: str) -> str:
        if self._names is None:
            self._names = FreshNames(v for root in self._graphs for v in _variables(root))
        return self._names.fresh(name)


def replace_dims(graph: Graph, sizes: Sizes) -> None:
    """Replace dimension variables in all that a graph and those inside it declare."""
    for inner in graph.scopes() if sizes else ():
        _replace_declared(inner, sizes)
        for node in inner:
            _replace_of_node(node, node, sizes)


def _replace_of_node(node: Node, original: Node, sizes: Sizes) -> None:
    change = _change(sizes)
    for value in node.outputs:
        _replace_type(value, change)
    if node.devices:
        node.devices = tuple(layout_with_dims(device, change) for device in node.devices)
    for name, attribute in original.attributes.items():
        changed = attribute_with_dims(attribute, change)
        if changed is not attribute:
            node.attributes[name] = changed


def replace_dims_inside(copy: Node, original: Node, sizes: Sizes) -> None:
    """Replace dimension variables in a copy of a node, and in those subgraphs that the original has too.

    A subgraph that a caller of the function passes as an attribute keeps the caller's variables.
    """
    if not sizes:
        return
    for one, other in paired(copy, original):
        _replace_of_node(one, other, sizes)
        for graph, _ in paired_graphs(one, other):
            _replace_declared(graph, sizes)


def paired(copy: Node, original: Node) -> Iterable[tuple[Node, Node]]:
    """Yield a copy and those inside it, each with the node that it is a copy of.

    >>> node = sabir.ir.Node('Relu')
    >>> copy = sabir.ir.clone_node(node)
    >>> list(paired(copy, node)) == [(copy, node)]
    True
    """
    pending = [(copy, original)]
    while pending:
        one, other = pending.pop()
        yield one, other
        for inner, known in paired_graphs(one, other):
            pending += zip(inner, known, strict=False)


def paired_graphs(copy: Node, original: Node) -> Iterator[tuple[Graph, Graph]]:
    """Yield the subgraphs of a copy with those that they are copies of; one that a call passes has none."""
    for name, attribute in original.attributes.items():
        if attribute.graphs and name in copy.attributes:
            yield from zip(copy.attributes[name].graphs, attribute.graphs, strict=False)


def _variables(root: Graph) -> Iterator[str]:
    """Yield the dimension variables that a graph and those inside it declare, with repetitions."""
    known: dict[Type, frozenset[str]] = {}
    for graph in root.scopes():
        attributes = (a for node in graph for a in node.attributes.values() if a.type in _TYPES)
        types = (v.type for v in _declared(graph))
        for kind in (*types, *(t for a in attributes for t in _types_in(a))):
            if kind is not None:
                found = known.get(kind)
                if found is None:
                    found = known[kind] = dim_variables(kind)
                yield from found


def _declared(graph: Graph) -> Iterator[Value]:
    yield from graph.defined()
    yield from graph.orphan_value_info
    yield from (info for _, info in graph.output_infos.values())


def _types_in(attribute: Attribute) -> tuple[Type, ...]:
    if attribute.ref or attribute.value is None:
        return ()
    return (attribute.value,) if attribute.type == "type" else attribute.value


def _bound(body: Graph, operands: Sequence[Type | None]) -> dict[str, Dim]:
    """Return the variables that are dimensions of inputs, with those of the operands, None if they differ."""
    found: dict[str, Dim] = {}
    for value, operand in zip(body.inputs, operands, strict=False):
        declared = value.type
        if not isinstance(declared, TensorType) or not isinstance(operand, TensorType):
            continue
        if declared.shape is None or operand.shape is None or len(declared.shape) != len(operand.shape):
            continue
        for dim, actual in zip(declared.shape, operand.shape, strict=True):
            if isinstance(dim, Expr) and len(dim.symbols) == 1 and dim == symbol(next(iter(dim.symbols))):
                name = next(iter(dim.symbols))
                agrees = name not in found or known_equal(found[name], actual) is True
                found[name] = actual if agrees else None
    return found


def _replace_declared(graph: Graph, sizes: Sizes) -> None:
    change = _change(sizes)
    for value in (*graph.inputs, *graph.initializers, *graph.orphan_value_info):
        _replace_type(value, change)
    for _, info in graph.output_infos.values():
        _replace_type(info, change)


def _replace_type(value: Value | None, change: Callable[[Dim], Dim]) -> None:
    if value is not None and value.type is not None:
        value.type = with_dims(value.type, change)


def _change(sizes: Sizes) -> Callable[[Dim], Dim]:
    known = {name: size for name, size in sizes.items() if size is not None}

    def change(dim: Dim) -> Dim:
        if not isinstance(dim, Expr) or not dim.symbols & sizes.keys():
            return dim
        try:
            return dim.substitute(known)
        except (OverflowError, ZeroDivisionError):  # a size beyond what an expression can be
            return None

    return change
