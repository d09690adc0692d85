"""One call of a run: a behaviour bound to slots, and what the calls of a run share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from sabir.base import ACCIDENTS, CancelledError, EvaluationError, LimitError, SabirError, check_time
from sabir.evaluation._costs import bytes_of, unseen_work
from sabir.evaluation._types import shown_type
from sabir.scheduling import ABSENT
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sabir.base import Budget
    from sabir.evaluation._run import Run
    from sabir.evaluation._types import OperandTypes
    from sabir.ir import Array

_ARRAY: Any = np.ndarray  # untyped: a cast would take time in every run
_LITTLE = 1 << 12  # bytes of a value whose narrow numbers take no time worth counting
SlotValues: TypeAlias = "list[Any]"  # the values of one run of a graph, by slot


class BoundCall(NamedTuple):
    """`function` applied to the values in `inputs`; its results go to `outputs`, then `dead` is cleared.

    `checks` refuses operands of types that are not admitted, and outputs that would be too large. A `nested`
    function calls subgraphs or functions: it gets the run and the slots first. The rest is as in a
    `ScheduledCall`.

    >>> BoundCall(np.add, (1, 2), (3,), 'Add').clearing((1,)).dead
    (1,)
    """

    function: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    label: str
    checks: OperandTypes | None = None
    nested: bool = False
    captures: tuple[int, ...] = ()
    cost: int = 1
    dead: tuple[int, ...] = ()

    def clearing(self, dead: tuple[int, ...]) -> BoundCall:
        """Return the call with the slots that are cleared after it."""
        return BoundCall(*self[:-1], dead)


def run_call(call: BoundCall, slots: SlotValues, sizes: list[int], run: Run) -> None:
    """Make one call; `sizes` has the bytes of the value in each slot.

    >>> from sabir.base import Budget, Limits
    >>> from sabir.evaluation._declared import Dimensions
    >>> slots = [None, np.float32([1, 2]), None]
    >>> run = Run(Budget(Limits()), Dimensions(), print, strict=False)
    >>> run_call(BoundCall(np.negative, (1,), (2,), 'Neg'), slots, [0, 0, 0], run)
    >>> slots[2]
    array([-1., -2.], dtype=float32)
    """
    run_calls((call,), slots, sizes, run)


def run_calls(calls: Iterable[BoundCall], slots: SlotValues, sizes: list[int], run: Run) -> None:
    """Make calls in turn, as `run_call` does.

    What is done for each call is written out here: small models spend their time with it.
    """
    budget = run.budget
    for call in calls:
        function, inputs, outputs, _, checks, nested, _, _, dead = call
        operands = [slots[slot] for slot in inputs]
        try:  # ruff: ignore[too-many-statements-in-try-clause]  a function for each step takes as long as it
            if budget.deadline is not None:
                check_time(budget)
            if checks is not None:
                checks.check(operands, budget.unchecked_elements)
            result = function(run, slots, *operands) if nested else function(*operands)
            if type(result) is _ARRAY and len(outputs) == 1 and outputs[0] != ABSENT and not nested:
                slot = outputs[0]
                slots[slot] = result
                sizes[slot] = size = bytes_of(result)
                if size > _LITTLE:
                    budget.work -= unseen_work(result)
                budget.allocate(size)
            else:
                _keep_results(call, as_results(result), slots, sizes, budget)
        except CancelledError:
            raise
        except (SabirError, *ACCIDENTS) as error:
            raise _explained(call, operands, error) from error
        for slot in dead:
            slots[slot] = None
            budget.live_bytes -= sizes[slot]
            sizes[slot] = 0


def _keep_results(
    call: BoundCall, results: tuple[Any, ...], slots: SlotValues, sizes: list[int], budget: Budget
) -> None:
    """Keep the results of a call in their slots."""
    if len(results) < len(call.outputs):
        raise EvaluationError(f"it returned {len(results)} outputs, and the node names {len(call.outputs)}")
    if call.nested and call.checks is not None:
        call.checks.check_results(results)
    for slot, value in zip(call.outputs, results, strict=False):
        if slot != ABSENT:
            slots[slot] = np.asarray(cast("Array", value)) if isinstance(value, np.generic) else value
            sizes[slot] = size = bytes_of(value)
            if size > _LITTLE:
                budget.work -= unseen_work(value)
            budget.allocate(size)


def _explained(call: BoundCall, operands: list[Any], error: BaseException) -> SabirError:
    """Return an error of a call as one that says which call it is."""
    if isinstance(error, LimitError):
        return error.located(call.label)
    if isinstance(error, SabirError):
        return EvaluationError(f"{call.label}: {error}")
    shown = ", ".join(map(shown_type, operands))
    # numpy and Python speak of their own operands; inference says in ONNX's terms what is wrong
    reason = (call.checks.objection(operands) if call.checks else None) or error
    return EvaluationError(f"{call.label} on ({shown}): {reason}")
