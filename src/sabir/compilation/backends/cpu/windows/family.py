"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.windows.entries import add_windows, group_windows
from sabir.compilation.fusion.families import Family
from sabir.loops import Slide

FAMILIES = (
    Family(
        "windows",
        add_windows,
        (Slide,),
        group_windows,
        closed=False,
        epilogue=True,
        kernels={"Sliding": "sabir.compilation.backends.cpu.windows.kernel:sliding_text"},
    ),
)
