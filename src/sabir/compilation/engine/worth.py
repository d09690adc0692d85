"""The cost model of planning: the estimated seconds to compile a plan, and how many it may cost.

A plan may cost two seconds at once, and more if a run computes much. A more expensive plan is compiled after
the interpreter has run the model for as long: a model that runs once is faster without it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import budget
from sabir.compilation.frontend.patterns import number_of
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.frontend.prepare import Prepared
    from sabir.ir import Type

AT_ONCE = 2.0  # seconds that any plan may cost; models in use cost half a second
_PLAN = 5e-3  # seconds to compile a plan without calls
_CALL = 3e-4  # seconds to plan a call, measured with chains of small products, maps and softmaxes
_CHARACTER = 1e-5  # seconds to compile a kernel, for each character of its specification: 7 to 14 us
_RUNS = 4  # interpreted runs that cost as much as a plan that is compiled at once
_CALL_RUN, _NUMBER_RUN = 1e-5, 1e-9  # seconds of the interpreter for a call, and for each element
_WORK_RUN = 5e-10  # seconds of the interpreter for a byte of the limit `work`


class NotYet(Exception):
    """A plan would take `seconds` to compile, more than it may cost now."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the plan takes about {seconds:.1f} s to compile")
        self.seconds = seconds


class PlanCost:
    """The estimated cost of a plan while it is compiled; it may be `allowed` seconds."""

    def __init__(self, allowed: float = math.inf) -> None:
        self.allowed = allowed
        self._planning, self._compiling = _PLAN, 0.0

    @property
    def seconds(self) -> float:
        """The cost so far."""
        return self._planning + self._compiling

    def add_calls(self, count: int) -> None:
        """Add the planning of calls; raises NotYet if the cost exceeds the allowed one."""
        self._planning += count * _CALL
        self._require(1)

    @property
    def is_bounded(self) -> bool:
        """Whether the plan may cost too much."""
        return not math.isinf(self.allowed)

    def add_kernel(self, characters: int, part: float) -> None:
        """Add a kernel to compile, with a description of so many characters.

        `part` is the part of the plan that is made. Raises NotYet as `add_calls`.
        """
        self._compiling += characters * _CHARACTER
        self._require(part)

    def _require(self, part: float) -> None:
        if self.seconds > self.allowed:
            raise NotYet(self._planning + self._compiling / part)


@dataclass(slots=True)
class Reserve:
    """The seconds that the plans of all subgraphs of a program may still cost.

    Interpreted runs of subgraphs add their time.
    """

    left: float = AT_ONCE


def allowed_for(prepared: Prepared, sizes: Mapping[str, int]) -> float:
    """Return the seconds that a plan of a program may cost at once."""
    numbers = sum(_elements(kind, sizes) for kind in prepared.types)
    numbers += sum(array.size for array in prepared.constants.values())
    run = len(prepared.plan.steps) * _CALL_RUN + numbers * _NUMBER_RUN
    most = budget().limits.work
    return AT_ONCE + _RUNS * (run if most is None else min(run, most * _WORK_RUN))


def _elements(kind: Type | None, sizes: Mapping[str, int]) -> int:
    if not isinstance(kind, TensorType) or kind.shape is None:
        return 0
    dims = [1 if dim is None else number_of(dim, sizes) for dim in kind.shape]
    return math.prod(1 if dim is None else dim for dim in dims)
