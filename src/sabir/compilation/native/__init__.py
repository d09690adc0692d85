"""Machine code: LLVM, objects and libraries of kernels, and the threads that run plans.

>>> from sabir.compilation.native import Library, host
>>> text = 'define void @kernel(ptr %args, ptr %buffers, i64 %share, i64 %shares, i64 %thread) { ret void }'
>>> len(Library.load([text, text], host()).addresses)
2
"""

from typing import TYPE_CHECKING

from sabir.base import importing_later

if TYPE_CHECKING:
    from sabir.compilation.native._ahead import load_ahead
    from sabir.compilation.native._compile import disassemble, optimized
    from sabir.compilation.native._cores import usable_cores
    from sabir.compilation.native._early import EarlyKernels
    from sabir.compilation.native._entrance import Frame
    from sabir.compilation.native._objects import (
        Library,
        Source,
        compiled_objects,
        is_compiled,
        require_loading,
    )
    from sabir.compilation.native._placing import Image
    from sabir.compilation.native._target import TARGETS, Target, host, target_named
    from sabir.compilation.native._team import Control, Team, execute, team

# imported on first use: a plan from the disk needs no LLVM, which takes 50 ms to load
_LATER = {
    "Frame": "_entrance", "Target": "_target",
    "Image": "_placing",
    "host": "_target", "target_named": "_target", "TARGETS": "_target",
    "Library": "_objects", "Source": "_objects", "require_loading": "_objects", "is_compiled": "_objects",
    "compiled_objects": "_objects",
    "load_ahead": "_ahead", "EarlyKernels": "_early",
    "disassemble": "_compile", "optimized": "_compile",
    "Control": "_team", "Team": "_team", "execute": "_team", "team": "_team",
    "usable_cores": "_cores",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)

__all__ = [
    "TARGETS", "Control", "EarlyKernels", "Frame", "Image", "Library", "Source", "Target",
    "Team", "compiled_objects", "disassemble", "execute", "host", "is_compiled", "load_ahead",
    "optimized", "require_loading", "target_named", "team", "usable_cores",
]  # fmt: skip
