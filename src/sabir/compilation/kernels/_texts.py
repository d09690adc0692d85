"""The LLVM module of each kind of kernel: a new kind has a line in `Kernel` and one in the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from sabir.compilation.kernels._attention import Attention, attention_text
from sabir.compilation.kernels._coupling import Coupling, coupling_text
from sabir.compilation.kernels._cumulation import Cumulation, cumulation_text
from sabir.compilation.kernels._descent import Descent, descent_text
from sabir.compilation.kernels._loops import nest_text
from sabir.compilation.kernels._matrix_steps import MatrixRecurrence, matrix_recurrence_text
from sabir.compilation.kernels._nest import Nest
from sabir.compilation.kernels._packing import Packing, packing_text
from sabir.compilation.kernels._product import product_text
from sabir.compilation.kernels._product_spec import Product
from sabir.compilation.kernels._recurrence import Recurrence, recurrence_text
from sabir.compilation.kernels._scattering import Scattering, scattering_text
from sabir.compilation.kernels._selection import Selection, selection_text
from sabir.compilation.kernels._sliding import Sliding, sliding_text
from sabir.compilation.kernels._winograd import Winograd, winograd_text

if TYPE_CHECKING:
    from collections.abc import Callable

Kernel: TypeAlias = (
    Nest | Product | Attention | Packing | Coupling | Cumulation | Descent | Recurrence | MatrixRecurrence
    | Scattering | Selection | Sliding | Winograd
)  # fmt: skip

_TEXTS: dict[type, Callable[[Any], str]] = {
    MatrixRecurrence: matrix_recurrence_text,
    Nest: nest_text,
    Product: product_text,
    Attention: attention_text,
    Packing: packing_text,
    Coupling: coupling_text,
    Cumulation: cumulation_text,
    Descent: descent_text,
    Recurrence: recurrence_text,
    Scattering: scattering_text,
    Selection: selection_text,
    Sliding: sliding_text,
    Winograd: winograd_text,
}


def text_of(kernel: Kernel) -> str:
    """Return the LLVM module of a kernel."""
    return _TEXTS[type(kernel)](kernel)
