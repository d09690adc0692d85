"""The survey: one walk over a model that lists the subjects of rules, each with its location."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from sabir.base import Location, SchemaError, Step, check_depth
from sabir.checking._messages import Data, TensorMessage, tensor_message
from sabir.ir import (
    ExternalTensor,
    Function,
    Graph,
    Model,
    Node,
    SparseTensor,
    Tensor,
    Value,
    WireTensor,
)
from sabir.schema import Callees, Registry, Scope, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Attribute, Constant, NodeDevice, TrainingInfo, Type

Kind = Literal["main", "subgraph", "function", "initialization", "algorithm"]
CalleeOrError = Version | Function | SchemaError


@dataclass(eq=False)
class GraphSite:
    """A graph with its location, its scope, the node it belongs to, and its subgraphs.

    `reads` has the operands of each node, `calls` the node indices by callee, `attributed` the indices of
    nodes with attributes. `visible` are the values of the main graph that a training graph may read.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> site = Survey(model, STANDARD).graphs[0]
    >>> site.kind, str(site.at_node(0))
    ('main', "graph/node[0] 'Relu'")
    """

    graph: Graph
    kind: Kind
    where: Location
    scope: Scope
    function: Function | None
    outer: GraphSite | None
    holder: Node | None
    nodes: tuple[Node, ...]
    reads: list[tuple[Value | None, ...]] = field(default_factory=list["tuple[Value | None, ...]"])
    calls: dict[CalleeOrError, list[int]] = field(default_factory=dict["CalleeOrError", "list[int]"])
    attributed: list[int] = field(default_factory=list[int])
    inner: dict[Node, list[GraphSite]] = field(default_factory=dict[Node, "list[GraphSite]"])
    visible: tuple[Value, ...] = ()

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """The values that the graph defines."""
        return tuple(self.graph.defined())

    @cached_property
    def early_reads(self) -> list[Read]:
        """The reads before a definition, in this graph and its subgraphs."""
        return _early_reads(self, self.visible)

    def at_node(self, index: int) -> Location:
        """Return the location of node `index`."""
        node = self.nodes[index]
        return self.where.at("node", index=index, name=node.name or node.op)

    def at_value(self, value: Value) -> Location:
        """Return the location of a value that this graph defines."""
        kind, index, slot = self._places.get(value, ("initializer", 0, 0))
        if kind == "node":
            return self.at_node(index).at("output", index=slot, name=value.name)
        return self.where.at(kind, index=slot if kind == "input" else None, name=value.name)

    @cached_property
    def _places(self) -> dict[Value, tuple[str, int, int]]:
        """For inputs and results of nodes: the kind, the node index, the slot."""
        places: dict[Value, tuple[str, int, int]] = {}
        for slot, value in enumerate(self.graph.inputs):
            places.setdefault(value, ("input", 0, slot))
        for index, node in enumerate(self.nodes):
            for slot, value in enumerate(node.outputs):
                if value is not None:
                    places.setdefault(value, ("node", index, slot))
        return places

    def with_subgraphs(self) -> Iterator[GraphSite]:
        """This graph and its subgraphs."""
        yield self
        for sites in self.inner.values():
            for site in sites:
                yield from site.with_subgraphs()


class AttributeSite:
    """An attribute of a node, or a default of a function (without a node).

    >>> b = sabir.Builder(21)
    >>> y = b.Softmax(b.input('x', 'float', ['N']), axis=0)
    >>> from sabir.opsets import STANDARD
    >>> survey = Survey(b.model(), STANDARD)
    >>> [str(site.where) for sites in survey.attributes for site in sites]
    ["graph/node[0] 'Softmax'/attribute 'axis'"]
    """

    __slots__ = ("_index", "_key", "_site", "attribute")

    def __init__(self, attribute: Attribute, key: str, site: GraphSite, index: int | None) -> None:
        self.attribute, self._key, self._site, self._index = attribute, key, site, index

    @property
    def where(self) -> Location:
        """The location; computed on request, since a model has many attributes."""
        site = self._site
        holder = site.where if self._index is None else site.at_node(self._index)
        return holder.at("attribute", name=self._key)

    @property
    def function(self) -> Function | None:
        """The function whose body or defaults contain the attribute."""
        return self._site.function


class _Placed:
    """Something at one step from a location; its own location is computed on request."""

    __slots__ = ("_from", "_step")

    def __init__(self, start: Location, step: Step | None) -> None:
        self._from, self._step = start, step

    @property
    def where(self) -> Location:
        """The location."""
        return self._from if self._step is None else Location((*self._from.steps, self._step))


class TensorSite(_Placed):
    """A tensor; `proto` is its message if it came from a file."""

    __slots__ = ("_message", "tensor")

    def __init__(self, tensor: Tensor, start: Location, step: Step | None = None) -> None:
        super().__init__(start, step)
        self.tensor = tensor
        self._message: TensorMessage | None = None

    @property
    def proto(self) -> Any | None:
        """The `TensorProto`; None for a tensor made from an array, which is always valid."""
        return self.tensor.proto if isinstance(self.tensor, WireTensor) else None

    @property
    def message(self) -> TensorMessage | None:
        """The header of the message; None for a tensor made from an array."""
        if self._message is None and isinstance(self.tensor, WireTensor):
            self._message = tensor_message(self.tensor)
        return self._message

    @property
    def data(self) -> Data | None:
        """The values in the message, if its header is well formed."""
        return None if self.message is None else self.message.data


class SparseSite(_Placed):
    """A sparse tensor."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: SparseTensor, start: Location, step: Step | None = None) -> None:
        super().__init__(start, step)
        self.tensor = tensor


