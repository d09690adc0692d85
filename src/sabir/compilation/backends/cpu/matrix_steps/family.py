"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.matrix_steps.entries import add_matrix_steps, group_matrix_steps
from sabir.compilation.fusion.families import Family
from sabir.loops import MatrixSteps

FAMILIES = (
    Family(
        "matrix steps",
        add_matrix_steps,
        (MatrixSteps,),
        group_matrix_steps,
        row_major=True,
        kernels={
            "MatrixRecurrence": "sabir.compilation.backends.cpu.matrix_steps.kernel:matrix_recurrence_text"
        },
    ),
)
