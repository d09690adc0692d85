"""The declarations of these families; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.singles.entries import add_single, group_scatter, group_single
from sabir.compilation.fusion.families import Family
from sabir.loops import Best, Couple, Cumulate, Scatter

FAMILIES = (
    Family(
        "single",
        add_single,
        (Cumulate, Best, Couple),
        group_single,
        kernels={
            "Cumulation": "sabir.compilation.backends.cpu.singles.cumulation:cumulation_text",
            "Selection": "sabir.compilation.backends.cpu.singles.selection:selection_text",
            "Coupling": "sabir.compilation.backends.cpu.singles.coupling:coupling_text",
        },
    ),
    Family(
        "scatter",
        add_single,
        (Scatter,),
        group_scatter,
        kernels={"Scattering": "sabir.compilation.backends.cpu.singles.scattering:scattering_text"},
    ),
)
