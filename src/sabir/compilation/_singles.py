"""The kernels that compute one expression alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.kernels import Cumulation
from sabir.loops import Cumulate

if TYPE_CHECKING:
    from sabir.compilation.kernels import Nest
    from sabir.loops import Expression


def single_of(x: Expression, nest: Nest) -> Cumulation:
    """Return the kernel of an expression; `nest` has the loops over its first operand."""
    match x:
        case Cumulate():
            return Cumulation(nest, x.op, x.exclusive, x.reverse)
        case _:
            raise TypeError(f"{type(x).__name__} has no kernel of its own")
