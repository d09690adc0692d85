"""Whether a plan is worth its making: one of many small calls is made when the model has run for as long."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.base import UnsupportedError
from sabir.compilation.frontend.patterns import number_of
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.compilation.frontend.prepare import Prepared
    from sabir.ir import Type

_MANY = 1 << 12  # calls; a plan of fewer is made at once: in a second
_MOST = 1 << 15  # calls of a plan: planning takes memory for each pair of groups, 128 MiB for so many
_SECONDS = 3e-4  # to plan and compile a call, measured with chains of small products, maps and softmaxes
_LITTLE = 1 << 14  # elements a call on average, up to which the interpreter runs faster than a plan is made


class NotYet(Exception):
    """A plan that takes so many seconds to make, and that a single run is not worth."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the plan takes about {seconds:.1f} s to make")
        self.seconds = seconds


def require_worth(prepared: Prepared, sizes: Mapping[str, int]) -> None:
    """Raise NotYet for a program that the interpreter runs in less time than its plan takes."""
    calls = len(prepared.plan.steps)
    if not _MANY < calls <= _MOST:
        return
    numbers = sum(_elements(kind, sizes) for kind in prepared.types)
    numbers += sum(array.size for array in prepared.constants.values())
    if numbers < _LITTLE * calls:
        raise NotYet(calls * _SECONDS)


def require_bounded(prepared: Prepared) -> None:
    """Raise UnsupportedError for a program of more calls than a plan may have."""
    calls = len(prepared.plan.steps)
    if calls > _MOST:
        raise UnsupportedError(f"the model has {calls:,} calls, and a plan has at most {_MOST:,}")


def _elements(kind: Type | None, sizes: Mapping[str, int]) -> int:
    if not isinstance(kind, TensorType) or kind.shape is None:
        return 0
    dims = [1 if dim is None else number_of(dim, sizes) for dim in kind.shape]
    return math.prod(1 if dim is None else dim for dim in dims)
