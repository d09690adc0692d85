"""Binding a program to the `evaluate` behaviours: constants as arrays, calls as functions of slots."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from sabir.base import ACCIDENTS, EvaluationError, SabirError, SchemaError, UnsupportedError, quote
from sabir.evaluation._calls import BoundCall
from sabir.evaluation._plans import BoundPlan
from sabir.evaluation._sizes import OutputSizes, numbers_in, numbers_of
from sabir.evaluation._subgraphs import BoundSubgraph, call_function, call_with_subgraphs
from sabir.evaluation._types import OperandTypes
from sabir.ir import SparseTensor
from sabir.scheduling import FunctionCall, OperatorCall, ScheduledFunction, ScheduledSubgraph, make_plan
from sabir.schema import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Array, Constant
    from sabir.scheduling import Plan, Program, ScheduledCall


class BoundProgram:
    """A program with its constants as arrays; a call is bound when a plan first needs it.

    `arrays` has the constants by slot.
    """

    def __init__(self, program: Program, binder: CallBinder) -> None:
        """Take a program; raises what is wrong with the data of a constant."""
        names = {v.slot: v.name for v in program.values}
        self.arrays = {slot: _array(names[slot], tensor) for slot, tensor in program.constants.items()}
        self._by_slot = [self.arrays.get(slot) for slot in range(program.size)]
        self._binder = binder
        binder.numbers += sum(map(_numbers, program.constants.values(), self.arrays.values()))
        self._program = program

    def plan(self, wanted: Sequence[int]) -> BoundPlan:
        """Return the plan for the slots `wanted`; raises SchemaError or UnsupportedError, naming the node."""
        return self.bind(make_plan(self._program, wanted))

    def bind(self, plan: Plan) -> BoundPlan:
        """Return a plan of the program with its calls bound."""
        calls = list(self._program.calls)
        for place, _ in plan.steps:
            calls[place] = self._binder.bind(calls[place])
        # bound calls replace the scheduled ones, so that constants are kept as arrays alone
        self._program = self._program._replace(calls=tuple(calls), constants={})
        bound = [cast("BoundCall", calls[place]).clearing(dead) for place, dead in plan.steps]
        return BoundPlan(self._program, plan, self._by_slot, bound)


class CallBinder:
    """Binds the calls of one model; a function is bound once for all its calls.

    `numbers` counts the elements of all constants bound so far, those of functions and subgraphs too.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> from sabir.scheduling import schedule
    >>> CallBinder(strict=False).bind(schedule(model, STANDARD).program.calls[0]).label
    "Relu with output 'y'"
    """

    def __init__(
        self, *, strict: bool, bodies: Callable[[ScheduledSubgraph, BoundPlan, bool], BoundPlan] | None = None
    ) -> None:
        """Take what an engine runs the plan of a subgraph with, by default the plan itself.

        `bodies` learns whether the subgraph belongs to a call that `bind` has got, and not to one further
        inside: the slots that it captures are then those of the program of this call.
        """
        self.numbers = self._depth = 0
        self._bodies = bodies
        self._strict = strict
        # weak: a function whose calls are all bound is needed no more, nor are its constants
        self._functions = WeakKeyDictionary[ScheduledFunction, BoundPlan]()

    def bind(self, call: ScheduledCall) -> BoundCall:
        """Return a call bound to what it computes; raises SchemaError for an operator without `evaluate`."""
        if isinstance(call, BoundCall):
            return call
        try:
            if isinstance(call, FunctionCall):
                return self._function_call(call)
            return self._operator_call(cast("OperatorCall", call))
        except (SchemaError, UnsupportedError) as error:
            raise error.located(call.label) from error

    def _operator_call(self, call: OperatorCall) -> BoundCall:
        if call.problem:
            return BoundCall(functools.partial(_fail, call.problem), (), call.outputs, call.label)
        binding, facts = call.version.binding("evaluate"), Call(call.named, call.version.since)
        self.numbers += numbers_in(call.attributes)
        if call.cost == 1 and not any(map(_has_subgraphs, call.attributes.values())):
            function = binding.prepare(binding.fill(call.attributes), facts)
            checks = OutputSizes(call.version, call.attributes, facts)
            return BoundCall(function, call.inputs, call.outputs, call.label, checks)
        arguments = binding.fill({n: self._with_bound(value) for n, value in call.attributes.items()})
        return BoundCall(
            call_with_subgraphs(binding, arguments, facts), call.inputs, call.outputs, call.label,
            OperandTypes(call.version), nested=True, captures=call.captures, cost=call.cost,
        )  # fmt: skip

    def _with_bound(self, value: Any) -> Any:
        """Return the value of an attribute with its subgraphs bound."""
        if isinstance(value, ScheduledSubgraph):
            plan = self._whole(value.program, value.plan)
            plan = plan if self._bodies is None else self._bodies(value, plan, not self._depth)
            return BoundSubgraph(value, plan, strict=self._strict)
        if _has_subgraphs(value):
            return tuple(map(self._with_bound, value))
        return value

    def _function_call(self, call: FunctionCall) -> BoundCall:
        plan = self._functions.get(call.function)
        if plan is None:
            plan = self._functions[call.function] = self._whole(call.function.program, call.function.plan)
        return BoundCall(
            call_function(plan, call.captures), call.inputs, call.outputs, call.label,
            nested=True, captures=call.captures, cost=call.cost,
        )  # fmt: skip

    def _whole(self, program: Program, plan: Plan) -> BoundPlan:
        self._depth += 1
        try:
            return BoundProgram(program, self).bind(plan)
        finally:
            self._depth -= 1


def _has_subgraphs(value: Any) -> bool:
    if isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        return bool(items) and isinstance(items[0], ScheduledSubgraph)
    return isinstance(value, ScheduledSubgraph)


def _fail(problem: str) -> Any:
    """Fail in the run and not before: the branch that contains the node may never run."""
    raise EvaluationError(problem)


def _numbers(tensor: Constant, array: Array) -> int:
    return 2 * tensor.values.size if isinstance(tensor, SparseTensor) else numbers_of(array)


def read_constant(name: str, tensor: Constant) -> Array:
    """Return a constant as an array; an error names it.

    >>> read_constant('w', sabir.ir.ArrayTensor(np.float32([1, 2])))
    array([1., 2.], dtype=float32)
    """
    try:
        return tensor.array()
    except SabirError as error:
        raise error.located(f"initializer {quote(name)}") from error
    except ACCIDENTS as error:
        raise EvaluationError(f"initializer {quote(name)}: {error}") from error


def _array(name: str, tensor: Constant) -> Array:
    """Return a constant as an aligned read-only array: BLAS copies an unaligned operand at every call."""
    aligned = np.require(read_constant(name, tensor), None, "A")
    aligned.flags.writeable = False
    return aligned
