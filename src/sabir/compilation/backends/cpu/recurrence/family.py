"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.recurrence.entries import add_recurrences
from sabir.compilation.backends.cpu.recurrence.stages import add_recurrence
from sabir.compilation.fusion.families import Family
from sabir.loops import Recur

FAMILIES = (
    Family(
        "recurrence",
        add_recurrences,
        (Recur,),
        add_recurrence,
        row_major=True,
        kernels={"Recurrence": "sabir.compilation.backends.cpu.recurrence.kernel:recurrence_text"},
    ),
)
