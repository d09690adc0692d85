"""Values, nodes and graphs: mutable, linked both ways, compared by identity.

Facts (types, shapes, attributes, tensors) are frozen and live in their own modules; only the classes here
change, and only through methods that keep both ends of every link in step. Names are labels: the object is
the identity, and saving makes missing or clashing names unique.
"""

# These classes keep one another's links, so here alone private names cross classes.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from sabir.base import legible
from sabir.ir._attributes import Attribute, Attributes, Nested
from sabir.ir._links import Inputs, Reads, Use
from sabir.ir._listing import Listed
from sabir.ir._order import in_order
from sabir.ir._tensors import ArrayTensor, SparseTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sabir.ir._devices import NodeDevice
    from sabir.ir._residue import Residue
    from sabir.ir._types import Type

Constant: TypeAlias = Tensor | SparseTensor


class Value:
    """One value of the program.

    `source` is the node that computes it, the graph it is an input or an initializer of, or None where
    nothing defines it. `type` is what is declared or inferred of it.
    """

    __slots__ = ("_uses", "doc", "metadata", "name", "residue", "source", "type", "value_info_index")

    def __init__(self, name: str = "", type: Type | None = None) -> None:  # ruff: ignore[builtin-argument-shadowing] - the attribute's own name
        self.name, self.type = name, type
        self.source: Node | Graph | None = None
        self.doc = ""
        self.metadata: dict[str, str] | None = None
        self.residue: Residue | None = None
        self.value_info_index: int | None = (
            None  # its place in the file's value_info, so that a save keeps the order
        )
        self._uses: dict[tuple[Node | Graph, int], None] = {}

    @property
    def uses(self) -> tuple[Use, ...]:
        """Every place that reads this value."""
        return tuple(starmap(Use, self._uses))

    @property
    def node(self) -> Node | None:
        """The node that computes this value, if one does."""
        return self.source if isinstance(self.source, Node) else None

    @property
    def home(self) -> Graph | None:
        """The graph in which this value is defined, if one does."""
        return self.source.graph if isinstance(self.source, Node) else self.source

    @property
    def constant(self) -> Constant | None:
        """The initializer's data, where this value is one."""
        return self.source.initializers.get(self) if isinstance(self.source, Graph) else None

    @property
    def is_input(self) -> bool:
        """Whether this value is an input of its graph."""
        return isinstance(self.source, Graph) and self in self.source.inputs

    def replace_with(self, other: Value) -> None:
        """Make every reader of this value, graph outputs included, read `other` instead."""
        for user, slot in tuple(self._uses):
            (user.inputs if isinstance(user, Node) else user.outputs)[slot] = other

    def __repr__(self) -> str:
        return legible(f"<Value {self.name or '?'}: {self.type or '?'}>")


