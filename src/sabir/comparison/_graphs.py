"""Changes of what graphs compute: nodes, attributes, operands and weights."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from sabir.base import Location, counted, quote
from sabir.comparison._alignment import Alignment
from sabir.comparison._changes import Change
from sabir.comparison._references import versioned
from sabir.ir import Graph, Node, SparseTensor, Tensor, TensorType, Value, canonical_domain, places

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from sabir.comparison._identity import Identities
    from sabir.ir import Attribute, Constant, Model, Place

    ValuePair: TypeAlias = tuple[Value | None, Value | None]

_LONGEST = 60  # characters of an attribute's value in a message


class GraphComparer:
    """Compares graphs of two models, and collects what is reported once for many nodes."""

    def __init__(self, old: Identities, new: Identities) -> None:
        self.old, self.new = old, new
        self.alignment = Alignment(old, new)
        self.old_places, self.new_places = _Places(old.model), _Places(new.model)
        self._weights: set[tuple[Value, Value]] = set()
        self._versions: dict[str, list[tuple[Node, Node]]] = defaultdict(list)
        self._documented: list[tuple[Node, Node]] = []
        self._described: list[tuple[Node, Node]] = []
        self._placed: list[tuple[Node, Node]] = []

    def graphs(
        self, old: Graph, new: Graph, inputs: Iterable[tuple[Value, Value]], outputs: Iterable[ValuePair]
    ) -> Iterator[Change]:
        """Yield the changes of two graphs whose inputs and outputs correspond as listed."""
        outputs = tuple(outputs)
        self.alignment.align(old, new, inputs, outputs)
        for node in new:
            before = self.alignment.old_nodes.get(node)
            if before is None:
                message = f"{_label(node)} is new"
                yield Change("node-added", message, None, self.new_places.of(node))
            else:
                yield from self._nodes(before, node)
        for node in old:
            if node not in self.alignment.new_nodes:
                yield Change("node-removed", f"{_label(node)} is gone", self.old_places.of(node), None)
        for here, there in outputs:
            yield from self._outputs(here, there, new)
        yield from self._annotations(old, new)
        yield from self._unused(old, new)

    def summaries(self) -> Iterator[Change]:
        """Yield what was found at many nodes, each once with the number of nodes."""
        groups = [("operator-version-changed", text, pairs) for text, pairs in self._versions.items()]
        groups += [
            ("documentation-changed", "other doc strings of nodes", self._documented),
            ("metadata-changed", "other metadata of nodes", self._described),
            ("devices-changed", "another distribution of nodes over devices", self._placed),
        ]
        for kind, text, pairs in groups:
            if pairs:
                here, there = pairs[0]
                also = f", and {counted(len(pairs) - 1, 'more node')}" if len(pairs) > 1 else ""
                yield Change(kind, f"{text}{also}", self.old_places.of(here), self.new_places.of(there))

    # nodes

    def _nodes(self, old: Node, new: Node) -> Iterator[Change]:
        pair = old, new
        if old.doc != new.doc:
            self._documented.append(pair)
        if (old.metadata or {}) != (new.metadata or {}):
            self._described.append(pair)
        if _devices(old) != _devices(new):
            self._placed.append(pair)
        if self.old.nodes[old] == self.new.nodes[new]:
            return
        before, after = self.old.versions[old], self.new.versions[new]
        if before != after:
            self._versions[f"{_operator(old, before)} became {_operator(new, after)}"].append(pair)
        for name in dict.fromkeys((*old.attributes, *new.attributes)):
            yield from self._attributes(name, old, new)
        for index in range(max(len(old.inputs), len(new.inputs))):
            here, there = (n.inputs[index] if index < len(n.inputs) else None for n in pair)
            yield from self._operands(index, here, there, pair)
        if old.overload != new.overload:
            message = f"{_label(new)} calls overload {quote(new.overload)} instead of {quote(old.overload)}"
            yield self._at("attribute-changed", message, old, new)

    def _attributes(self, name: str, old: Node, new: Node) -> Iterator[Change]:
        if self.old.attributes[old].get(name) == self.new.attributes[new].get(name):
            return
        before, after = old.attributes.get(name), new.attributes.get(name)
        if before is not None and after is not None and before.graphs and after.graphs:
            yield from self._subgraphs(name, old, new)
            return
        kind = "attribute-changed"
        if before is None or after is None:
            message = "is gone" if after is None else f"is new: {_text(after)}"
        elif isinstance(before.value, Tensor) and isinstance(after.value, Tensor):
            kind, message = "weights-changed", _contents_text(before.value, after.value)
        else:
            message = f"was {_text(before)} and is {_text(after)}"
        yield Change(
            kind,
            f"attribute {quote(name)} of {_label(new)} {message}",
            self.old_places.of(old).at("attribute", name=name),
            self.new_places.of(new).at("attribute", name=name),
        )

    def _subgraphs(self, name: str, old: Node, new: Node) -> Iterator[Change]:
        pairs = old.attributes[name].graphs, new.attributes[name].graphs
        same = len(pairs[0]) == len(pairs[1]) and all(
            (len(a.inputs), len(a.outputs)) == (len(b.inputs), len(b.outputs))
            for a, b in zip(*pairs, strict=True)
        )
        if not same:
            message = f"attribute {quote(name)} of {_label(new)} has other graphs, inputs or outputs"
            yield self._at("attribute-changed", message, old, new)
        for here, there in zip(*pairs, strict=False):
            inputs = zip(here.inputs, there.inputs, strict=False)
            yield from self.graphs(here, there, inputs, zip(here.outputs, there.outputs, strict=False))

    def _operands(
        self, index: int, here: Value | None, there: Value | None, pair: tuple[Node, Node]
    ) -> Iterator[Change]:
        yield from self._weights_of(here, there)
        if self._is_rewired(here, there):
            shown = f"operand {index} of {_label(pair[1])} was {_named(here)} and is {_named(there)}"
            yield self._at("operands-changed", shown, *pair)

    def _outputs(self, here: Value | None, there: Value | None, new: Graph) -> Iterator[Change]:
        yield from self._weights_of(here, there)
        if self._is_rewired(here, there):
            message = (
                f"the output {_named(there)} is computed by {_source(there)}, and was by {_source(here)}"
            )
            location = self.new_places.of(new)
            yield Change("output-recomputed", message, location, location)

    def _is_rewired(self, here: Value | None, there: Value | None) -> bool:
        """Return whether values that are read in the same place differ, and no other change explains it."""
        if self.old.of_value(here) == self.new.of_value(there) or self._are_weights(here, there):
            return False
        if here is not None and there is not None and self.alignment.old_values.get(there) is here:
            return False
        is_added = there is not None and there.node is not None and there.node not in self.alignment.old_nodes
        is_removed = here is not None and here.node is not None and here.node not in self.alignment.new_nodes
        return not (is_added or is_removed or self._is_new_input(there))

    def _are_weights(self, here: Value | None, there: Value | None) -> bool:
        """Return whether both values are initializers, and no inputs that a consumer may feed."""
        pairs = (here, self.old), (there, self.new)
        return all(v is not None and v in m.constants and v.constant is not None for v, m in pairs)

    def _is_new_input(self, value: Value | None) -> bool:
        return value is not None and value.is_input and value not in self.alignment.old_values

    def _at(self, kind: str, message: str, old: Node, new: Node) -> Change:
        return Change(kind, message, self.old_places.of(old), self.new_places.of(new))

    # weights

    def _weights_of(self, here: Value | None, there: Value | None) -> Iterator[Change]:
        """Yield the change of two weights that are read in the same place, once."""
        if here is None or there is None or not self._are_weights(here, there):
            return
        before, after = here.constant, there.constant
        if before is None or after is None or self.old.values[here] == self.new.values[there]:
            return
        if (here, there) in self._weights:
            return
        self._weights.add((here, there))
        message = f"the initializer {_named(there)} {_contents_text(before, after)}"
        yield Change("weights-changed", message, self.old_places.of(here), self.new_places.of(there))

    def _unused(self, old: Graph, new: Graph) -> Iterator[Change]:
        before, after = _unread(old, self.old), _unread(new, self.new)
        lost, found = before.keys() - after.keys(), after.keys() - before.keys()
        if lost or found:
            names = [_named(values[key]) for values, keys in ((before, lost), (after, found)) for key in keys]
            message = (
                f"{counted(len(names), 'initializer')} that nothing reads: {', '.join(sorted(names)[:3])}"
            )
            where = self.old_places.of(old), self.new_places.of(new)
            yield Change("unused-weights-changed", message, *where)

    def _annotations(self, old: Graph, new: Graph) -> Iterator[Change]:
        keys = self.alignment.key_of_old, self.alignment.key_of_new
        before, after = starmap(_annotated, zip((old, new), keys, strict=True))
        if before != after:
            where = self.old_places.of(old), self.new_places.of(new)
            yield Change("quantization-changed", "other quantization annotations", *where)


def _annotated(graph: Graph, key: Callable[[Value], Hashable]) -> set[Hashable]:
    """Return the quantization annotations of a graph, of keys of values."""
    return {(key(a.value), tuple((name, key(v)) for name, v in a.parameters)) for a in graph.annotations}


def _unread(graph: Graph, model: Identities) -> dict[int, Value]:
    """Return the initializers that nothing reads, by their identities."""
    return {model.values[v]: v for v in graph.initializers if v in model.constants and not v.uses}


def _contents_text(old: Constant, new: Constant) -> str:
    """Return how two tensors of different contents differ."""
    types = [TensorType(t.element, t.shape) for t in (old, new)]
    if types[0] != types[1]:
        return f"was {types[0]} and is {types[1]}"
    if isinstance(old, SparseTensor) != isinstance(new, SparseTensor):
        return f"is {'sparse' if isinstance(new, SparseTensor) else 'dense'} now"
    return f"has other contents ({types[1]})"


def _text(attribute: Attribute) -> str:
    """Return the value of an attribute for a message."""
    if attribute.ref:
        return f"the function's attribute {quote(attribute.ref)}"
    value: Any = attribute.value
    if attribute.type in {"float", "int", "floats", "ints"}:
        shown = str(list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value)
    elif attribute.type in {"string", "strings"}:
        shown = (
            quote(value) if isinstance(value, (str, bytes)) else repr(list(cast("tuple[object, ...]", value)))
        )
    else:
        return f"another {attribute.type}"
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def _named(value: Value | None) -> str:
    if value is None:
        return "left out"
    return quote(value.name) if value.name else "a value without a name"


def _source(value: Value | None) -> str:
    if value is None or value.node is None:
        return "no node"
    return _label(value.node)


def _label(node: Node) -> str:
    """Return a node as messages name it: its operator, and its name if it has one."""
    return f"{_operator(node)} {quote(node.name)}" if node.name else _operator(node)


def _operator(node: Node, version: int | None = None) -> str:
    return versioned(canonical_domain(node.domain), node.op, version)


def _devices(node: Node) -> list[object]:
    """Return the distribution of a node over devices, without the names of values."""
    return [
        (d.configuration, d.pipeline_stage, [(s.devices, s.groups, s.axes) for s in d.shardings])
        for d in node.devices
    ]


class _Places:
    """Finds the locations of the graphs, nodes and values of a model."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @cached_property
    def _places(self) -> dict[Graph | Node | Value, Place]:
        return {place.object: place for place in places(self._model, Graph, Node, Value)}

    def of(self, item: Graph | Node | Value) -> Location:
        """Return the location of an object; that of the model for a value that nothing defines."""
        place = self._places.get(item)
        return Location() if place is None else place.inside if isinstance(item, Graph) else place.location
