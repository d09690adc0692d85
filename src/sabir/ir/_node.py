"""Nodes: calls of operators and functions."""

# Nodes and values keep each other's links, so private names cross classes here.
# pyright: reportPrivateUsage=false
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import SabirError, hinted, hints, legible
from sabir.ir._attributes import GRAPH_TYPES, Attribute, Attributes
from sabir.ir._links import Reads, require_free, require_values
from sabir.ir._listing import Listed
from sabir.ir._value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableSequence

    from sabir.ir._devices import NodeDevice
    from sabir.ir._graph import Graph
    from sabir.ir._residue import Residue


@hints(
    op_type=hinted("op"),
    input=hinted("inputs"),
    attribute=hinted("attributes"),
    doc_string=hinted("doc"),
    metadata_props=hinted("metadata"),
    device_configurations=hinted("devices"),
    version="the version follows from the opset imports: model.opset(node.domain)",
)
class Node(Listed):
    """One call of an operator or of a function.

    An entry of `inputs` or `outputs` is None where an optional one is left out. `domain` is as written:
    `""` and `"ai.onnx"` are the same one. `inputs`, `outputs` and `attributes` are edited like lists and
    dictionaries, or assigned as a whole; the links follow.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> relu = model.graph[0]
    >>> relu.op, relu.inputs[0].name, relu.output.name
    ('Relu', 'x', 'y')
    """

    __slots__ = (
        "_attributes", "_inputs", "_next", "_outputs", "_previous", "devices", "doc", "domain", "graph",
        "metadata", "name", "op", "overload", "residue",
    )  # fmt: skip

    def __init__(
        self,
        op: str,
        inputs: Iterable[Value | None] = (),
        outputs: int | Iterable[Value | None] = 1,
        attributes: Mapping[str, Attribute | object] | None = None,
        *,
        domain: str = "",
        name: str = "",
        overload: str = "",
    ) -> None:
        """Create a detached node; `outputs` is a number of new values, or the values themselves.

        Attributes that are not of class Attribute are converted as by `Attribute.of`. Raises TypeError for
        inputs or outputs that are not values, ValueError for an output that something else defines already.
        """
        self._initialize(op, domain, name, overload)
        results = tuple([Value() for _ in range(outputs)] if isinstance(outputs, int) else outputs)
        self._inputs = Reads(self, inputs)
        self._outputs: tuple[Value | None, ...] = ()
        try:
            self._define(results)
            self._attributes = Attributes(self, attributes)
        except (SabirError, AttributeError, TypeError, ValueError):
            del self._inputs[:]
            self._release()
            require_values(results)
            raise

    @classmethod
    def linked(
        cls,
        op: str,
        inputs: list[Value | None],
        outputs: tuple[Value | None, ...],
        attributes: dict[str, Attribute] | None = None,
        *,
        domain: str = "",
        name: str = "",
        overload: str = "",
    ) -> Node:
        """Create a detached node, without the checks of the constructor: for readers, copies and builders.

        The caller guarantees that the inputs and outputs are values or None, and that each output is new:
        listed once, and defined by nothing else; and that the attributes have their own names. The node takes
        over the list and the dictionary.
        """
        node = cls.__new__(cls)
        node._initialize(op, domain, name, overload)
        node._inputs = Reads.linked(node, inputs)
        node._outputs = outputs
        for value in outputs:
            if value is not None:
                value.source = node
        node._attributes = Attributes(node)
        if attributes:
            node._attributes.take_over(attributes)
        return node

    def _initialize(self, op: str, domain: str, name: str, overload: str) -> None:
        """Set the fields that are no links."""
        self.op, self.domain, self.name, self.overload = op, domain, name, overload
        self.doc = ""
        self.metadata: dict[str, str] | None = None
        self.devices: tuple[NodeDevice, ...] = ()
        self.residue: Residue | None = None
        self.graph: Graph | None = None
        self._next: Node | None = None
        self._previous: Node | None = None

    @property
    def inputs(self) -> MutableSequence[Value | None]:
        """The operands; assigning a sequence of values links them."""
        return self._inputs

    @inputs.setter
    def inputs(self, values: Iterable[Value | None]) -> None:
        self._inputs[:] = values

    @property
    def outputs(self) -> tuple[Value | None, ...]:
        """The results; a value that an assignment drops is computed by nothing any more."""
        return self._outputs

    @outputs.setter
    def outputs(self, values: Iterable[Value | None]) -> None:
        previous, results = self._outputs, tuple(values)
        require_values(results)
        self._release()
        try:
            self._define(results)
        except (TypeError, ValueError):
            self._define(previous)
            raise

    @property
    def attributes(self) -> Attributes:
        """The attributes by name; assigning a mapping replaces all of them."""
        return self._attributes

    @attributes.setter
    def attributes(self, attributes: Mapping[str, Attribute | object]) -> None:
        items = dict(attributes)
        self._attributes.clear()
        self._attributes.update(items)  # pyright: ignore[reportArgumentType, reportCallIssue] - it converts

    @property
    def output(self) -> Value:
        """The first output; raises ValueError where there is none."""
        value = self._outputs[0] if self._outputs else None
        if value is None:
            raise ValueError(f"{self!r} has no first output")
        return value

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The subgraphs among the attributes."""
        if not self._attributes.may_have_graphs:
            return ()
        return tuple([g for a in self._attributes._items.values() if a.type in GRAPH_TYPES for g in a.graphs])

    def captures(self) -> list[Value]:
        """Return the values of enclosing graphs that the subgraphs read, those of a subgraph once."""
        return [value for graph in self.graphs for value in graph.captures()]

    def reads(self) -> list[Value]:
        """Return the operands, without those that are left out, and what the subgraphs capture.

        >>> x = sabir.ir.Value('x')
        >>> [v.name for v in sabir.ir.Node('Clip', [x, None, x]).reads()]
        ['x', 'x']
        """
        operands = [value for value in self._inputs._items if value is not None]
        return operands + self.captures() if self._attributes.may_have_graphs else operands

    def replace_output(self, old: Value, new: Value) -> None:
        """Let this node compute `new` instead of `old`; the readers of `old` then read `new`.

        Raises ValueError where this node does not compute `old`, or something else defines `new`.
        """
        require_values((new,))
        if old not in self._outputs:
            raise ValueError(f"{old!r} is not an output of {self!r}")
        self.outputs = [new if v is old else v for v in self._outputs]
        old.replace_with(new)

    def set(self, **attributes: object) -> None:
        """Set attributes from Python values: `node.set(axis=1)`."""
        for name, value in attributes.items():
            self._attributes[name] = Attribute.of(name, value)

    def _define(self, results: tuple[Value | None, ...]) -> None:
        """Become the source of values; raises where one is not a value, or is defined already."""
        for place, value in enumerate(results):
            if value is None:
                continue
            if value.source is not None:
                self._outputs = results[:place]
                self._release()
                require_free(value, self)
                raise ValueError(f"{value!r} is listed twice among the outputs of {self!r}")
            value.source = self
        self._outputs = results

    def _release(self) -> None:
        """Compute nothing; a value that another node has taken over keeps its source."""
        for value in self._outputs:
            if value is not None and value.source is self:
                value.source = None
        self._outputs = ()

    def __repr__(self) -> str:
        domain = f"{self.domain}." if self.domain else ""
        return legible(f"<Node {domain}{self.op}{f' {self.name!r}' if self.name else ''}>")

    def __reduce__(self) -> tuple[Any, ...]:
        call = self.op, tuple(self._inputs), self._outputs, dict(self._attributes.items())
        names = self.domain, self.name, self.overload
        return _rebuilt, (*call, *names, self.doc, self.metadata, self.devices, self.residue)


def _rebuilt(
    op: str,
    inputs: tuple[Value | None, ...],
    outputs: tuple[Value | None, ...],
    attributes: dict[str, Attribute],
    domain: str,
    name: str,
    overload: str,
    *fields: Any,
) -> Node:
    node = Node(op, inputs, outputs, attributes, domain=domain, name=name, overload=overload)
    node.doc, node.metadata, node.devices, node.residue = fields
    return node
