"""The LLVM module of each kind of kernel: a new kind has a line in `Kernel` and one in the table."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from sabir.compilation.kernels._attention import Attention
    from sabir.compilation.kernels._bands import Bands
    from sabir.compilation.kernels._coupling import Coupling
    from sabir.compilation.kernels._cumulation import Cumulation
    from sabir.compilation.kernels._descent import Descent
    from sabir.compilation.kernels._matrix_steps import MatrixRecurrence
    from sabir.compilation.kernels._nest import Nest
    from sabir.compilation.kernels._packing import Packing
    from sabir.compilation.kernels._product_spec import Product
    from sabir.compilation.kernels._recurrence import Recurrence
    from sabir.compilation.kernels._regions import Regions
    from sabir.compilation.kernels._scattering import Scattering
    from sabir.compilation.kernels._selection import Selection
    from sabir.compilation.kernels._sliding import Sliding
    from sabir.compilation.kernels._winograd import Winograd

_OfProducts: TypeAlias = "Product | Attention | Packing | Recurrence | MatrixRecurrence | Sliding | Winograd"
Kernel: TypeAlias = (
    "Nest | Bands | Coupling | Cumulation | Descent | Regions | Scattering | Selection | _OfProducts"
)

# by the class of a kernel: the module and the function that writes its text, imported when there is one
_TEXTS = {
    "Nest": ("_loops", "nest_text"),
    "Product": ("_product", "product_text"),
    "Attention": ("_attention", "attention_text"),
    "Bands": ("_bands", "bands_text"),
    "Packing": ("_packing", "packing_text"),
    "Coupling": ("_coupling", "coupling_text"),
    "Cumulation": ("_cumulation", "cumulation_text"),
    "Descent": ("_descent", "descent_text"),
    "MatrixRecurrence": ("_matrix_steps", "matrix_recurrence_text"),
    "Recurrence": ("_recurrence", "recurrence_text"),
    "Regions": ("_regions", "regions_text"),
    "Scattering": ("_scattering", "scattering_text"),
    "Selection": ("_selection", "selection_text"),
    "Sliding": ("_sliding", "sliding_text"),
    "Winograd": ("_winograd", "winograd_text"),
}


def text_of(kernel: Kernel) -> str:
    """Return the LLVM module of a kernel."""
    module, function = _TEXTS[type(kernel).__name__]
    return getattr(importlib.import_module(f"{__package__}.{module}"), function)(kernel)