class TypeSite(_Placed):
    """A declared type: of a value, or in an attribute."""

    __slots__ = ("type",)

    def __init__(self, kind: Type, start: Location, step: Step | None = None) -> None:
        super().__init__(start, step)
        self.type = kind


@dataclass(eq=False, slots=True)
class FunctionSite:
    """A function of the model, with the scope of its body.

    >>> b = sabir.Builder(21)
    >>> twice = b.function(lambda g, x: x + x, name='twice')
    >>> y = b.output(twice(b.input('x', 'float', ['N'])), 'y')
    >>> from sabir.opsets import STANDARD
    >>> [site.function.name for site in Survey(b.model(), STANDARD).functions]
    ['twice']
    """

    function: Function
    where: Location
    body: GraphSite
    model: Model


@dataclass(eq=False, slots=True)
class TrainingSite:
    """One TrainingInfo."""

    training: TrainingInfo
    where: Location
    model: Model


@dataclass(eq=False)
class Survey:
    """The subjects of all rules in one model; `verify` allows rules to read files of any size.

    The reader makes equal attributes one object: `attributes` lists them together, so that rules check them
    once. `defaults` are the graphs of default attributes of functions; they belong to no node.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> survey = Survey(model, STANDARD)
    >>> [site.graph.name for site in survey.graphs]
    ['g']
    """

    model: Model
    registry: Registry
    verify: bool = False
    roots: list[GraphSite] = field(default_factory=list[GraphSite])
    defaults: list[GraphSite] = field(default_factory=list[GraphSite])
    attributes: list[list[AttributeSite]] = field(default_factory=list[list[AttributeSite]])
    tensors: list[TensorSite] = field(default_factory=list[TensorSite])
    sparse: list[SparseSite] = field(default_factory=list[SparseSite])
    types: list[TypeSite] = field(default_factory=list[TypeSite])
    functions: list[FunctionSite] = field(default_factory=list[FunctionSite])
    trainings: list[TrainingSite] = field(default_factory=list[TrainingSite])

    def __post_init__(self) -> None:
        self._alike: dict[tuple[int, Function | None], list[AttributeSite]] = {}
        self._callees = Callees()
        model, scope = self.model, Scope.of(self.model, self.registry, newer_opsets=True)
        self.roots.append(self._graph(model.graph, "main", Location().at("graph"), scope))
        for place, training in enumerate(model.training):
            where = Location().at("training_info", index=place)
            self.trainings.append(TrainingSite(training, where, model))
            if training.initialization is not None:
                at = where.at("initialization")
                self.roots.append(self._graph(training.initialization, "initialization", at, scope))
                self.roots[-1].visible = tuple(model.graph.initializers)
            if training.algorithm is not None:
                at = where.at("algorithm")
                self.roots.append(self._graph(training.algorithm, "algorithm", at, scope))
                self.roots[-1].visible = self.roots[0].values
        for place, function in enumerate(model.functions):
            self._function(place, function, scope)

    @cached_property
    def graphs(self) -> list[GraphSite]:
        """Every graph, subgraphs included."""
        return [site for root in self.roots for site in root.with_subgraphs()]

    @cached_property
    def external(self) -> list[TensorSite]:
        """The tensors with external data."""
        return [site for site in self.tensors if isinstance(site.tensor, ExternalTensor)]

    @cached_property
    def layouts(self) -> list[tuple[Location, NodeDevice]]:
        """The device configurations of nodes, with their locations."""
        return [
            (site.at_node(index).at("device", index=place, name=device.configuration), device)
            for site in self.graphs
            for index, node in enumerate(site.nodes)
            if node.devices
            for place, device in enumerate(node.devices)
        ]

    def _function(self, place: int, function: Function, scope: Scope) -> None:
        where = Location().at("function", index=place, name=function.name)
        inner = scope.of_body(function)
        body = self._graph(function.graph, "function", where, inner, function=function)
        self.roots.append(body)
        self.functions.append(FunctionSite(function, where, body, self.model))
        for name, default in function.attributes.items():
            if default is not None:
                self._attribute(AttributeSite(default, name, body, None), body, None, 1)

    def _graph(
        self, graph: Graph, kind: Kind, where: Location, scope: Scope, *, function: Function | None = None,
        outer: GraphSite | None = None, holder: Node | None = None, depth: int = 1,
    ) -> GraphSite:  # fmt: skip
        check_depth(depth)
        nodes = tuple(graph)
        site = GraphSite(graph, kind, where, scope, function, outer, holder, nodes)
        for index, value in enumerate(graph.inputs):
            if value.type is not None:
                self.types.append(TypeSite(value.type, where, Step("input", index, value.name)))
        for value, constant in graph.initializers.items():
            self._constant(constant, where, Step("initializer", None, value.name))
        find_callee, reads, calls = self._callees.find, site.reads, site.calls
        for index, node in enumerate(nodes):
            reads.append(tuple(node.inputs))
            calls.setdefault(find_callee(node, scope), []).append(index)
            if node.attributes:
                site.attributed.append(index)
                for name, attribute in node.attributes.items():
                    self._attribute(AttributeSite(attribute, name, site, index), site, node, depth)
        self._declared(site)
        return site

    def _declared(self, site: GraphSite) -> None:
        """List the declared types of outputs, results and orphan value_info, each type once for a graph."""
        seen = {id(value.type) for value in site.graph.inputs}  # inputs are listed separately
        outputs = [("output", i, v) for i, v in enumerate(site.graph.outputs) if v is not None]
        values = (*site.values, *site.graph.orphan_value_info)
        for step, index, value in (*outputs, *(("value_info", v.value_info_index, v) for v in values)):
            if value.type is not None and id(value.type) not in seen:
                seen.add(id(value.type))
                if index is not None or value.constant is None:  # else it is the type of a tensor
                    self.types.append(TypeSite(value.type, site.where, Step(step, index, value.name)))

    def _attribute(self, subject: AttributeSite, site: GraphSite, node: Node | None, depth: int) -> None:
        attribute = subject.attribute
        alike = self._alike.get((id(attribute), site.function))
        if alike is not None:
            alike.append(subject)
            if attribute.type == "tensor" and not lacks_value(attribute):
                self._constant(attribute.value, subject.where)
            return
        self._alike[id(attribute), site.function] = alike = [subject]
        self.attributes.append(alike)
        if attribute.type not in _HOLDERS or lacks_value(attribute):
            return
        value, where = attribute.value, subject.where
        match attribute.type:
            case "tensor" | "sparse_tensor":
                self._constant(value, where)
            case "tensors" | "sparse_tensors":
                for index, tensor in enumerate(value or ()):
                    self._constant(tensor, where, Step("tensor", index))
            case "type" | "types":
                self.types += [TypeSite(t, where) for t in _listed(value) if t is not None]
            case "graph" | "graphs":
                for index, graph in enumerate(attribute.graphs):
                    at = where if attribute.type == "graph" else where.at("graph", index=index)
                    inner = self._graph(
                        graph, "subgraph", at, site.scope, function=site.function, outer=site, holder=node,
                        depth=depth + 1,
                    )  # fmt: skip
                    if node is not None:
                        site.inner.setdefault(node, []).append(inner)
                    else:
                        self.defaults.append(inner)
            case _:
                pass

    def _constant(self, constant: Constant | None, where: Location, step: Step | None = None) -> None:
        if isinstance(constant, SparseTensor):
            sparse = SparseSite(constant, where, step)
            self.sparse.append(sparse)
            where = sparse.where
            self.tensors.append(TensorSite(constant.values, where, Step("values")))
            self.tensors.append(TensorSite(constant.indices, where, Step("indices")))
        elif constant is not None:
            self.tensors.append(TensorSite(constant, where, step))


