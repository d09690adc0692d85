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
    from collections.abc import Callable

    from sabir.evaluation._run import Run
    from sabir.evaluation._types import OperandTypes
    from sabir.ir import Array

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
    operands = [slots[slot] for slot in call.inputs]
    try:
        _compute(call, operands, slots, sizes, run)
    except CancelledError:
        raise
    except LimitError as error:
        raise error.located(call.label) from error
    except SabirError as error:
        raise EvaluationError(f"{call.label}: {error}") from error
    except ACCIDENTS as error:
        shown = ", ".join(map(shown_type, operands))
        # numpy and Python speak of their own operands; inference says in ONNX's terms what is wrong
        reason = (call.checks.objection(operands) if call.checks else None) or error
        raise EvaluationError(f"{call.label} on ({shown}): {reason}") from error
    for slot in call.dead:
        slots[slot] = None
        run.budget.live_bytes -= sizes[slot]
        sizes[slot] = 0


def _compute(call: BoundCall, operands: list[Any], slots: SlotValues, sizes: list[int], run: Run) -> None:
    budget = run.budget
    if budget.deadline is not None:
        check_time(budget)
    if call.checks is not None:
        call.checks.check(operands, budget.unchecked_elements)
    results = as_results(call.function(run, slots, *operands) if call.nested else call.function(*operands))
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
