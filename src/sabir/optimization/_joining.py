"""Products of one value with several weights as one product, as queries, keys and values are."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import SabirError
from sabir.ir import Graph, Node, Tensor, canonical_domain
from sabir.rewriting import InsertionPoint, Rewriter, erase_node

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sabir.inference import Inference
    from sabir.ir import Array, FreshNames, Model, Value
    from sabir.schema import Registry, Scope

_FIRST_OPSET = 13  # of Split with its sizes as an operand
_LEAST = 3  # products, or two that have biases: fewer would not be fewer nodes
_MATRIX = 2  # its rank
_OPERANDS = 2
_FLOATS = frozenset({np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)})


class JoinProducts(NamedTuple):
    """The pass that computes x @ a, x @ b and x @ c as parts of x @ [a b c], with their biases.

    The weights and biases are constants that nothing else reads.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,1] x) => (p, q, r) <float[1,1] a = {1}, float[1,1] b = {2}, float[1,2] c = {3, 4}> {
    ... p = MatMul (x, a)  q = MatMul (x, b)  r = MatMul (x, c) }''')
    >>> JoinProducts(sabir.opsets.STANDARD).run(model), [node.op for node in model.graph]
    (True, ['MatMul', 'Split'])
    """

    registry: Registry
    kept: Collection[Value] = ()
    name: str = "join products"

    def run(self, model: Model, inference: Inference | None = None) -> bool:
        """Join the products of the main graph and its subgraphs, and return whether there were any.

        `inference` has the types of the model's values, and gets those of the new ones.
        """
        if (model.opset("") or 0) < _FIRST_OPSET:
            return False
        rewriter = Rewriter(model, registry=self.registry)
        state = {*self.kept, *model.state()}
        found = False
        for graph in list(model.graph.scopes()):
            for products in list(_groups(graph, state)):
                new = _join(graph, products, rewriter.names)
                found = True
                if inference is not None:
                    _infer(new, inference, rewriter.scope)
        return found


def _infer(nodes: Sequence[Node], inference: Inference, scope: Scope) -> None:
    for node in nodes:
        with contextlib.suppress(SabirError):  # an invalid call stays one: the run reports it
            inference.visit(node, scope=scope)


class _Product(NamedTuple):
    """A node MatMul on a matrix of weights, with the node Add after it, if there is one."""

    matmul: Node
    weights: Array
    add: Node | None = None
    bias: Array | None = None

    @property
    def end(self) -> Node:
        """The last node."""
        return self.add or self.matmul


def _groups(graph: Graph, state: Collection[Value]) -> Iterator[list[_Product]]:
    readers: dict[Value, list[_Product]] = {}
    for node in graph:
        product = _product(node, state)
        if product is not None:
            readers.setdefault(cast("Value", node.inputs[0]), []).append(product)
    for products in readers.values():
        by_kind: dict[object, list[_Product]] = {}
        for p in products:
            by_kind.setdefault((p.bias is None, p.weights.dtype, p.weights.shape[0]), []).append(p)
        for group in by_kind.values():
            if len(group) >= _LEAST - (group[0].bias is not None):
                yield group


def _product(node: Node, state: Collection[Value]) -> _Product | None:
    if not _calls(node, "MatMul"):
        return None
    weights = _own(node.inputs[1], state)
    output = node.outputs[0]
    if weights is None or weights.ndim != _MATRIX or weights.dtype not in _FLOATS or output in state:
        return None
    use = output.uses[0] if output is not None and output.read_count == 1 else None
    reader = None if use is None else use.user
    if use and isinstance(reader, Node) and _calls(reader, "Add") and reader.graph is node.graph:
        bias = _own(reader.inputs[1 - use.slot], state)
        if bias is not None and bias.shape == weights.shape[1:] and bias.dtype == weights.dtype:
            return _Product(node, weights, reader, bias)
    return _Product(node, weights)


def _calls(node: Node, op: str) -> bool:
    """Return whether a node calls an operator of the standard with two operands."""
    return node.op == op and not canonical_domain(node.domain) and len(node.inputs) == _OPERANDS


def _own(value: Value | None, state: Collection[Value]) -> Array | None:
    """Return the data of a constant that nothing but one node reads."""
    data = None if value is None or value.is_input or value in state else value.constant
    if not isinstance(data, Tensor) or value is None or value.read_count != 1:
        return None
    return data.array()


def _join(graph: Graph, products: Sequence[_Product], names: FreshNames) -> list[Node]:
    """Replace products by the parts of one, and return the new nodes."""
    first = products[0].matmul
    point = InsertionPoint.before(first)
    weights = graph.add_initializer(names.fresh("weights"), np.concatenate([p.weights for p in products], 1))
    node = point.insert(Node("MatMul", [first.inputs[0], weights], name=first.name))
    new = [node]
    biases: Any = [p.bias for p in products]
    if products[0].bias is not None:
        bias = graph.add_initializer(names.fresh("bias"), np.concatenate(biases))
        node.output.name = names.fresh("product")
        node = point.insert(Node("Add", [node.output, bias]))
        new.append(node)
    node.output.name = names.fresh("products")
    sizes = graph.add_initializer(names.fresh("sizes"), np.asarray([p.weights.shape[1] for p in products]))
    ends = [p.end for p in products]
    outputs = [cast("Value", end.outputs[0]) for end in ends]
    for end in ends:
        end.outputs = ()
    new.append(point.insert(Node("Split", [node.output, sizes], outputs, {"axis": -1})))
    for product in products:
        for old in (product.add, product.matmul):
            if old is not None:
                erase_node(old)
    return new
