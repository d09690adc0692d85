"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import MatrixSteps

FAMILIES = (
    Family(
        "matrix steps",
        Later("sabir.compilation.backends.cpu.matrix_steps.entries:add_matrix_steps"),
        (MatrixSteps,),
        Later("sabir.compilation.backends.cpu.matrix_steps.entries:group_matrix_steps"),
        row_major=True,
        kernels={
            "MatrixRecurrence": "sabir.compilation.backends.cpu.matrix_steps.kernel:matrix_recurrence_text"
        },
    ),
)
