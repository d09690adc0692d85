"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later

FAMILIES = (
    Family(
        "nest",
        Later("sabir.compilation.backends.cpu.elementwise.entries:add_nest"),
        closed=False,
        kernels={"Nest": "sabir.compilation.backends.cpu.elementwise.kernel:nest_text"},
    ),
)
