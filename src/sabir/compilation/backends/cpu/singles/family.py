"""The declarations of these families; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import Best, Couple, Cumulate, Scatter

FAMILIES = (
    Family(
        "single",
        Later("sabir.compilation.backends.cpu.singles.entries:add_single"),
        (Cumulate, Best, Couple),
        Later("sabir.compilation.backends.cpu.singles.entries:group_single"),
        kernels={
            "Cumulation": "sabir.compilation.backends.cpu.singles.cumulation:cumulation_text",
            "Selection": "sabir.compilation.backends.cpu.singles.selection:selection_text",
            "Coupling": "sabir.compilation.backends.cpu.singles.coupling:coupling_text",
        },
    ),
    Family(
        "scatter",
        Later("sabir.compilation.backends.cpu.singles.entries:add_single"),
        (Scatter,),
        Later("sabir.compilation.backends.cpu.singles.entries:group_scatter"),
        kernels={"Scattering": "sabir.compilation.backends.cpu.singles.scattering:scattering_text"},
    ),
)
