"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import Slide

FAMILIES = (
    Family(
        "windows",
        Later("sabir.compilation.backends.cpu.windows.entries:add_windows"),
        (Slide,),
        Later("sabir.compilation.backends.cpu.windows.entries:group_windows"),
        closed=False,
        epilogue=True,
        kernels={"Sliding": "sabir.compilation.backends.cpu.windows.kernel:sliding_text"},
    ),
)
