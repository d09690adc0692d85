"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.elementwise.entries import add_nest
from sabir.compilation.fusion.families import Family

FAMILIES = (
    Family(
        "nest",
        add_nest,
        closed=False,
        kernels={"Nest": "sabir.compilation.backends.cpu.elementwise.kernel:nest_text"},
    ),
)
