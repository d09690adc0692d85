"""What a plan costs to make, by an estimate, and what it may cost.

A plan may cost two seconds at once, and more where a run computes much. One that costs more is made when the
interpreter has run the model for as long: a model that runs once is answered sooner without a plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import budget
from sabir.compilation.frontend.patterns import number_of
from sabir.compilation.native import is_compiled
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Source
    from sabir.ir import Type

AT_ONCE = 2.0  # seconds that a plan may cost, whatever a run computes; models in use cost half a second
_PLAN = 5e-3  # seconds to make a plan of no calls
_CALL = 3e-4  # seconds to plan a call, measured with chains of small products, maps and softmaxes
_CHARACTER = (
    1.6e-5  # seconds to compile a kernel, for each character of its description: 5 to 27 microseconds
)
_RUNS = 4  # interpreted runs that take as long as a plan that is made at once
_CALL_RUN, _NUMBER_RUN = 1e-5, 1e-9  # seconds of the interpreter for a call, and for each element
_WORK_RUN = 5e-10  # seconds of the interpreter for a byte of the limit `work`


class NotYet(Exception):
    """A plan that takes so many seconds to make, which is more than it may cost now."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the plan takes about {seconds:.1f} s to make")
        self.seconds = seconds


class PlanCost:
    """The estimated cost of one plan in the making, which may be `allowed` seconds."""

    def __init__(self, allowed: float = math.inf) -> None:
        self.allowed = allowed
        self._planning, self._compiling = _PLAN, 0.0

    @property
    def seconds(self) -> float:
        """The cost so far."""
        return self._planning + self._compiling

    def add_calls(self, count: int) -> None:
        """Add the planning of some calls; raises NotYet past what is allowed."""
        self._planning += count * _CALL
        self._require(1)

    def add_kernel(self, source: Source, part: float) -> None:
        """Add a kernel that is not in the cache; `part` is the part of the plan that is made.

        Raises NotYet as `add_calls`.
        """
        if math.isinf(self.allowed) or is_compiled(source):
            return
        self._compiling += len(source.name) * _CHARACTER
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
