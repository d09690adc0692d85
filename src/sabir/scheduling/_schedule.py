"""Making the schedule of a model: what each node calls, in which order, on which slots.

All that follows from the model alone is decided here, once for every engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import SchemaError, UnsupportedError, check_depth, quote
from sabir.ir import OLDEST_IR_OF_IMPORTS, Function, Value
from sabir.scheduling._labels import label_of
from sabir.scheduling._plan import make_plan
from sabir.scheduling._program import (
    ABSENT,
    FunctionCall,
    InvalidCall,
    OperatorCall,
    Program,
    ScheduledFunction,
    ScheduledSubgraph,
)
from sabir.scheduling._subgraph_types import SubgraphTypes, is_complete
from sabir.scheduling._values import ValueInfo
from sabir.schema import Callees, Scope, check_call, check_expansion, implicit_imports

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from sabir.ir import Attribute, Constant, Graph, Model, Node
    from sabir.scheduling._program import ScheduledCall, Slots
    from sabir.schema import ImplicitImport, Registry, Version


class Schedule(NamedTuple):
    """A model as programs; `notes` are sentences on what should be repaired in the file, though it runs.

    `experimental` names the operators called that a document declares as experimental.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> schedule(model, STANDARD).notes
    ()
    """

    program: Program
    notes: tuple[str, ...]
    experimental: tuple[str, ...] = ()


def schedule(model: Model, registry: Registry, *, newer_opsets: bool = False) -> Schedule:
    """Return the schedule of a model: a snapshot, which later edits of the model do not reach.

    With `newer_opsets` an operator set newer than the registry knows counts as the newest known one. Raises
    SchemaError for a value that nothing defines, UnsupportedError, LimitError past `depth` and `nodes`. A
    node that calls nothing known, or calls it wrongly, is an `InvalidCall`: only a plan that needs it fails.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> program = schedule(model, STANDARD).program
    >>> [call.label for call in program.calls]
    ["Relu with output 'y'"]
    """
    scope = Scope.of(model, registry, newer_opsets=newer_opsets)
    check_expansion([model.graph], scope)
    shared = _Shared()
    try:
        program = _Scheduler(model.graph, scope, shared).root_program()
    except RecursionError as error:
        raise UnsupportedError(
            "its graphs and functions are nested too deep for Python's stack; inline it first"
        ) from error
    notes = (*_notes_of_imports(model), *shared.notes)
    return Schedule(program, notes, tuple(shared.experimental))


def _notes_of_imports(model: Model) -> Iterator[str]:
    """Yield a note for each implicit import; none before IR 3, which has no imports that could be added."""
    if not 0 < model.ir_version < OLDEST_IR_OF_IMPORTS:
        yield from map(_implicit_import, implicit_imports(model))


def _implicit_import(found: ImplicitImport) -> str:
    where = "the model" if found.function is None else f"function {found.function}"
    return f"{where} uses {found.node.op} without importing ai.onnx; opset {found.version} is assumed"


class _Function(NamedTuple):
    """A scheduled function; `scope` is kept alive, as keys name what it contains by id.

    `absent` numbers the outputs that are inputs which the call leaves out. `outside` are the values of the
    caller that graphs among its attributes read.
    """

    scheduled: ScheduledFunction
    absent: frozenset[int]
    scope: Scope
    outside: tuple[Value, ...]


@dataclass(slots=True)
class _Shared:
    """The data that the graphs of one model share: scheduled functions, and the callees of nodes."""

    functions: dict[tuple[object, ...], _Function] = field(
        default_factory=dict[tuple[object, ...], _Function]
    )
    callees: Callees = field(default_factory=lambda: Callees(Scope.runnable))
    notes: list[str] = field(default_factory=list[str])
    experimental: dict[str, None] = field(default_factory=dict[str, None])


class _Scheduler:
    """Makes the program of one graph."""

    def __init__(
        self, graph: Graph, scope: Scope, shared: _Shared, *, depth: int = 1, absent: Iterable[Value] = ()
    ) -> None:
        """Take a graph and the scope of its nodes.

        `depth` counts the graphs around it, itself included; `absent` are the values of a function that have
        no content because its call leaves inputs out.
        """
        check_depth(depth)
        self._graph, self._scope, self._shared, self._depth = graph, scope, shared, depth
        self._absent = set(absent)
        self._slots: dict[Value, int] = {}
        self.captured: dict[Value, int] = {}

    def root_program(self, given: Collection[Value] = ()) -> Program:
        """Return the program of a main graph or a function body.

        Raises SchemaError for a captured value that is not `given` by the caller of the function.
        """
        program = self.program()
        for value in self.captured.keys() - given:
            raise SchemaError(
                f"{quote(value.name)} is read, but belongs to a graph that does not enclose its reader"
            )
        return program

    def program(self) -> Program:
        """Return the program; raises SchemaError for a value that nothing defines."""
        graph = self._graph
        inputs = tuple(self._info(v, self._slot(v)) for v in graph.inputs)
        constants: dict[int, Constant] = {self._slot(v): t for v, t in graph.initializers.items()}
        nodes = graph.sorted_nodes()
        if nodes != tuple(graph):
            self._shared.notes.append(
                f"the nodes of the graph {quote(graph.name)} are not in topological order"
            )
        calls = tuple(map(self._call, nodes))
        outputs = tuple(self._info(v, self._read(v)) for v in graph.outputs)
        self._check_names()
        return Program(
            name=graph.name,
            size=len(self._slots) + 1,
            inputs=inputs,
            outputs=outputs,
            values=tuple(self._info(v, slot) for v, slot in self._slots.items() if v not in self.captured),
            captures=tuple(self.captured.values()),
            constants=constants,
            calls=calls,
            producers={
                slot: place for place, call in enumerate(calls) for slot in call.outputs if slot != ABSENT
            },
        )

    def _check_names(self) -> None:
        """Raise SchemaError for two values of the graph that have one name in the file.

        Values that an edit gave equal names are distinct objects, and no error.
        """
        named: dict[str, Value] = {}
        for value, name in self._graph.clashes.items():
            if value.name != name or value not in self._slots or value in self.captured:
                continue
            if named.setdefault(name, value) is not value:
                first, second = (_definition(v) for v in (named[value.name], value))
                raise SchemaError(
                    f"{quote(value.name)} is defined twice in the graph {quote(self._graph.name)}: {first}"
                    f" and {second}; rename one of them"
                )

    # values

    @staticmethod
    def _info(value: Value | None, slot: int) -> ValueInfo:
        return ValueInfo("", None, ABSENT) if value is None else ValueInfo(value.name, value.type, slot)

    def _slot(self, value: Value | None) -> int:
        """Return the slot of a value, a new one at its first mention."""
        return ABSENT if value is None else self._slots.setdefault(value, len(self._slots) + 1)

    def _read(self, value: Value | None) -> int:
        """Return the slot of a value that is read; one of an outer graph is captured."""
        if value is None:
            return ABSENT
        slot = self._slots.get(value)
        if slot is not None:
            return slot
        if value.source is None:
            raise SchemaError(f"{quote(value.name)} is read, but nothing defines it")
        if value.home is not self._graph:
            self.captured[value] = self._slot(value)
        return self._slot(value)

    def _results_of(self, node: Node) -> Slots:
        return tuple([self._slot(v) for v in node.outputs])

    # calls

    def _call(self, node: Node) -> ScheduledCall:
        try:
            operands = tuple([self._read(v) for v in node.inputs])
            callee = self._shared.callees.of(node, self._scope)
            if isinstance(callee, Function):
                return self._function_call(callee, node, operands)
            return self._operator_call(callee, node, operands)
        except (SchemaError, UnsupportedError) as error:
            return InvalidCall(error, self._results_of(node), label_of(node))

    def _operator_call(self, version: Version, node: Node, operands: Slots) -> OperatorCall:
        signature = version.formal
        signature.check_arity(node.inputs, len(node.outputs))
        attributes = self._scope.arguments(node.attributes)
        signature.check(attributes)
        problem = self._missing_operand(version, node)
        results, named = self._results_of(node), tuple([v is not None for v in node.outputs])
        if problem or not any(a.graphs for a in attributes.values()):  # also those that a caller hands in
            values: dict[str, Any] = {name: a.value for name, a in attributes.items() if not a.graphs}
            return OperatorCall(version, values, operands, results, named, label_of(node), problem)
        values, subgraphs = self._with_subgraphs(attributes)
        captures = tuple(slot for s in subgraphs for slot in s.captured)
        cost = 1 + sum(s.plan.cost for s in subgraphs)
        return OperatorCall(
            version, values, operands, results, named, label_of(node), captures=captures, cost=cost
        )

    def _with_subgraphs(
        self, attributes: Mapping[str, Attribute]
    ) -> tuple[dict[str, Any], list[ScheduledSubgraph]]:
        """Return the values of attributes, graphs replaced by subgraphs, and these in order."""
        subgraphs: list[ScheduledSubgraph] = []

        def value_of(attribute: Attribute) -> Any:
            if not attribute.graphs:
                return attribute.value
            found = tuple(map(self._subgraph, attribute.graphs))
            subgraphs.extend(found)
            return found[0] if attribute.type == "graph" else found

        return {name: value_of(a) for name, a in attributes.items()}, subgraphs

    def _subgraph(self, graph: Graph) -> ScheduledSubgraph:
        scope = self._scope.scope_of(graph)
        inner = _Scheduler(graph, scope, self._shared, depth=self._depth + 1, absent=self._absent)
        program = inner.program()
        plan = make_plan(program, [v.slot for v in program.outputs])
        outer = list(inner.captured)
        outside = [outer[place] for place in plan.captured]
        declared = not graph.inputs or all(is_complete(v.type) for v in program.outputs)
        types = None if declared else SubgraphTypes(graph, scope, outside)
        return ScheduledSubgraph(program, plan, tuple(map(self._read, outside)), graph.input_counts, types)

    def _function_call(self, function: Function, node: Node, operands: Slots) -> FunctionCall:
        """Return the call of a function; equal attributes and equal operands left out share a plan."""
        check_call(function, node)
        self._note_status(node)
        inner = self._scope.of_call(function, node)
        ports: Iterable[tuple[Value | None, Value | None]] = zip_longest(function.graph.inputs, node.inputs)
        absent = frozenset[Value](p for p, v in ports if p is not None and (v is None or v in self._absent))
        bindings = (inner.bindings or {}).values()
        given = frozenset(v for a in bindings for g in a.graphs for v in g.captures())
        absent |= given & self._absent
        key = (id(function), absent, *map(id, bindings))
        found = self._shared.functions.get(key)
        if found is None:
            found = self._shared.functions[key] = self._scheduled(function, inner, absent, given)
        self._absent.update(v for i, v in enumerate(node.outputs) if v is not None and i in found.absent)
        scheduled, results = found.scheduled, self._results_of(node)
        captures = tuple(map(self._read, found.outside))
        return FunctionCall(scheduled, operands, results, label_of(node), 1 + scheduled.plan.cost, captures)

    def _note_status(self, node: Node) -> None:
        declaration = self._scope.declaration(node)
        if declaration is not None and declaration.entry.status == "experimental":
            self._shared.experimental.setdefault(str(declaration))

    def _scheduled(
        self, function: Function, scope: Scope, absent: frozenset[Value], given: frozenset[Value]
    ) -> _Function:
        """Return a scheduled function; graphs that its caller hands in may read the values `given`."""
        inner = _Scheduler(function.graph, scope, self._shared, absent=absent)
        program = inner.root_program(given)
        plan = make_plan(program, [v.slot for v in program.outputs])
        returned = frozenset(i for i, v in enumerate(function.graph.outputs) if v in absent)
        captured = list(inner.captured)
        outside = tuple(captured[place] for place in plan.captured)
        return _Function(ScheduledFunction(program, plan), returned, scope, outside)

    def _missing_operand(self, version: Version, node: Node) -> str:
        """Return which operand a node needs that the call of the function around it leaves out, or ""."""
        absent = [v for v in node.inputs if v is not None and v in self._absent] if self._absent else []
        if not absent:
            return ""
        try:
            version.formal.check_arity([None if v in absent else v for v in node.inputs], len(node.outputs))
        except SchemaError as error:
            names = ", ".join(quote(v.name) for v in dict.fromkeys(absent))
            return f"{error}, and the call of the function leaves {names} out"
        return ""


def _definition(value: Value) -> str:
    """Return what defines a value of a graph, for a message."""
    return f"by the node {label_of(value.node)}" if value.node is not None else "as an input or initializer"
