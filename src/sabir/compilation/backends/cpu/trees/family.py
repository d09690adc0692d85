"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.trees.entries import add_trees, group_trees
from sabir.compilation.fusion.families import Family
from sabir.loops import Descend

FAMILIES = (
    Family(
        "trees",
        add_trees,
        (Descend,),
        group_trees,
        row_major=True,
        kernels={"Descent": "sabir.compilation.backends.cpu.trees.kernel:descent_text"},
    ),
)
