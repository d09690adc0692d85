"""Plans: a graph as a list of bound calls over numbered slots.

Everything that does not depend on the data is settled when the plan is made: what each node calls, its
arguments, where its inputs and outputs lie, and after which call a value is read no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from sabir.base import (
    ACCIDENTS,
    Budget,
    EvaluationError,
    InferenceError,
    LimitError,
    SabirError,
    SchemaError,
    budget,
    check_depth,
    check_time,
    quote,
    spend_iteration,
)
from sabir.evaluate._sizes import LITTLE, Sizes, bytes_in, bytes_of, unseen_work
from sabir.evaluate._types import Types
from sabir.ir import Function, Graph, Node, SparseTensor, Value
from sabir.schema import Call, Scope, as_results, check_call, check_expansion, check_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.ir import Array, Attribute, Constant, Type
    from sabir.schema import Binding, Version

Frame: TypeAlias = "list[Any]"  # the values of one run, by slot; slot 0 is the absent input
_ABSENT = 0


class Step(NamedTuple):
    """One call: `function` on the values in `inputs`, its results to `outputs`, then `dead` is dropped."""

    function: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dead: tuple[int, ...]
    node: Node
    foreseen: Types | None = None  # looks at the inputs' types, and tells how much the call will give
    framed: bool = False  # whether `function` is first given the frame, to bind subgraphs to it
    captured: tuple[int, ...] = ()  # what the node's subgraphs read of this frame


class Plan:
    """A graph ready to run; `run` may be called from several threads at once.

    `cost` is how many nodes one run goes through, `given` how many bytes its constants have; both include
    what functions and subgraphs have, each call of a subgraph once.
    """

    def __init__(
        self,
        graph: Graph,
        scope: Scope,
        wanted: Sequence[Value | None] | None = None,
        functions: dict[tuple[object, ...], tuple[Plan, Scope]] | None = None,
        depth: int = 1,
    ) -> None:
        """Plan a graph for the values in `wanted` (its outputs by default).

        `functions` holds the plans made so far of functions, for the graphs of one model to share; `depth`
        is how many graphs stand around this one, itself included. Raises
        SchemaError where a node cannot be bound, naming it, LimitError where functions make too many nodes.
        """
        self.graph, self._depth = graph, depth
        check_depth(depth)
        if functions is None:
            check_expansion([graph], scope)
        self._functions: dict[tuple[object, ...], tuple[Plan, Scope]] = {} if functions is None else functions
        self._slots: dict[Value, int] = {}
        self._constants: list[Any] = [None]
        self.given = 0
        for value in graph.inputs:
            self._slot(value)
        for value, tensor in graph.initializers.items():
            self._constants[self._slot(value)] = array = _array(value, tensor)
            self.given += 16 * tensor.values.size if isinstance(tensor, SparseTensor) else bytes_of(array)
        self.wanted = tuple(graph.outputs if wanted is None else wanted)
        self.captured: dict[Value, int] = {}
        needed = _needed(graph, self.wanted)
        self.cost = len(needed)
        calls = [self._bind(node, scope) for node in graph if node in needed]
        self._results = tuple(self._read(v) for v in self.wanted)
        self._steps = _with_deaths(
            calls, keep={*self._results, *range(len(graph.initializers) + len(graph.inputs) + 1)}
        )
        self._inputs = tuple(self._slots[v] for v in graph.inputs)
        self.takes = graph.takes

    def run(self, inputs: Iterable[Any], captured: Iterable[Any] = ()) -> tuple[Any, ...]:
        """Return the wanted values; an input given as None keeps its default."""
        frame = self._constants.copy()
        for slot, value in zip(self._inputs, inputs, strict=False):
            if value is not None:
                frame[slot] = value
        for slot, value in zip(self.captured.values(), captured, strict=True):
            frame[slot] = value
        present, sizes = budget(), [0] * len(frame)
        for step in self._steps:
            _run_step(step, frame, sizes, present)
        present.held -= sum(sizes)
        return tuple(frame[slot] for slot in self._results)

    def _slot(self, value: Value | None) -> int:
        """Return the slot of a value; one that the graph does not define is captured from outside."""
        if value is None:
            return _ABSENT
        slot = self._slots.get(value)
        if slot is None:
            slot = self._slots[value] = len(self._constants)
            self._constants.append(None)
        return slot

    def _read(self, value: Value | None) -> int:
        """Return the slot of a value that a node reads; the outer graphs' are captured."""
        if value is not None and value not in self._slots:
            if value.source is None:
                raise SchemaError(f"{quote(value.name)} is read, and nothing defines it")
            if value.node is not None and value.node.graph is self.graph:
                raise SchemaError(f"{quote(value.name)} is read before {_shown(value.node)} computes it")
            self.captured[value] = self._slot(value)
        return self._slot(value)

    def _bind(self, node: Node, scope: Scope) -> Step:
        try:
            return self._bound(node, scope)
        except SchemaError as error:
            raise SchemaError(f"{_shown(node)}: {error}") from error

    def _bound(self, node: Node, scope: Scope) -> Step:
        inputs = tuple(self._read(v) for v in node.inputs)
        callee = scope.callee(node)
        if isinstance(callee, Function):
            function = self._function(callee, node, scope).run_call
            return Step(function, inputs, self._results_of(node), (), node)
        attributes = scope.arguments(node.attributes)
        self.given += bytes_in(attributes)
        binding = callee.binding("evaluate")
        binding.signature.check_arity(node.inputs, len(node.outputs))
        call = Call(tuple(v is not None for v in node.outputs), callee.since)
        bodies: list[Inner] = []

        def body(graph: Graph) -> Inner:
            inner = Plan(graph, scope, None, self._functions, self._depth + 1)
            self.given += inner.given
            self.cost += inner.cost
            bodies.append(Inner(inner, tuple(self._read(v) for v in inner.captured)))
            return bodies[-1]

        arguments = binding.arguments(attributes, body)
        if not bodies:
            if not any(node.inputs):
                _check_constant(callee, attributes, call)
            function, sizes = binding.prepare(arguments, call), Sizes(callee, attributes, call)
            return Step(function, inputs, self._results_of(node), (), node, sizes)
        captured = tuple(slot for inner in bodies for slot in inner.captured)
        function = _framed(binding, arguments, call)
        results, types = self._results_of(node), Types(callee)
        return Step(function, inputs, results, (), node, types, framed=True, captured=captured)

    def _function(self, function: Function, node: Node, scope: Scope) -> Plan:
        """Return the plan of a function for one call; calls with the same attributes share it."""
        check_call(function, node)
        inner = scope.inside(function, node)
        held = tuple((inner.bindings or {}).values())
        key = (id(function), *map(id, held))
        found = self._functions.get(key)
        if found is None:  # the scope is kept, so that what the key names by id stays alive
            found = self._functions[key] = (Plan(function.graph, inner, None, self._functions), inner)
            self.given += found[0].given
        self.cost += found[0].cost
        return found[0]

    def _results_of(self, node: Node) -> tuple[int, ...]:
        return tuple(self._slot(v) for v in node.outputs)

    def run_call(self, *inputs: Any) -> tuple[Any, ...]:
        """Run as a function of its inputs, the missing ones absent."""
        return self.run(inputs)


