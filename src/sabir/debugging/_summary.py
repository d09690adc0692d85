"""What a model costs: parameters, multiply-adds, activations and memory traffic, by node and by layer."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import Limits, counted, run_with_limits
from sabir.debugging._layers import layer_of
from sabir.inference import Inference, SizedCall, change_model_dims, is_counted, multiply_adds
from sabir.inlining import inline
from sabir.ir import TensorType, Value, add, canonical_domain, ceil_div, check_is_model, mul, product, total
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sabir.ir import Dim, Graph, Model, Node, Type
    from sabir.schema import Registry

_BITS = 8


class Costs(NamedTuple):
    """What a node, a layer or a model costs; a number is a polynomial of dimensions, None where unknown.

    `parameters` is the number of elements of initializers that no earlier node reads. `multiply_adds` counts
    products that are added up. `activations` is the number of bytes of the results, and `memory` that of
    operands and results together: what is read and written if nothing stays in caches.

    >>> Costs(multiply_adds=100, memory=400).intensity
    0.5
    """

    parameters: Dim = 0
    multiply_adds: Dim = 0
    activations: Dim = 0
    memory: Dim = 0

    @property
    def intensity(self) -> float | None:
        """The operations, two for each multiply-add, for each byte; None where a size is symbolic."""
        if not isinstance(self.multiply_adds, int) or not isinstance(self.memory, int) or not self.memory:
            return None
        return 2 * self.multiply_adds / self.memory


@dataclass(frozen=True)
class NodeCosts:
    """One node: its name and operator, the layers around it, the types of its results, and its costs.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[2] x) => (float[2] y) { ["/block/act"] y = Relu (x) }''')
    >>> (node,) = summary(model).nodes
    >>> node.op, node.layer, node.types
    ('Relu', ('block',), ('float[2]',))
    """

    name: str
    op: str
    layer: tuple[str, ...]
    types: tuple[str, ...]
    costs: Costs


@dataclass(frozen=True)
class LayerCosts:
    """One layer: its name with those around it, the number of nodes in it, and what they cost together.

    >>> LayerCosts(('encoder', 'layer.0'), 12, Costs(parameters=7)).costs.parameters
    7
    """

    layer: tuple[str, ...]
    nodes: int
    costs: Costs


@dataclass(frozen=True)
class Summary:
    """What a model costs.

    `uncounted` has the operators outside of the standard whose multiply-adds are not known, by the number of
    their nodes, and `unknown` the names of the nodes with a cost that depends on an unknown size.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[2] x) => (float[2] y) { ["/block/act"] y = Relu (x) }''')
    >>> [(row.layer, row.nodes) for row in summary(model).layers]
    [(('block',), 1)]
    """

    nodes: tuple[NodeCosts, ...]
    total: Costs
    uncounted: dict[str, int]
    unknown: tuple[str, ...]

    def _repr_html_(self) -> str:
        from sabir.drawing import Number, titled_table  # ruff: ignore[import-outside-top-level]  for notebooks alone

        columns = ("layer", *map(Number, ("nodes", "parameters", "multiply-adds", "activations", "memory")))
        rows = [("total", len(self.nodes), self.total)]
        rows += [("/".join(row.layer), row.nodes, row.costs) for row in self.layers]
        shown = (
            (name, Number(f"{count:,}"), *(Number("?" if n is None else str(n)) for n in costs))
            for name, count, costs in rows
        )
        title = f"costs of {counted(len(self.nodes), 'node')}; activations and memory in bytes"
        return titled_table(title, columns, shown)

    @property
    def layers(self) -> tuple[LayerCosts, ...]:
        """The layers, each before those inside it."""
        members: dict[tuple[str, ...], list[Costs]] = {}
        for node in self.nodes:
            for depth in range(1, len(node.layer) + 1):
                members.setdefault(node.layer[:depth], []).append(node.costs)
        return tuple(
            LayerCosts(layer, len(members[layer]), _sum(members[layer])) for layer in _nested(members)
        )


def summary(
    model: Model,
    dims: Mapping[str, int | str | None] | None = None,
    *,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Summary:
    """Return what a model costs, by node and by layer; the model is not changed.

    `dims` sets dimension variables as `set_dims` does; costs are polynomials of those that remain. Functions
    of the model are counted where they are called. The nodes of a subgraph are counted once: a Loop as one
    iteration, an If as both of its branches. Multiply-adds are counted for operators that add up products,
    such as Conv and MatMul; elementwise operators and reductions have none.

    Raises NotFoundError for a dimension that the model does not have, UnsupportedError for an invalid size,
    LimitError beyond `limits`, and what `inline` raises for invalid calls.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1, 2, 3, 4, 5, 6}> { y = MatMul (x, w) }''')
    >>> found = sabir.summary(model).total
    >>> print(found.parameters, found.multiply_adds, found.activations, found.memory)
    6 6*N 8*N 20*N+24
    >>> sabir.summary(model, {'N': 4}).total.multiply_adds
    24
    """
    check_is_model(model)
    changed = change_model_dims(model, dims, registry=registry, limits=limits).model if dims else model
    if changed.functions:
        changed = inline(changed, registry=registry, limits=limits)
    return run_with_limits(limits, lambda: _summarized(changed, registry))


def _summarized(model: Model, registry: Registry) -> Summary:
    inference = Inference(model, registry=registry)
    inference.run()
    counted: set[Value] = set()
    found = [node_costs(node, inference, counted) for node in _nodes(model.graph)]
    uncounted = Counter(_operator(node) for node in _nodes(model.graph) if not is_counted(node))
    unknown = tuple([node.name or node.op for node in found if None in node.costs])
    costs = _sum(node.costs for node in found)
    return Summary(tuple(found), costs, dict(sorted(uncounted.items())), unknown)


def _nodes(graph: Graph) -> Iterator[Node]:
    """Yield the nodes of a graph in topological order, each before those of its subgraphs."""
    for node in graph.sorted_nodes():
        yield node
        for inner in node.graphs:
            yield from _nodes(inner)


def node_costs(node: Node, inference: Inference, counted: set[Value]) -> NodeCosts:
    """Return what a node costs; its parameters are added to `counted`, which has those of earlier nodes.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[2] x) => (float[2] y) { y = Relu (x) }''')
    >>> from sabir.inference import Inference
    >>> node_costs(model.graph[0], Inference(model), set()).op
    'Relu'
    """
    inputs = inference.types_of(node)
    outputs = [None if v is None else inference.type_of(v) for v in node.outputs]
    read = {v: kind for v, kind in zip(node.inputs, inputs, strict=True) if v is not None}
    results = [kind for v, kind in zip(node.outputs, outputs, strict=True) if v is not None]
    parameters = [v for v in read if v.constant is not None and v not in counted]
    counted.update(parameters)
    written = total(map(_bytes, results))
    costs = Costs(
        total(product(v.constant.shape) for v in parameters if v.constant is not None),
        multiply_adds(SizedCall.of(node, inputs, outputs)),
        written,
        add(written, total(map(_bytes, read.values()))),
    )
    return NodeCosts(node.name, _operator(node), layer_of(node), tuple(map(_type_text, results)), costs)


def _operator(node: Node) -> str:
    domain = canonical_domain(node.domain)
    return f"{domain}.{node.op}" if domain else node.op


def _type_text(kind: Type | None) -> str:
    return "?" if kind is None else str(kind)


def _bytes(kind: Type | None) -> Dim:
    """Return the number of bytes of a tensor; None for other types and for texts."""
    if not isinstance(kind, TensorType) or kind.shape is None or not kind.element.bits:
        return None
    elements, bits = product(kind.shape), kind.element.bits
    return mul(elements, bits // _BITS) if bits % _BITS == 0 else ceil_div(mul(elements, bits), _BITS)


def _sum(costs: Iterable[Costs]) -> Costs:
    """Return the sums; what is unknown of a node is left out, as `Summary.unknown` names the node."""
    known = [[0 if number is None else number for number in cost] for cost in costs]
    return Costs(*map(total, zip(*known, strict=True))) if known else Costs()


def _nested(layers: Iterable[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """Return layers in the order of their first nodes, each before those inside it."""
    inside: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for layer in layers:
        inside.setdefault(layer[:-1], []).append(layer)
    found: list[tuple[str, ...]] = []
    pending = inside.get((), [])[::-1]
    while pending:
        found.append(pending.pop())
        pending += inside.get(found[-1], [])[::-1]
    return found
