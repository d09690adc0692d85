"""The kernels that compute one expression alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation._nesting import nest_of
from sabir.compilation.kernels import Cumulation, Selection, element_bytes, record_bytes
from sabir.loops import Best, Cumulate

if TYPE_CHECKING:
    from sabir.compilation._nesting import Nesting
    from sabir.loops import Expression, Size


class Single(NamedTuple):
    """A kernel, the arguments after those of its nest, and how many bytes each thread needs."""

    spec: Cumulation | Selection
    more: tuple[Size, ...] = ()
    scratch: Size = 0


def single_of(x: Expression, nesting: Nesting, vector_bits: int) -> Single:
    """Return the kernel of an expression for the loops over its first operand."""
    match x:
        case Cumulate():
            return Single(Cumulation(nest_of(nesting, vector_bits), x.op, x.exclusive, x.reverse))
        case Best():
            return _selection(x, nesting, vector_bits)
        case _:
            raise TypeError(f"{type(x).__name__} has no kernel of its own")


def _selection(x: Best, nesting: Nesting, vector_bits: int) -> Single:
    element, count = x.operand.element, x.shape[x.axis]
    nest = nest_of(nesting, vector_bits, inner=nesting.reduced.index(True))
    nest = replace(nest, lanes=vector_bits // 8 // max(4, element_bytes(element)))
    return Single(Selection(nest, x.largest), (count,), count * record_bytes(element))
