"""Programs: a graph bound for evaluation, every node a call over numbered slots.

All that does not depend on the data is settled here: what each node calls, with which arguments, where its
inputs and outputs lie. A program refers to nothing of the model but frozen facts, so that later edits of the
model do not reach it, and dropping it frees the constants.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from itertools import starmap, zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import (
    ACCIDENTS,
    EvaluationError,
    SabirError,
    SchemaError,
    UnsupportedError,
    check_depth,
    quote,
)
from sabir.evaluation._bodies import Inner, Port, calling, framed
from sabir.evaluation._calls import Callees, OperatorCall, plain_step
from sabir.evaluation._declared import declaration
from sabir.evaluation._plan import Plan
from sabir.evaluation._sizes import numbers_in, numbers_of
from sabir.evaluation._steps import ABSENT, Later, Step, Unbound
from sabir.evaluation._types import Types
from sabir.evaluation._typing import Typing, is_whole
from sabir.ir import Function, Graph, Node, SparseTensor, TensorType, Value
from sabir.schema import check_call

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Array, Constant
    from sabir.schema import Scope, Version


@dataclass(frozen=True, slots=True)
class Program:
    """A graph bound for evaluation.

    `constants` has an array for each slot of an initializer, and None for each that a run fills. `producers`
    tells which of `steps` fills a slot, `captures` has the slots of outer values. `numbers` counts the
    elements of all constants, those of functions and subgraphs too.
    """

    constants: list[Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    captures: tuple[int, ...]
    steps: list[Step | Unbound | Later]
    producers: dict[int, int]
    numbers: int

    @property
    def kept(self) -> Iterable[int]:
        """The slots whose values outlive their last read: what a run did not compute."""
        return (slot for slot in range(len(self.constants)) if slot not in self.producers)


class BoundFunction(NamedTuple):
    """A function bound for one set of attributes; `scope` stays alive, as keys name what it holds by id.

    `absent` numbers the outputs that are inputs which the call leaves out.
    """

    plan: Plan
    absent: frozenset[int]
    scope: Scope


@dataclass(slots=True)
class Shared:
    """What the binders of one model share: bound functions, and what the nodes of each scope call.

    `notes` are what a run goes on after, though the file should be mended.
    """

    functions: dict[tuple[object, ...], BoundFunction] = field(
        default_factory=dict[tuple[object, ...], BoundFunction]
    )
    callees: dict[int, Callees] = field(default_factory=dict[int, Callees])
    notes: list[str] = field(default_factory=list[str])

    def callees_in(self, scope: Scope) -> Callees:
        """Return what the nodes of a scope call."""
        return self.callees.setdefault(id(scope), Callees(scope))


class Binder:
    """Makes the program of one graph; the functions of a model are bound once for all its graphs."""

    def __init__(
        self,
        graph: Graph,
        scope: Scope,
        *,
        shared: Shared | None = None,
        depth: int = 1,
        absent: Iterable[Value] = (),
        strict: bool = False,
    ) -> None:
        """Take a graph and the scope of its nodes.

        `depth` counts the graphs around it, itself included; `absent` are the inputs of a function that its
        call leaves out.
        """
        check_depth(depth)
        self._graph, self._scope, self._depth, self._strict = graph, scope, depth, strict
        self._absent = set(absent)
        self._shared = Shared() if shared is None else shared
        self._callees = self._shared.callees_in(scope)
        self._slots: dict[Value, int] = {}
        self._constants: list[Any] = [None]
        self._numbers = 0
        self.captured: dict[Value, int] = {}
        self.arrays: dict[Value, Array] = {}

    def bind(self) -> Program:
        """Return the program.

        Raises SchemaError for outputs that nothing defines, and what is wrong with an initializer. A node
        that cannot be bound is an `Unbound` step.
        """
        graph = self._graph
        inputs = tuple(self._slot(v) for v in graph.inputs)
        for value, tensor in graph.initializers.items():
            self._initialize(value, tensor)
        needed = _needed(graph)
        nodes = graph.sorted_nodes()
        if nodes != tuple(graph):
            self._shared.notes.append(
                f"the nodes of the graph {quote(graph.name)} are not in topological order"
            )
        steps = [self._step(node, later=node not in needed) for node in nodes]
        outputs = tuple(self._read(v) for v in graph.outputs)
        producers = {
            slot: place for place, step in enumerate(steps) for slot in step.outputs if slot != ABSENT
        }
        captures = tuple(self.captured.values())
        return Program(self._constants, inputs, outputs, captures, steps, producers, self._numbers)

    @property
    def notes(self) -> list[str]:
        """What a run goes on after, though the file should be mended."""
        return self._shared.notes

    def own_slots(self) -> dict[Value, int]:
        """Return the slots of the values that the graph itself defines."""
        return {value: slot for value, slot in self._slots.items() if value not in self.captured}

    def _initialize(self, value: Value, tensor: Constant) -> None:
        array = _array(value, tensor)
        self._constants[self._slot(value)] = self.arrays[value] = array
        self._numbers += 2 * tensor.values.size if isinstance(tensor, SparseTensor) else numbers_of(array)

    # values

    def _slot(self, value: Value | None) -> int:
        """Return the slot of a value, a new one at its first mention."""
        if value is None:
            return ABSENT
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = len(self._constants)
            self._constants.append(None)
        return slot

    def _read(self, value: Value | None) -> int:
        """Return the slot of a value that is read; one of an outer graph is captured."""
        if value is not None and value not in self._slots:
            if value.source is None:
                raise SchemaError(f"{quote(value.name)} is read, and nothing defines it")
            if value.home is not self._graph:
                self.captured[value] = self._slot(value)
        return self._slot(value)

    # nodes

    def _step(self, node: Node, *, later: bool) -> Step | Unbound | Later:
        """Return a node as a step; one that no output needs is bound `later`, if it can be then."""
        try:
            return self._bound(node, later=later)
        except (SchemaError, UnsupportedError) as error:
            return Unbound(error, _label(node), self._results_of(node))

    def _bound(self, node: Node, *, later: bool) -> Step | Later:
        inputs = tuple(self._read(v) for v in node.inputs)
        callee = self._callees.of(node)
        if isinstance(callee, Function):
            return self._function_step(callee, node, inputs)
        call = self._call(callee, node, inputs)
        if node.graphs:
            return self._step_with_bodies(call)
        if later:
            return Later(functools.partial(plain_step, call), call.label, inputs, call.outputs)
        self._numbers += numbers_in(call.attributes)
        return plain_step(call)

    def _call(self, version: Version, node: Node, inputs: tuple[int, ...]) -> OperatorCall:
        version.formal.check_arity(node.inputs, len(node.outputs))
        return OperatorCall(
            version,
            dict(self._scope.arguments(node.attributes)),
            inputs,
            self._results_of(node),
            tuple(v is not None for v in node.outputs),
            _label(node),
            self._lack(version, node),
        )

    def _step_with_bodies(self, call: OperatorCall) -> Step:
        if call.lack:
            return plain_step(call)
        self._numbers += numbers_in(call.attributes)
        bodies: list[Inner] = []

        def body(graph: Graph) -> Inner:
            bodies.append(self._body(graph))
            return bodies[-1]

        binding = call.version.binding("evaluate")
        function = framed(binding, binding.arguments(call.attributes, body), call.facts)
        captured = tuple(slot for inner in bodies for slot in inner.captured)
        cost = 1 + sum(inner.plan.cost for inner in bodies)
        types = Types(call.version)
        return Step(
            function, call.inputs, call.outputs, call.label, types, framed=True, captured=captured, cost=cost
        )

    def _body(self, graph: Graph) -> Inner:
        depth, strict = self._depth + 1, self._strict
        binder = Binder(
            graph, self._scope, shared=self._shared, depth=depth, absent=self._absent, strict=strict
        )
        program = binder.bind()
        plan = Plan(program, program.outputs)
        self._numbers += program.numbers
        outer = list(binder.captured)
        outside = [outer[place] for place in plan.captured]
        whole = all(v is not None and is_whole(v.type) for v in graph.outputs)
        typing = None if whole else Typing(graph, self._scope, outside)
        inputs = _ports(graph, "input", graph.inputs, strict=strict)
        outputs = _ports(graph, "output", graph.outputs, strict=strict)
        declared = [port.declared for port in (*inputs, *outputs) if port.declared is not None]
        has_variables = any(d.has_variables for d in declared)
        return Inner(
            plan, tuple(map(self._read, outside)), graph.name, graph.input_counts, inputs, outputs,
            declares=bool(declared), has_variables=has_variables, typing=typing,
        )  # fmt: skip

    def _function_step(self, function: Function, node: Node, inputs: tuple[int, ...]) -> Step:
        """Return the call of a function; calls with the same attributes and inputs left out share a plan."""
        check_call(function, node)
        inner = self._scope.inside(function, node)
        ports: Iterable[tuple[Value | None, Value | None]] = zip_longest(function.graph.inputs, node.inputs)
        absent = frozenset[Value](p for p, v in ports if p is not None and (v is None or v in self._absent))
        key = (id(function), absent, *map(id, (inner.bindings or {}).values()))
        bound = self._shared.functions.get(key)
        if bound is None:
            binder = Binder(function.graph, inner, shared=self._shared, absent=absent, strict=self._strict)
            program = binder.bind()
            refuse_captures(binder)
            returned = frozenset(i for i, v in enumerate(function.graph.outputs) if v in absent)
            bound = self._shared.functions[key] = BoundFunction(
                Plan(program, program.outputs), returned, inner
            )
            self._numbers += program.numbers
        self._absent.update(v for i, v in enumerate(node.outputs) if v is not None and i in bound.absent)
        step, results = calling(bound.plan), self._results_of(node)
        return Step(step, inputs, results, _label(node), framed=True, cost=1 + bound.plan.cost)

    def _lack(self, version: Version, node: Node) -> str:
        """Return what a node lacks because the call of the function around it leaves an input out, or ""."""
        absent = [v for v in node.inputs if v is not None and v in self._absent]
        if not absent:
            return ""
        try:
            version.formal.check_arity([None if v in absent else v for v in node.inputs], len(node.outputs))
        except SchemaError as error:
            names = ", ".join(quote(v.name) for v in dict.fromkeys(absent))
            return f"{error}, and the call of the function leaves {names} out"
        return ""

    def _results_of(self, node: Node) -> tuple[int, ...]:
        return tuple(self._slot(v) for v in node.outputs)


def _needed(graph: Graph) -> set[Node]:
    """Return the nodes of a graph that its outputs depend on."""
    needed: set[Node] = set()
    pending = [v for v in graph.outputs if v is not None]
    while pending:
        node = pending.pop().node
        if node is None or node.graph is not graph or node in needed:
            continue
        needed.add(node)
        pending += [v for v in node.inputs if v is not None]
        pending += [v for inner in node.graphs for v in inner.captures()]
    return needed


def refuse_captures(binder: Binder) -> None:
    """Raise SchemaError where a main graph or a function reads values of other graphs."""
    for value in binder.captured:
        raise SchemaError(
            f"{quote(value.name)} is read, and belongs to a graph that is not around its reader"
        )


def _ports(graph: Graph, kind: str, values: Iterable[Value | None], *, strict: bool) -> tuple[Port, ...]:
    """Return the ports of a subgraph.

    A sequence that grows in a loop is compared item by item in a strict run alone: it takes quadratic time.
    """

    def port(index: int, value: Value | None) -> Port:
        if value is None:
            return Port("", None, None)
        where = f"{kind} {quote(value.name or str(index))} of the subgraph {quote(graph.name)}"
        compared = strict or isinstance(value.type, TensorType)
        return Port(where, value.type, declaration(value.type) if compared else None)

    return tuple(starmap(port, enumerate(values)))


def _array(value: Value, tensor: Constant) -> Array:
    """Return a constant as an aligned read-only array: BLAS copies an unaligned operand at every call."""
    try:
        array = tensor.array()
    except SabirError as error:
        raise error.within(f"initializer {quote(value.name)}") from error
    except ACCIDENTS as error:
        raise EvaluationError(f"initializer {quote(value.name)}: {error}") from error
    aligned = np.require(array, None, "A")
    aligned.flags.writeable = False
    return aligned


def _label(node: Node) -> str:
    name = f" {quote(node.name)}" if node.name else ""
    output = next((v.name for v in node.outputs if v is not None and v.name), "")
    return f"{node.op}{name}{f' giving {quote(output)}' if output and not name else ''}"
