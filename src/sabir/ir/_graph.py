"""Graphs: nodes between inputs and outputs, with initializers; mutable, and compared by identity.

Types, shapes, attributes and tensors are immutable and have their own modules. Graphs, nodes and values
change, through methods that keep both ends of every link. A name is a label: the object is the identity, and
saving makes missing or clashing names unique.
"""

# Graphs, nodes and values keep each other's links, so private names cross classes here.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import hinted, hints, legible
from sabir.ir._finding import named
from sabir.ir._initializers import Initializers
from sabir.ir._links import GraphInputs, Reads, require_free, require_values
from sabir.ir._listing import Listed
from sabir.ir._nodes import NodeSequence
from sabir.ir._order import in_order
from sabir.ir._tensors import ArrayTensor, SparseTensor, Tensor
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableSequence

    from sabir.ir._node import Node
    from sabir.ir._residue import Residue
    from sabir.ir._tensors import Constant
    from sabir.ir._types import Type


@hints(
    nodes="the graph itself is the sequence of its nodes: iterate it, len(graph), graph[0], graph.node(name)",
    input=hinted("inputs"),
    output=hinted("outputs"),
    initializer=hinted("initializers"),
    sparse_initializer="sparse initializers are among the `initializers`",
    value_info="each value has its `type`; graph.value(name) finds a value",
    values="graph.defined() yields the values, and graph.value(name) finds one",
    quantization_annotation=hinted("annotations"),
    doc_string=hinted("doc"),
    metadata_props=hinted("metadata"),
    remove=hinted("erase"),
    extend="append the nodes one by one",
)
class Graph(NodeSequence, Listed):
    """A sequence of nodes between inputs and outputs; it may be edited while it is iterated.

    `initializers` maps values to their data: a default where the value is an input, a constant elsewhere.
    `parent` is the node whose attribute contains this graph, or None. `inputs` and `outputs` are edited like
    lists, or assigned as a whole; the links follow.

    What only a file knows: `orphan_value_info` are value_info entries that name no value of the graph.
    `output_infos` maps the index of an output that is described elsewhere too to its value in the file and
    that second description. `clashes` are the values whose names were not unique in the file, with these
    names, which a save keeps.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> [node.op for node in model.graph], [value.name for value in model.graph.inputs]
    (['Relu'], ['x'])
    """

    __slots__ = (
        "_inputs", "_outputs", "annotations", "clashes", "doc", "initializers", "metadata", "name",
        "orphan_value_info", "output_infos", "residue",
    )  # fmt: skip

    def __init__(self, name: str = "", inputs: Iterable[Value] = ()) -> None:
        super().__init__()
        self.name, self.doc = name, ""
        self.initializers = Initializers(self)
        self._inputs = GraphInputs(self, inputs)
        self._outputs = Reads.linked(self, [])
        self.metadata: dict[str, str] | None = None
        self.annotations: tuple[Annotation, ...] = ()
        self.orphan_value_info: tuple[Value, ...] = ()
        self.output_infos: dict[int, tuple[Value, Value]] = {}
        self.clashes: dict[Value, str] = {}
        self.residue: Residue | None = None
        self.parent: Node | None = None

    @property
    def inputs(self) -> MutableSequence[Value]:
        """The inputs; assigning a sequence of values links them."""
        return self._inputs

    @inputs.setter
    def inputs(self, values: Iterable[Value]) -> None:
        self._inputs[:] = values

    @property
    def outputs(self) -> MutableSequence[Value | None]:
        """The outputs; assigning a sequence of values links them."""
        return self._outputs

    @outputs.setter
    def outputs(self, values: Iterable[Value | None]) -> None:
        self._outputs[:] = values

    def node(self, name: str | Node) -> Node:
        """Return the node of this graph with a name; those of subgraphs are not searched.

        A node of this graph is returned unchanged.

        Raises NotFoundError, a KeyError, where no node has the name (with the nearest one), or several have.
        """
        return named(name, self, "node", repr(self))

    def value(self, name: str | Value) -> Value:
        """Return the value with a name that this graph defines: an input, an initializer, or a node's output.

        A value of this graph, such as a key of `initializers`, is returned unchanged.

        Raises NotFoundError, a KeyError, where no value has the name (with the nearest one), or several have.
        """
        return named(name, self.defined(), "value", repr(self))

    def erase(self, node: Node) -> None:
        """Remove a node whose outputs nothing reads; raises ValueError where something does."""
        read = [v for v in node.outputs if v is not None and v._uses]
        if read:
            raise ValueError(f"{read[0]!r} of {node!r} is still read by {read[0].uses[0].user!r}")
        del node.inputs[:]
        for v in node.outputs:
            if v is not None:
                v.source = None
        self._unlink(node)

    def add_input(self, name: str, type: Type | None = None) -> Value:  # ruff: ignore[builtin-argument-shadowing] - the attribute's own name
        """Append a new input."""
        value = Value(name, type)
        self._inputs.append(value)
        return value

    def add_initializer(self, name: str, data: Constant | object) -> Value:
        """Add a constant, from a tensor or anything that numpy converts to an array."""
        value = Value(name)
        self.set_initializer(value, data)
        return value

    def set_initializer(self, value: Value, data: Constant | object | None) -> None:
        """Set the default of an input or the constant of another value; None removes it.

        The data is a tensor or anything that numpy converts to an array. A value that is not an input gets
        the type of dense data where it has none, or where the data replaces other data. Raises ValueError for
        a value that a node computes or that belongs to another graph, KeyError where there is nothing to
        remove.
        """
        items = self.initializers._items
        if data is None:
            del items[value]
            if value not in self._inputs:
                value.source = None
            return
        if not isinstance(value, Value):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            require_values((value,))
        if value.source is not None:
            require_free(value, self)
        tensor = data if isinstance(data, (Tensor, SparseTensor)) else ArrayTensor(np.asarray(data))
        if (value._type is None or value in items) and value not in self._inputs._counts:
            value._type = tensor.sound_type if isinstance(tensor, Tensor) else None
        items[value] = tensor
        value.source = self

    def sorted_nodes(self) -> tuple[Node, ...]:
        """Return the nodes in topological order, without changing the graph.

        Nodes keep their order as far as possible; what a subgraph captures counts as read by its node. Raises
        SchemaError for nodes that read each other in a cycle, naming them.
        """
        return in_order(self)

    def sort(self) -> bool:
        """Put the nodes of this graph and of its subgraphs in topological order; return whether any moved.

        Raises SchemaError as `sorted_nodes` does, before anything is moved.
        """
        orders = [(graph, tuple(graph), in_order(graph)) for graph in self.scopes()]
        unsorted = [(graph, order) for graph, before, order in orders if order != before]
        for graph, order in unsorted:
            graph.arrange(order)
        return bool(unsorted)

    def captures(self) -> tuple[Value, ...]:
        """The values of other graphs that this graph or one inside it reads, in reading order."""
        found: dict[Value, None] = {}
        inside = set(map(id, self.scopes()))
        for graph in self.scopes():
            read = (v for node in graph for v in node.inputs)
            for v in (*read, *graph.outputs):
                if v is not None and v.source is not None and id(v.home) not in inside:
                    found[v] = None
        return tuple(found)

    def scopes(self) -> Iterator[Graph]:
        """This graph and every graph inside it, outermost first."""
        pending: list[Graph] = [self]
        while pending:
            graph = pending.pop()
            yield graph
            if graph.may_nest:
                pending += [g for node in graph for g in node.graphs]

    @property
    def input_counts(self) -> range:
        """The numbers of inputs that a subgraph accepts: those that have an initializer are optional."""
        return range(sum(v.constant is None for v in self._inputs), len(self._inputs) + 1)

    def defined(self) -> Iterator[Value]:
        """The values that this graph itself defines: inputs, initializers, then the nodes' outputs."""
        yield from dict.fromkeys((*self._inputs, *self.initializers))
        for node in self:
            for value in node._outputs:
                if value is not None:
                    yield value

    def all_nodes(self) -> Iterator[Node]:
        """The nodes of this graph and of every graph inside it."""
        for graph in self.scopes():
            yield from graph

    def __repr__(self) -> str:
        nodes = "1 node" if self._count == 1 else f"{self._count} nodes"
        return legible(f"<Graph {self.name!r}: {nodes}>")

    def __reduce__(self) -> tuple[Any, ...]:
        # lists of nodes and values, not chains of links: a recursion is as deep as graphs are nested
        contents = tuple(self._inputs), dict(self.initializers.items()), tuple(self), tuple(self._outputs)
        return _rebuilt, (self.name, *contents, {field: getattr(self, field) for field in _FIELDS})


class Annotation(NamedTuple):
    """Quantization parameters of a value: each key (`SCALE_TENSOR`, ...) with the value that it names."""

    value: Value
    parameters: tuple[tuple[str, Value], ...]
    residue: Residue | None = None


_FIELDS = ("doc", "metadata", "annotations", "orphan_value_info", "output_infos", "clashes", "residue")


def _rebuilt(
    name: str,
    inputs: tuple[Value, ...],
    initializers: dict[Value, Constant],
    nodes: tuple[Node, ...],
    outputs: tuple[Value | None, ...],
    fields: dict[str, Any],
) -> Graph:
    graph = Graph(name, inputs)
    for value, data in initializers.items():
        graph.set_initializer(value, data)
    for node in nodes:
        graph.append(node)
    graph.outputs.extend(outputs)
    for field, content in fields.items():
        setattr(graph, field, content)
    return graph
