"""Models in float16 or bfloat16: which nodes can compute in it, and where values are cast."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import quote
from sabir.elements import BFLOAT16, FLOAT, FLOAT16
from sabir.ir import ArrayTensor, Node, Tensor, TensorType, Value, canonical_domain, places
from sabir.quantization._calibration import observe
from sabir.quantization._editing import Edit
from sabir.quantization._report import NodeReport
from sabir.rewriting import InsertionPoint, constant_of
from sabir.schema import Constraint, port_at

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Array, Graph, Model, Use
    from sabir.quantization._exclusion import Exclusion
    from sabir.quantization._sources import Feeds
    from sabir.schema import Input, Registry, Version

OPSETS = {"float16": 1, "bfloat16": 22}  # convolutions and pools admit bfloat16 from opset 22 on
_LARGEST = {FLOAT16: 65504.0, BFLOAT16: 3.3895313892515355e38}
_HEADROOM = 2.0  # other feeds than those of the calibration have larger values


def narrow(
    model: Model,
    to: ElementType,
    feeds: Feeds | None,
    excluded: Exclusion,
    registry: Registry,
    progress: Callable[[int, int], None] | None = None,
    *,
    keep_io: bool,
) -> tuple[Model, tuple[NodeReport, ...]]:
    """Change a model: nodes of the main graph compute in a type of 16 bits where their operators admit it.

    With feeds, nodes whose operands or results come near the end of the range of the type stay wide.
    """
    edit = Edit(model, registry)
    choice = _Choice(edit, to, excluded)
    if feeds is not None:
        choice.observe(feeds, registry, progress)
    reports = {
        place.object: choice.report(place.object, str(place.location)) for place in places(model, Node)
    }
    _Casting(edit, to, choice, keep_io=keep_io).run()
    return edit.finish(), tuple(report for report in reports.values() if report is not None)


class _Choice:
    """Which nodes compute in 16 bits, and the reasons why the others do not."""

    def __init__(self, edit: Edit, to: ElementType, excluded: Exclusion) -> None:
        self._edit, self._to = edit, to
        self.wide_values = {value: kind for value in _values(edit.model) if (kind := self._float(value))}
        self._largest: dict[Value, float] = {}
        excluded.require_names(edit.model)
        self._stay = {p.object: excluded.reason(p.object, p.location) for p in places(edit.model, Node)}
        self._reasons: dict[Node, str] = {}

    def observe(self, feeds: Feeds, registry: Registry, progress: Callable[[int, int], None] | None) -> None:
        """Find the largest elements of all values in runs with the feeds."""
        graph = self._edit.model.graph
        computed = [v for v in self.wide_values if v.home is graph and constant_of(v) is None]
        found = observe(
            self._edit.model, computed, feeds, registry, progress, with_counts=False, allow_infinite=True
        )
        self._largest = {value: max(-o.low, o.high) for value, o in found.items()}

    def is_narrow(self, node: Node) -> bool:
        """Return whether a node computes in 16 bits."""
        return not self.reason(node)

    def reason(self, node: Node) -> str:
        """Return why a node stays as it is, or nothing."""
        if node not in self._reasons:
            self._reasons[node] = self._found_reason(node)
        return self._reasons[node]

    def report(self, node: Node, location: str) -> NodeReport | None:
        """Return the report of a node, None for one without values of type float32."""
        if not any(value in self.wide_values for value in (*node.inputs, *node.outputs)):
            return None
        reason = self.reason(node)
        return NodeReport(location, node.name, node.op, "" if reason else self._to.name, reason)

    def slots(self, node: Node) -> list[int]:
        """Return the inputs that a narrow node reads in 16 bits."""
        version = self._version(node)
        return [] if version is None else list(self._admitted(node.inputs, version.inputs))

    def _float(self, value: Value) -> TensorType | None:
        kind = self._edit.tensor_type(value)
        return kind if kind is not None and kind.element is FLOAT else None

    def _version(self, node: Node) -> Version | None:
        return self._edit.rewriter.scope.version(node)

    def _found_reason(self, node: Node) -> str:
        if self._stay[node]:
            return self._stay[node]
        if node.graph is not self._edit.model.graph or node.graphs:
            return "it has a subgraph, or is in a subgraph or a function"
        version = self._version(node)
        if version is None:
            return "it calls a function, or an operator that is not known"
        if node.op == "Constant" and not canonical_domain(node.domain):
            return "it is a constant, which each reader takes in its own type"
        if any(attribute.type in {"tensor", "tensors"} for attribute in node.attributes.values()):
            return "the tensors among its attributes have a type of their own"
        return self._type_reason(node, version) or self._range_reason(node)

    def _type_reason(self, node: Node, version: Version) -> str:
        """Return why the signature does not admit 16 bits, or nothing."""
        inputs = self._admitted(node.inputs, version.inputs)
        shared = {port.type for port in inputs.values()}
        outputs = [(i, v) for i, v in enumerate(node.outputs) if v in self.wide_values]
        if not outputs:
            return "it has no result of type float32"
        if any(port_at(version.outputs, index).type not in shared for index, _ in outputs):
            return f"the operator does not take {self._to} and compute it"
        return ""

    def _admitted(self, values: Collection[Value | None], ports: Sequence[Input]) -> dict[int, Input]:
        """Return the ports of the float32 values that may also be of the type of 16 bits."""
        found: dict[int, Input] = {}
        for index, value in enumerate(values):
            if value not in self.wide_values:
                continue
            port = port_at(ports, index)
            if isinstance(port.type, Constraint) and f"tensor({self._to})" in port.type.allowed:
                found[index] = port
        return found

    def _range_reason(self, node: Node) -> str:
        """Return which value is too large, or nothing."""
        most = _LARGEST[self._to]
        for value in dict.fromkeys((*node.inputs, *node.outputs)):
            if value is None or value not in self.wide_values:
                continue
            data = constant_of(value)
            largest = self._largest.get(value, 0.0) * _HEADROOM if data is None else _largest(data.array())
            if largest > most:
                return (
                    f"{quote(value.name)} has elements up to {largest:.3g}, and {self._to} ends at {most:.3g}"
                )
        return ""


class _Casting:
    """The edit: constants in both types, and a Cast where a value is read in another type than it has."""

    def __init__(self, edit: Edit, to: ElementType, choice: _Choice, *, keep_io: bool) -> None:
        self._edit, self._to, self._choice, self._keep_io = edit, to, choice, keep_io
        self._graph: Graph = edit.model.graph
        self._state = edit.model.state()
        self._narrow_reads: set[tuple[Node, int]] = set()

    def run(self) -> None:
        narrow_nodes = [node for node in self._graph if self._choice.is_narrow(node)]
        self._narrow_reads = {(node, slot) for node in narrow_nodes for slot in self._choice.slots(node)}
        narrow_results = {value for node in narrow_nodes for value in node.outputs}
        for value in self._choice.wide_values:
            if value.home is not self._graph:
                continue
            data = constant_of(value, self._state)
            if data is not None:
                self._store(value, data.array())
            else:
                is_narrow = value in narrow_results or (value.is_input and not self._keep_io)
                self._place(value, is_produced_narrow=is_narrow)

    def _is_narrow_use(self, use: Use) -> bool:
        if isinstance(use.user, Node):
            return (use.user, use.slot) in self._narrow_reads
        return use.user is self._graph and not self._keep_io

    def _store(self, value: Value, data: Array) -> None:
        """Let narrow readers of a constant read it in 16 bits."""
        uses = [use for use in value.uses if self._is_narrow_use(use)]
        if not uses:
            return
        with np.errstate(over="ignore"):  # infinities, which stay what they are
            tensor = ArrayTensor(data.astype(self._to.dtype))
        if value.node is None and len(uses) == value.read_count and not self._is_annotated(value):
            self._graph.set_initializer(value, tensor)
            return
        copy = self._graph.add_initializer(self._fresh(value, self._to), tensor)
        self._read(uses, copy)

    def _is_annotated(self, value: Value) -> bool:
        return any(value in {v for _, v in a.parameters} for a in self._graph.annotations)

    def _place(self, value: Value, *, is_produced_narrow: bool) -> None:
        """Give a value the type that it is produced in, and readers of the other type a Cast of it.

        An input or output of the model keeps its name and type, also where a node produces the other type.
        """
        is_public = value.is_input or self._graph in {use.user for use in value.uses}
        is_narrow = not self._keep_io if is_public else is_produced_narrow
        others = [use for use in value.uses if self._is_narrow_use(use) != is_narrow]
        if is_narrow == is_produced_narrow and not others:
            self._retype(value, is_narrow=is_narrow)
            return
        other_type = FLOAT if is_narrow else self._to
        other = Value(self._fresh(value, other_type), self._type(value, other_type))
        self._read(others, other)
        self._retype(value, is_narrow=is_narrow)
        producer = value.node
        if is_narrow == is_produced_narrow:
            point = InsertionPoint.start(self._graph) if producer is None else InsertionPoint.after(producer)
            point.insert(Node("Cast", [value], [other], {"to": other_type.number}))
        elif producer is not None:
            producer.outputs = [other if v is value else v for v in producer.outputs]
            to = self._to if is_narrow else FLOAT
            InsertionPoint.after(producer).insert(Node("Cast", [other], [value], {"to": to.number}))

    def _retype(self, value: Value, *, is_narrow: bool) -> None:
        if not is_narrow:
            return
        value.type = self._type(value, self._to)
        if value.is_input and isinstance(value.constant, Tensor):
            self._graph.set_initializer(value, ArrayTensor(value.constant.array().astype(self._to.dtype)))

    def _type(self, value: Value, to: ElementType) -> TensorType:
        return TensorType(to, self._choice.wide_values[value].shape)

    def _fresh(self, value: Value, to: ElementType) -> str:
        return self._edit.rewriter.names.fresh(f"{value.name}_{to if to is not FLOAT else 'float32'}")

    def _read(self, uses: Iterable[Use], value: Value) -> None:
        for use in uses:
            if isinstance(use.user, Node):
                self._edit.read(use.user, use.slot, value)
            else:
                use.user.outputs[use.slot] = value


def _largest(array: Array) -> float:
    finite = array[np.isfinite(array)]
    return float(np.abs(finite).max(initial=0))


def _values(model: Model) -> Iterator[Value]:
    for graph in model.graph.scopes():
        yield from graph.defined()
