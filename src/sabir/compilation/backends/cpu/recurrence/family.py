"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import Recur

FAMILIES = (
    Family(
        "recurrence",
        Later("sabir.compilation.backends.cpu.recurrence.entries:add_recurrences"),
        (Recur,),
        Later("sabir.compilation.backends.cpu.recurrence.stages:add_recurrence"),
        row_major=True,
        kernels={"Recurrence": "sabir.compilation.backends.cpu.recurrence.kernel:recurrence_text"},
    ),
)
