"""The compiler: models as plans of native kernels."""

from sabir.compilation._engine import Compiled
from sabir.compilation._explaining import EvaluatedCall, Explanation, Kernel
from sabir.compilation._inspecting import CompiledPlan
from sabir.compilation._listing import LISTINGS
from sabir.compilation._profiling import NodeTime, Profile, Timing
from sabir.compilation._roofline import Roofline

__all__ = [
    "LISTINGS",
    "Compiled",
    "CompiledPlan",
    "EvaluatedCall",
    "Explanation",
    "Kernel",
    "NodeTime",
    "Profile",
    "Roofline",
    "Timing",
]
