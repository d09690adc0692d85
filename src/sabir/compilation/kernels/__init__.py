"""Kernels: LLVM IR for loops over tensors."""

from typing import TYPE_CHECKING

from sabir.base import importing_later
from sabir.compilation.kernels._body import element_bytes
from sabir.compilation.kernels._nest import (
    ANY,
    MOST_REPEATS,
    NEXT,
    SHORT,
    STILL,
    Access,
    Accumulated,
    Apply,
    Constant,
    Fold,
    Layout,
    Load,
    Nest,
    Position,
    SizeArgument,
    Step,
    Stride,
)
from sabir.compilation.kernels._nest import Take as TakeStep
from sabir.compilation.kernels._packing import Packing
from sabir.compilation.kernels._passes import passes_of
from sabir.compilation.kernels._product_spec import Product, ProductLayout
from sabir.compilation.kernels._terms import GROUPS, Dot, Groups
from sabir.compilation.kernels._texts import Kernel, text_of
from sabir.compilation.kernels._transposes import can_transpose

if TYPE_CHECKING:
    from sabir.compilation.kernels._attention import Attention, Keys
    from sabir.compilation.kernels._bands import MOST_TENSORS, Bands
    from sabir.compilation.kernels._coupling import Coupling, coupled_vectors
    from sabir.compilation.kernels._cumulation import Cumulation
    from sabir.compilation.kernels._descent import LANES, Descent
    from sabir.compilation.kernels._limits import memory_test_text, multiply_test_text
    from sabir.compilation.kernels._matrix_steps import MatrixRecurrence
    from sabir.compilation.kernels._recurrence import (
        WALK,
        Recurrence,
        StateAccess,
        StepStage,
    )
    from sabir.compilation.kernels._regions import Regions
    from sabir.compilation.kernels._scattering import Scattering
    from sabir.compilation.kernels._selection import Selection, record_bytes
    from sabir.compilation.kernels._sliding import Sliding
    from sabir.compilation.kernels._winograd import GAP, Winograd, places_of

# imported on first use: most models have few kinds of kernels
_LATER = {
    "Attention": "_attention", "Keys": "_attention", "Bands": "_bands", "MOST_TENSORS": "_bands",
    "Coupling": "_coupling", "coupled_vectors": "_coupling",
    "Cumulation": "_cumulation", "Descent": "_descent", "LANES": "_descent", "memory_test_text": "_limits",
    "multiply_test_text": "_limits", "MatrixRecurrence": "_matrix_steps", "Recurrence": "_recurrence",
    "StateAccess": "_recurrence", "StepStage": "_recurrence", "WALK": "_recurrence",
    "Regions": "_regions",
    "Scattering": "_scattering", "Selection": "_selection", "record_bytes": "_selection",
    "Sliding": "_sliding", "Winograd": "_winograd", "GAP": "_winograd", "places_of": "_winograd",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)

__all__ = [
    "ANY", "GAP", "GROUPS", "LANES", "MOST_REPEATS", "MOST_TENSORS", "NEXT", "SHORT", "STILL", "WALK",
    "Access", "Accumulated", "Apply", "Attention", "Bands", "Constant", "Coupling", "Cumulation", "Descent",
    "Dot", "Fold", "Groups", "Kernel", "Keys", "Layout", "Load", "MatrixRecurrence", "Nest", "Packing",
    "Position", "Product", "ProductLayout", "Recurrence", "Regions", "Scattering", "Selection",
    "SizeArgument", "Sliding", "StateAccess", "Step", "StepStage", "Stride", "TakeStep", "Winograd",
    "can_transpose", "coupled_vectors", "element_bytes", "memory_test_text", "multiply_test_text",
    "passes_of", "places_of", "record_bytes", "text_of",
]  # fmt: skip
