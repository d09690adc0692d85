"""Subgraphs as operators call them: functions of their inputs, with the outer values that they read bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sabir.base import EvaluationError, quote, spend_iteration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sabir.evaluation._declared import Declaration
    from sabir.evaluation._plan import Plan
    from sabir.evaluation._steps import Frame, Run
    from sabir.evaluation._typing import Typing
    from sabir.ir import Type
    from sabir.schema import Binding, Call


class Port(NamedTuple):
    """A declared input or output of a subgraph."""

    where: str
    type: Type | None
    declared: Declaration | None


class Inner(NamedTuple):
    """A subgraph's plan, and the slots of the outer frame that it captures."""

    plan: Plan
    captured: tuple[int, ...]
    name: str
    input_counts: range
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    declares: bool
    has_variables: bool
    typing: Typing | None

    def in_frame(self, run: Run, frame: Frame) -> Bound:
        """Return the subgraph as a function of its inputs."""
        return Bound(self, run, [frame[slot] for slot in self.captured])


class Bound:
    """A subgraph as a function of its inputs, in one run."""

    __slots__ = ("_captured", "_inner", "_run")

    def __init__(self, inner: Inner, run: Run, captured: list[Any]) -> None:
        self._inner, self._run, self._captured = inner, run, captured

    @property
    def inputs(self) -> tuple[Type | None, ...]:
        """The declared types of its inputs."""
        return tuple(port.type for port in self._inner.inputs)

    @property
    def outputs(self) -> tuple[Type | None, ...]:
        """The declared types of its outputs."""
        return tuple(port.type for port in self._inner.outputs)

    def typed(self, *inputs: Type | None) -> tuple[Type | None, ...]:
        """Return the types of its outputs for such inputs, declared or inferred; it is not run."""
        typing = self._inner.typing
        return self.outputs if typing is None else typing.of(inputs, self._captured)

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the subgraph, and compare its inputs and outputs with what it declares of them."""
        inner, run = self._inner, self._run
        spend_iteration(inner.plan.cost)
        if len(inputs) not in inner.input_counts:
            raise EvaluationError(
                f"the subgraph {quote(inner.name)} takes {len(inner.inputs)} inputs, and gets {len(inputs)}"
            )
        if not inner.declares:
            return inner.plan.run(inputs, self._captured, run)
        own = run.inside_body() if inner.has_variables else run
        compare(inner.inputs, inputs, own)
        results = inner.plan.run(inputs, self._captured, own)
        compare(inner.outputs, results, own)
        return results


def compare(ports: Iterable[Port], values: Iterable[Any], run: Run) -> None:
    """Report each value that contradicts what its port declares."""
    for port, value in zip(ports, values, strict=False):
        if port.declared is not None:
            problem = port.declared.conflict(value, port.where, run.dims, strict=run.strict)
            if problem:
                run.mismatch(port.where, problem)


def calling(plan: Plan) -> Callable[..., Any]:
    """Return a function's plan as what a step calls; its dimension variables are its own."""

    def function(run: Run, _: Frame, *inputs: Any) -> Any:
        return plan.run(inputs, (), run.inside_function())

    return function


def framed(binding: Binding, arguments: Mapping[str, Any], call: Call) -> Callable[..., Any]:
    """Return a behaviour as a function of the run, the frame and its inputs; subgraphs see both."""

    def function(run: Run, frame: Frame, *inputs: Any) -> Any:
        return binding(inputs, {name: _in_frame(a, run, frame) for name, a in arguments.items()}, call)

    return function


def _in_frame(argument: Any, run: Run, frame: Frame) -> Any:
    if isinstance(argument, Inner):
        return argument.in_frame(run, frame)
    if type(argument) is tuple:  # a list of subgraphs, or of plain values
        return tuple(_in_frame(a, run, frame) for a in cast("tuple[Any, ...]", argument))
    return argument