_HOLDERS = frozenset({
    "tensor", "tensors", "sparse_tensor", "sparse_tensors", "type", "types", "graph", "graphs",
})  # fmt: skip


def lacks_name(value: Value | None) -> bool:
    """Whether an input or output has no name; a result of a node gets one on saving."""
    return value is None or (not value.name and value.node is None)


def lacks_value(attribute: Attribute) -> bool:
    """Whether the attribute is declared as a tensor, graph or type, and has no value."""
    if attribute.ref or attribute.type not in _WHOLE:
        return False
    return attribute.value is None or (attribute.residue is not None and bool(attribute.residue.absent))


_WHOLE = frozenset({"tensor", "sparse_tensor", "graph", "type"})


def _listed(value: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)


class Read(NamedTuple):
    """A value, and the location that reads it before its definition."""

    value: Value
    where: Location


def _early_reads(root: GraphSite, visible: Iterable[Value] = ()) -> list[Read]:
    """Return every read of a value that is not defined yet, or nowhere; `visible` are defined before."""
    found: list[Read] = []
    _follow(root, set(visible), found)
    return found


def _follow(site: GraphSite, defined: set[Value], found: list[Read]) -> None:
    graph = site.graph
    own: list[Value] = [*graph.inputs, *graph.initializers]
    defined.update(own)
    for index, node in enumerate(site.nodes):
        for slot, value in enumerate(site.reads[index]):
            if value not in defined and value is not None:
                found.append(Read(value, site.at_node(index).at("input", index=slot, name=value.name)))
        for inner in site.inner.get(node, ()) if site.inner else ():
            _follow(inner, defined, found)
        for value in node.outputs:
            if value is not None:
                own.append(value)
                defined.add(value)
    for slot, value in enumerate(graph.outputs):
        if value is not None and value not in defined:
            found.append(Read(value, site.where.at("output", index=slot, name=value.name)))
    if site.outer is not None:
        defined.difference_update(own)
