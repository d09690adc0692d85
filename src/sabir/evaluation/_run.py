"""The state of one run, which its calls share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.evaluation._declared import Dimensions

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.base import Budget


@dataclass(slots=True)
class Run:
    """The state that the calls of one run share.

    >>> from sabir.base import Budget, Limits
    >>> from sabir.evaluation._declared import Dimensions
    >>> run = Run(Budget(Limits()), Dimensions(), print, strict=False)
    >>> run.inside_function().budget is run.budget
    True

    `dims` has the sizes of dimension variables. `mismatch` takes a place and how the value there contradicts
    its declared type; where `strict`, it raises.
    """

    budget: Budget
    dims: Dimensions
    mismatch: Callable[[str, str], None]
    strict: bool

    def inside_function(self) -> Run:
        """Return the run as a function sees it: its dimension variables are not those of the caller."""
        return Run(self.budget, Dimensions(), self.mismatch, self.strict)

    def inside_subgraph(self) -> Run:
        """Return the run as one call of a subgraph sees it: the sizes that it fixes last for the call."""
        return Run(self.budget, Dimensions(self.dims), self.mismatch, self.strict)
