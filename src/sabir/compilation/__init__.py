"""The compiler: models as plans of native kernels."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.compilation.engine.compiled import Compiled
from sabir.compilation.frontend.subject import Subject
from sabir.compilation.runtime.commits import Commit
from sabir.compilation.settings import Settings

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.passes import PASSES
    from sabir.compilation.inspect.explaining import EvaluatedCall, Explanation, Kernel
    from sabir.compilation.inspect.inspecting import CompiledPlan
    from sabir.compilation.inspect.listing import LISTINGS
    from sabir.compilation.inspect.profiling import NodeTime, Profile, Timing
    from sabir.compilation.inspect.roofline import Roofline
    from sabir.compilation.native import TARGETS
    from sabir.compilation.plan.decisions import Decision
    from sabir.compilation.settings import Precision

# a plan that is read from the disk runs without the modules that make and show plans
_LATER = {
    "CompiledPlan": "inspect.inspecting", "Decision": "plan.decisions", "EvaluatedCall": "inspect.explaining",
    "Explanation": "inspect.explaining", "Kernel": "inspect.explaining", "LISTINGS": "inspect.listing",
    "NodeTime": "inspect.profiling", "PASSES": "backends.cpu.passes", "Precision": "settings",
    "Profile": "inspect.profiling", "Roofline": "inspect.roofline", "TARGETS": "native",
    "Timing": "inspect.profiling",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)

__all__ = [
    "LISTINGS",
    "PASSES",
    "TARGETS",
    "Commit",
    "Compiled",
    "CompiledPlan",
    "Decision",
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
