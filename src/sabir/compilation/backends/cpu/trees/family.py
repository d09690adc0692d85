"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import Descend

FAMILIES = (
    Family(
        "trees",
        Later("sabir.compilation.backends.cpu.trees.entries:add_trees"),
        (Descend,),
        Later("sabir.compilation.backends.cpu.trees.entries:group_trees"),
        row_major=True,
        kernels={"Descent": "sabir.compilation.backends.cpu.trees.kernel:descent_text"},
    ),
)
