"""An edit of a model under quantization: integers as initializers, and DequantizeLinear behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sabir.ir import TensorType
from sabir.rewriting import InsertionPoint, Rewriter, remove_released

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Array, Graph, Model, Node, Value
    from sabir.quantization._codes import Codes
    from sabir.quantization._weights import Table, Weighted
    from sabir.rewriting import DetachedBuilder
    from sabir.schema import Registry

W = TypeVar("W", "Weighted", "Table")


class Edit:
    """One model that is changed; `finish` removes the weights that nothing reads any more."""

    def __init__(self, model: Model, registry: Registry) -> None:
        self.model = model
        self.rewriter = Rewriter(model, registry=registry)
        self.registry = registry
        self._released: dict[Value, None] = {}
        self._codes: dict[Value, Codes] = {}
        self._real: dict[tuple[Value, Graph], Value] = {}
        self._stored: dict[tuple[Value, Graph, str], Value] = {}

    def tensor_type(self, value: Value) -> TensorType | None:
        """Return the type of a tensor as inference knows it."""
        kind = self.rewriter.inference.type_of(value)
        return kind if isinstance(kind, TensorType) else None

    def codes(self, weighted: W, compute: Callable[[W], Codes]) -> Codes:
        """Return the integers of the weights of a node; nodes with the same weights share them."""
        found = self._codes.get(weighted.weights)
        if found is None:
            found = self._codes[weighted.weights] = compute(weighted)
        return found

    def stored(self, b: DetachedBuilder, weighted: Weighted | Table, end: str, data: Array) -> Value:
        """Return an initializer made of the weights of a node, which other nodes of its graph share.

        Its name is that of the weights with `end`.
        """
        graph = weighted.node.graph
        if graph is None:
            raise ValueError(f"{weighted.node!r} is in no graph")
        key = weighted.weights, graph, end
        if key not in self._stored:
            self._stored[key] = b.initializer(f"{weighted.weights.name or 'weights'}{end}", data)
        return self._stored[key]

    def dequantize_weights(
        self, weighted: Weighted, compute: Callable[[Weighted], Codes], *, with_zero: bool = False
    ) -> Codes:
        """Let a node read its weights from a DequantizeLinear, and return the integers.

        `with_zero` writes zero points of 0 for symmetric integers.
        """
        codes, node = self.codes(weighted, compute), weighted.node
        graph = node.graph
        if graph is None:
            raise ValueError(f"{node!r} is in no graph")
        real = self._real.get((weighted.weights, graph))
        if real is None:
            b = self.rewriter.builder(graph)
            real = dequantized_weights(b, weighted, codes, with_zero=with_zero)
            self.rewriter.place(b, InsertionPoint.before(node))
            self._real[weighted.weights, graph] = real
        self.read(node, node.inputs.index(weighted.weights), real)
        return codes

    def read(self, node: Node, slot: int, value: Value) -> None:
        """Let an input of a node read another value."""
        before = node.inputs[slot]
        if before is not None:
            self._released[before] = None
        node.inputs[slot] = value

    def set_constant(self, node: Node, slot: int, name: str, data: Array) -> None:
        """Let an input of a node read other data; other readers of what it reads keep theirs."""
        graph = node.graph
        if graph is None:
            raise ValueError(f"{node!r} is in no graph")
        node.inputs.extend([None] * (slot + 1 - len(node.inputs)))
        before = node.inputs[slot]
        if before is not None and before in graph.initializers and before.read_count == 1:
            graph.set_initializer(before, data)
        else:
            self.read(node, slot, graph.add_initializer(self.rewriter.names.fresh(name), data))

    def replace(self, node: Node, build: Callable[[DetachedBuilder], Value]) -> list[Node]:
        """Replace a node by what `build` returns; the last of the new nodes has its name."""
        name, read = node.name, [v for v in node.inputs if v is not None]
        nodes = self.rewriter.replace(node, build)
        self._released.update(dict.fromkeys(read))
        if name and nodes and not nodes[-1].name:
            nodes[-1].name = name
        return nodes

    def finish(self) -> Model:
        """Remove what nothing reads any more, and return the model."""
        remove_released(self.model, self._released, registry=self.registry)
        return self.model


def dequantized_weights(
    b: DetachedBuilder, weighted: Weighted, codes: Codes, *, with_zero: bool = False
) -> Value:
    """Return integers that are multiplied by their scales again, under names made of that of the weights."""
    name = weighted.weights.name or "weights"
    integers = b.initializer(f"{name}_quantized", codes.integers)
    scale = b.initializer(f"{name}_scale", codes.scale)
    zero: list[Value] = []
    if codes.zero is not None or with_zero:
        numbers = np.zeros(codes.scale.shape, codes.integers.dtype) if codes.zero is None else codes.zero
        zero.append(b.initializer(f"{name}_zero_point", numbers))
    facts: dict[str, Any] = {"axis": codes.axis}
    if codes.block_size:
        facts["block_size"] = codes.block_size
    return b.op("DequantizeLinear", integers, scale, *zero, **facts)