class Inner(NamedTuple):
    """A subgraph's plan, and the slots of the outer frame that it captures."""

    plan: Plan
    captured: tuple[int, ...]

    def in_frame(self, frame: Frame) -> Bound:
        """Return the subgraph as a function of its inputs."""
        return Bound(self.plan, [frame[slot] for slot in self.captured])


@dataclass(frozen=True, slots=True)
class Bound:
    """A subgraph as a function of its inputs, the outer values that it reads bound to it."""

    plan: Plan
    captured: list[Any]

    @property
    def outputs(self) -> tuple[Type | None, ...]:
        """The declared types of what it gives."""
        return tuple(None if v is None else v.type for v in self.plan.wanted)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the subgraph."""
        spend_iteration(self.plan.cost)
        if len(inputs) not in self.plan.takes:
            graph = self.plan.graph
            raise EvaluationError(
                f"the subgraph {graph.name!r} takes {len(graph.inputs)} inputs, and gets {len(inputs)}"
            )
        return self.plan.run(inputs, self.captured)


def _check_constant(version: Version, attributes: Mapping[str, Attribute], call: Call) -> None:
    """Raise SchemaError where a call without inputs gives a type that its version does not admit."""
    binding = version.binding("infer")
    try:
        results = as_results(binding((), binding.arguments(attributes), call))
    except (SabirError, *ACCIDENTS):
        return  # the call itself will say what is wrong
    try:
        check_results(version, (), results)
    except InferenceError as error:
        raise SchemaError(str(error)) from error


def _framed(binding: Binding, arguments: Mapping[str, Any], call: Call) -> Callable[..., Any]:
    """Return a behaviour as a function of the frame and its inputs; subgraphs see the frame."""

    def function(frame: Frame, *inputs: Any) -> Any:
        return binding(inputs, {name: _in_frame(a, frame) for name, a in arguments.items()}, call)

    return function


def _in_frame(argument: Any, frame: Frame) -> Any:
    if isinstance(argument, Inner):
        return argument.in_frame(frame)
    if isinstance(argument, tuple):  # a list of subgraphs, or of plain values
        return tuple(_in_frame(a, frame) for a in cast("tuple[Any, ...]", argument))
    return argument


def _run_step(step: Step, frame: Frame, sizes: list[int], present: Budget) -> None:
    """Make one call; `sizes` has the bytes of what lies in each slot of the frame."""
    inputs = [frame[slot] for slot in step.inputs]
    try:
        _compute(step, inputs, frame, sizes, present)
    except LimitError as error:
        raise error.within(_shown(step.node)) from error
    except SabirError as error:
        raise EvaluationError(f"{_shown(step.node)}: {error}") from error
    except ACCIDENTS as error:
        given = ", ".join(_type_shown(x) for x in inputs)
        raise EvaluationError(f"{_shown(step.node)} on ({given}): {error}") from error
    for slot in step.dead:
        frame[slot] = None
        present.held -= sizes[slot]
        sizes[slot] = 0


def _compute(step: Step, inputs: list[Any], frame: Frame, sizes: list[int], present: Budget) -> None:
    if present.deadline is not None:
        check_time(present)
    if step.foreseen is not None:
        step.foreseen.check(inputs, present.plain)
    result = step.function(frame, *inputs) if step.framed else step.function(*inputs)
    results = as_results(result)
    if len(results) < len(step.outputs):
        raise EvaluationError(f"it gave {len(results)} outputs, and the node names {len(step.outputs)}")
    if step.framed and step.foreseen is not None:
        step.foreseen.check_results(results)
    for slot, value in zip(step.outputs, results, strict=False):
        if slot != _ABSENT:
            frame[slot] = np.asarray(cast("Array", value)) if isinstance(value, np.generic) else value
            sizes[slot] = size = bytes_of(value)
            if size > LITTLE:
                present.work -= unseen_work(value)
            present.hold(size)


def _with_deaths(calls: Sequence[Step], keep: set[int]) -> list[Step]:
    """Add to each step the slots that no later step reads."""
    seen, steps = set(keep), list[Step]()
    for step in reversed(calls):
        touched = {*step.inputs, *step.outputs, *step.captured}
        dead = tuple(touched - seen)
        seen |= touched
        steps.append(step._replace(dead=dead))
    return steps[::-1]


def _needed(graph: Graph, wanted: Iterable[Value | None]) -> set[Node]:
    """Return the nodes of a graph that the wanted values depend on."""
    needed: set[Node] = set()
    pending = [v for v in wanted if v is not None]
    while pending:
        node = pending.pop().node
        if node is None or node.graph is not graph or node in needed:
            continue
        needed.add(node)
        pending += [v for v in node.inputs if v is not None]
        pending += [v for inner in node.graphs for v in inner.captures()]
    return needed


def _array(value: Value, tensor: Constant) -> Any:
    try:
        array = tensor.array()
    except SabirError as error:
        raise error.within(f"initializer {quote(value.name)}") from error
    except ACCIDENTS as error:
        raise EvaluationError(f"initializer {quote(value.name)}: {error}") from error
    # BLAS copies an unaligned operand at every call; a file aligns nothing
    return array if isinstance(tensor, SparseTensor) else np.require(array, None, "A")


def _shown(node: Node) -> str:
    name = f" {quote(node.name)}" if node.name else ""
    output = next((v.name for v in node.outputs if v is not None and v.name), "")
    return f"{node.op}{name}{f' giving {quote(output)}' if output and not name else ''}"


def _type_shown(x: object) -> str:
    if not isinstance(x, np.ndarray):
        return type(x).__name__
    array = cast("Array", x)
    return f"{array.dtype}{list(array.shape)}"
