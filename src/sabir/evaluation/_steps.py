"""One step of a run: a bound call on numbered slots, and what a run keeps between its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from sabir.base import ACCIDENTS, Budget, EvaluationError, LimitError, SabirError, check_time
from sabir.evaluation._declared import Dimensions
from sabir.evaluation._sizes import LITTLE, bytes_of, unseen_work
from sabir.evaluation._types import shown_type
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.evaluation._types import Types
    from sabir.ir import Array

Frame: TypeAlias = "list[Any]"  # the values of one run of a graph, by slot; slot 0 is the absent input
ABSENT = 0


@dataclass(slots=True)
class Run:
    """What the steps of one run share.

    `dims` has the sizes of dimension variables. `mismatch` takes a place and how a value there contradicts
    its declaration; where `strict`, it raises.
    """

    budget: Budget
    dims: Dimensions
    mismatch: Callable[[str, str], None]
    strict: bool

    def inside_function(self) -> Run:
        """Return the run as a function sees it, whose dimension variables are its own."""
        return Run(self.budget, Dimensions(), self.mismatch, self.strict)

    def inside_body(self) -> Run:
        """Return the run as one call of a subgraph sees it: the variables that it fixes last for the call."""
        return Run(self.budget, Dimensions(self.dims), self.mismatch, self.strict)


class Step(NamedTuple):
    """One call: `function` on the values in `inputs`, its results to `outputs`, then `dead` is dropped.

    `label` names the node in messages. A `framed` function calls subgraphs or functions: it gets the run and
    the frame first. `captured` are the slots that its subgraphs read, `cost` how many nodes one call runs.
    """

    function: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    label: str
    types: Types | None = None  # admits the inputs' types, and bounds the size of the outputs
    framed: bool = False
    captured: tuple[int, ...] = ()
    cost: int = 1
    dead: tuple[int, ...] = ()


class Unbound(NamedTuple):
    """A node that cannot be called; a plan that needs it raises `error` with the node's label in front."""

    error: SabirError
    label: str
    outputs: tuple[int, ...]
    inputs: tuple[int, ...] = ()


class Later(NamedTuple):
    """A node that no output needs, which `bind` makes a step when a plan does."""

    bind: Callable[[], Step]
    label: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def run_step(step: Step, frame: Frame, sizes: list[int], run: Run) -> None:
    """Make one call; `sizes` has the bytes of what lies in each slot of the frame."""
    inputs = [frame[slot] for slot in step.inputs]
    try:
        _compute(step, inputs, frame, sizes, run)
    except LimitError as error:
        raise error.within(step.label) from error
    except SabirError as error:
        raise EvaluationError(f"{step.label}: {error}") from error
    except ACCIDENTS as error:
        shown = ", ".join(map(shown_type, inputs))
        # numpy and Python speak of their own operands; inference says in ONNX's terms what is wrong
        reason = (step.types.objection(inputs) if step.types else None) or error
        raise EvaluationError(f"{step.label} on ({shown}): {reason}") from error
    for slot in step.dead:
        frame[slot] = None
        run.budget.live_bytes -= sizes[slot]
        sizes[slot] = 0


def _compute(step: Step, inputs: list[Any], frame: Frame, sizes: list[int], run: Run) -> None:
    budget = run.budget
    if budget.deadline is not None:
        check_time(budget)
    if step.types is not None:
        step.types.check(inputs, budget.unchecked_elements)
    results = as_results(step.function(run, frame, *inputs) if step.framed else step.function(*inputs))
    if len(results) < len(step.outputs):
        raise EvaluationError(f"it gave {len(results)} outputs, and the node names {len(step.outputs)}")
    if step.framed and step.types is not None:
        step.types.check_results(results)
    for slot, value in zip(step.outputs, results, strict=False):
        if slot != ABSENT:
            frame[slot] = np.asarray(cast("Array", value)) if isinstance(value, np.generic) else value
            sizes[slot] = size = bytes_of(value)
            if size > LITTLE:
                budget.work -= unseen_work(value)
            budget.allocate(size)