class Node(Listed):
    """One application of an operator, or one call of a function.

    An entry of `inputs` or `outputs` is None where an optional one is left out. `domain` is as written:
    `""` and `"ai.onnx"` name the same one.
    """

    __slots__ = (
        "_next", "_previous", "attributes", "devices", "doc", "domain", "graph", "inputs", "metadata", "name",
        "op", "outputs", "overload", "residue",
    )  # fmt: skip

    def __init__(
        self,
        op: str,
        inputs: Iterable[Value | None] = (),
        outputs: int | Iterable[Value | None] = 1,
        attributes: Mapping[str, Attribute] | None = None,
        *,
        domain: str = "",
        name: str = "",
        overload: str = "",
    ) -> None:
        """Create a detached node; `outputs` is a number of new values, or the values themselves."""
        self.op, self.domain, self.name, self.overload = op, domain, name, overload
        self.inputs = Reads(self, inputs)
        made = (Value() for _ in range(outputs)) if isinstance(outputs, int) else outputs
        self.outputs: tuple[Value | None, ...] = tuple(made)
        for value in self.outputs:
            if value is not None:
                value.source = self
        self.attributes = Attributes(self, attributes)
        self.doc = ""
        self.metadata: dict[str, str] | None = None
        self.devices: tuple[NodeDevice, ...] = ()
        self.residue: Residue | None = None
        self.graph: Graph | None = None
        self._next: Node | None = None
        self._previous: Node | None = None

    @property
    def output(self) -> Value:
        """The first output, which must be there."""
        value = self.outputs[0] if self.outputs else None
        if value is None:
            raise ValueError(f"{self!r} has no first output")
        return value

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The subgraphs among the attributes."""
        return tuple(g for a in self.attributes.values() for g in a.graphs) if self.attributes else ()

    def replace_output(self, old: Value, new: Value) -> None:
        """Let this node compute `new` in the place of `old`, whose readers read `new` from now on."""
        self.outputs = tuple(new if v is old else v for v in self.outputs)
        old.source, new.source = None, self
        old.replace_with(new)

    def set(self, **attributes: object) -> None:
        """Set attributes from Python values: `node.set(axis=1)`."""
        for name, value in attributes.items():
            self.attributes[name] = Attribute.of(name, value)

    def __repr__(self) -> str:
        domain = f"{self.domain}." if self.domain else ""
        return legible(f"<Node {domain}{self.op}{f' {self.name!r}' if self.name else ''}>")


class Graph(Nested, Listed):  # ruff: ignore[too-many-public-methods]  each edit is a method that keeps the links
    """A sequence of nodes between inputs and outputs; it may be edited while it is iterated.

    `initializers` maps values to their data: a default where the value is an input, a constant elsewhere.
    `parent` is the node whose attribute holds this graph, or None. `orphan_value_info` keeps value_info
    entries that name nothing in the graph. `output_infos` keeps descriptions of outputs that are described
    elsewhere too: by output index, the value that stood there and the description. `clashes` has the values
    whose names were not unique in the file, with these names: a save keeps them.
    """

    __slots__ = (
        "_count",
        "_first",
        "_last",
        "annotations",
        "clashes",
        "doc",
        "initializers",
        "inputs",
        "metadata",
        "name",
        "orphan_value_info",
        "output_infos",
        "outputs",
        "residue",
    )  # fmt: skip

    def __init__(self, name: str = "", inputs: Iterable[Value] = ()) -> None:
        self.name, self.doc = name, ""
        self.initializers: dict[Value, Constant] = {}
        self.inputs = Inputs(self, inputs)
        self.outputs = Reads(self)
        self.metadata: dict[str, str] | None = None
        self.annotations: tuple[Annotation, ...] = ()
        self.orphan_value_info: tuple[Value, ...] = ()
        self.output_infos: dict[int, tuple[Value, Value]] = {}
        self.clashes: dict[Value, str] = {}
        self.residue: Residue | None = None
        self.parent: Node | None = None
        self._first: Node | None = None
        self._last: Node | None = None
        self._count = 0

    def __iter__(self) -> Iterator[Node]:
        """Visit the nodes in order: also one inserted after the current one, and none that is erased."""
        node = self._first
        while node is not None:
            following = node._next
            if node.graph is self:
                yield node
            # an erased node still leads on; one that now stands in another graph must not lead there
            node = node._next if node.graph in {self, None} else following

    def __reversed__(self) -> Iterator[Node]:
        node = self._last
        while node is not None:
            if node.graph is self:
                yield node
            node = node._previous

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return True

    def append(self, node: Node) -> Node:
        """Place `node` last."""
        return self.insert(node, after=self._last)

    def prepend(self, node: Node) -> Node:
        """Place `node` first."""
        return self.insert(node, after=None)

    def insert(self, node: Node, *, after: Node | None) -> Node:
        """Place `node` right after another one, or first; raises ValueError for a node placed elsewhere."""
        if node.graph is not None:
            raise ValueError(f"{node!r} already stands in a graph; erase it there or move it")
        if after is not None and after.graph is not self:
            raise ValueError(f"{after!r} does not stand in this graph")
        following = self._first if after is None else after._next
        node.graph, node._previous, node._next = self, after, following
        if after is None:
            self._first = node
        else:
            after._next = node
        if following is None:
            self._last = node
        else:
            following._previous = node
        self._count += 1
        return node

    def previous(self, node: Node) -> Node | None:
        """Return the node right before one of this graph; None for the first."""
        if node.graph is not self:
            raise ValueError(f"{node!r} does not stand in this graph")
        return node._previous

    def move(self, node: Node, *, after: Node | None) -> None:
        """Take a node of this graph to another place in it."""
        if node is after:
            raise ValueError(f"{node!r} cannot stand after itself")
        self._unlink(node)
        self.insert(node, after=after)

    def detach(self, node: Node) -> None:
        """Take a node out as it is, what it reads and who reads it included, to be placed elsewhere."""
        self._unlink(node)

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
        self.inputs.append(value)
        return value

    def add_initializer(self, name: str, data: Constant | object) -> Value:
        """Add a constant, from a tensor or anything numpy takes as an array."""
        tensor = data if isinstance(data, (Tensor, SparseTensor)) else ArrayTensor(np.asarray(data))
        value = Value(name, tensor.type if isinstance(tensor, Tensor) else None)
        self.set_initializer(value, tensor)
        return value

    def set_initializer(self, value: Value, data: Constant | None) -> None:
        """Give an input its default, or a value its constant; None takes it away."""
        if data is not None:
            self.initializers[value] = data
            value.source = self
            return
        del self.initializers[value]
        if value not in self.inputs:
            value.source = None

    def sorted_nodes(self) -> tuple[Node, ...]:
        """Return the nodes in topological order, and leave the graph as it is.

        Nodes that need not move keep their order; what a subgraph captures counts as read by its node. Raises
        SchemaError for nodes that read one another in a cycle, naming them.
        """
        return in_order(self)

    def sort(self) -> bool:
        """Put the nodes, and those of every graph inside, in topological order; return whether any moved.

        Raises SchemaError as `sorted_nodes` does, before anything is moved.
        """
        orders = [(graph, tuple(graph), in_order(graph)) for graph in self.scopes()]
        unsorted = [(graph, order) for graph, before, order in orders if order != before]
        for graph, order in unsorted:
            graph.arrange(order)
        return bool(unsorted)

    def arrange(self, nodes: Sequence[Node]) -> None:
        """Put the nodes of this graph, all of them, in another order; raises ValueError for any others."""
        if len(nodes) != self._count or {*nodes} != {*self}:
            raise ValueError("the nodes to arrange are not those of the graph")
        self._first = self._last = None
        for node in nodes:
            node._previous, node._next = self._last, None
            if self._last is None:
                self._first = node
            else:
                self._last._next = node
            self._last = node

    def captures(self) -> tuple[Value, ...]:
        """The values of outer graphs that this graph or one inside it reads, in reading order."""
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
            pending += [g for node in graph for g in node.graphs]

    @property
    def input_counts(self) -> range:
        """How many inputs it may be given as a subgraph: those that have an initializer can be left out."""
        return range(sum(v.constant is None for v in self.inputs), len(self.inputs) + 1)

    def defined(self) -> Iterator[Value]:
        """The values that this graph itself defines: inputs, initializers, then what its nodes compute."""
        yield from dict.fromkeys((*self.inputs, *self.initializers))
        for node in self:
            yield from (v for v in node.outputs if v is not None)

    def all_nodes(self) -> Iterator[Node]:
        """The nodes of this graph and of every graph inside it."""
        for graph in self.scopes():
            yield from graph

    def __repr__(self) -> str:
        return legible(f"<Graph {self.name!r}: {self._count} nodes>")

    def _unlink(self, node: Node) -> None:
        if node.graph is not self:
            raise ValueError(f"{node!r} does not stand in this graph")
        before, after = node._previous, node._next
        if before is None:
            self._first = after
        else:
            before._next = after
        if after is None:
            self._last = before
        else:
            after._previous = before
        node.graph = None
        self._count -= 1


class Annotation(NamedTuple):
    """Quantization parameters of a value: key (`SCALE_TENSOR`, ...) to the value that holds them."""

    value: Value
    parameters: tuple[tuple[str, Value], ...]
    residue: Residue | None = None
