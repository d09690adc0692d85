"""The compiler: models as plans of native kernels."""

from typing import TYPE_CHECKING

from sabir.base import importing_later
from sabir.compilation._commits import Commit
from sabir.compilation._engine import Compiled
from sabir.compilation._settings import Settings
from sabir.compilation._subject import Subject

if TYPE_CHECKING:
    from sabir.compilation._explaining import EvaluatedCall, Explanation, Kernel
    from sabir.compilation._inspecting import CompiledPlan
    from sabir.compilation._listing import LISTINGS
    from sabir.compilation._profiling import NodeTime, Profile, Timing
    from sabir.compilation._roofline import Roofline
    from sabir.compilation._settings import Precision
    from sabir.compilation.native import TARGETS
    from sabir.compilation.passes import PASSES

# a plan that is read from the disk runs without the modules that make and show plans
_LATER = {
    "CompiledPlan": "_inspecting", "EvaluatedCall": "_explaining", "Explanation": "_explaining",
    "Kernel": "_explaining", "LISTINGS": "_listing", "NodeTime": "_profiling", "PASSES": "passes",
    "Precision": "_settings", "Profile": "_profiling", "Roofline": "_roofline", "TARGETS": "native",
    "Timing": "_profiling",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)

__all__ = [
    "LISTINGS",
    "PASSES",
    "TARGETS",
    "Commit",
    "Compiled",
    "CompiledPlan",
    "EvaluatedCall",
    "Explanation",
    "Kernel",
    "NodeTime",
    "Precision",
    "Profile",
    "Roofline",
    "Settings",
    "Subject",
    "Timing",
]
