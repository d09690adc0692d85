"""The kernels that compute one expression alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation import kernels
from sabir.compilation._axes import nest_of
from sabir.compilation.kernels import element_bytes
from sabir.ir import is_nonnegative, sub
from sabir.loops import Best, Couple, Cumulate, Scatter

if TYPE_CHECKING:
    from sabir.compilation._nesting import Nesting
    from sabir.compilation.kernels import Coupling, Cumulation, Scattering, Selection
    from sabir.loops import Expression, Size


class Single(NamedTuple):
    """A kernel, the arguments after those of its nest, and how many bytes each thread needs."""

    spec: Coupling | Cumulation | Scattering | Selection
    more: tuple[Size, ...] = ()
    scratch: Size = 0


def single_of(x: Expression, nesting: Nesting, vector_bits: int) -> Single:
    """Return the kernel of an expression for the loops over its operand, or its updates."""
    match x:
        case Cumulate():
            return Single(kernels.Cumulation(nest_of(nesting, vector_bits), x.op, x.exclusive, x.reverse))
        case Scatter():
            return _scattering(x, nesting, vector_bits)
        case Best():
            return _selection(x, nesting, vector_bits)
        case Couple():
            return _coupling(x, nesting, vector_bits)
        case _:
            raise TypeError(f"{type(x).__name__} has no kernel of its own")


def _scattering(x: Scatter, nesting: Nesting, vector_bits: int) -> Single:
    pairs = [pair for i, pair in enumerate(zip(x.updates.shape, x.shape, strict=True)) if i != x.axis]
    open_pairs = [(count, size) for count, size in pairs if not is_nonnegative(sub(size, count))]
    more = tuple(size for pair in open_pairs for size in pair)
    return Single(kernels.Scattering(nest_of(nesting, vector_bits), len(open_pairs)), more)


def _selection(x: Best, nesting: Nesting, vector_bits: int) -> Single:
    element, count = x.operand.element, x.shape[x.axis]
    nest = nest_of(nesting, vector_bits, inner=nesting.reduced.index(True))
    nest = replace(nest, lanes=vector_bits // 8 // max(4, element_bytes(element)))
    return Single(kernels.Selection(nest, x.largest), (count,), count * kernels.record_bytes(element))


def _coupling(x: Couple, nesting: Nesting, vector_bits: int) -> Single:
    classes = x.shape[x.axis]
    if not isinstance(classes, int):
        raise TypeError("the number of classes is known")
    inner = nesting.reduced.index(False) if False in nesting.reduced else 0  # each lane is a row
    spec = kernels.Coupling(nest_of(nesting, vector_bits, inner=inner), x.iterations, x.tolerance)
    return Single(spec, (classes,), kernels.coupled_vectors(classes) * vector_bits // 8)
