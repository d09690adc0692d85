"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.regions.entries import add_regions, group_regions
from sabir.compilation.fusion.families import Family
from sabir.loops import PoolRegions

FAMILIES = (
    Family(
        "regions",
        add_regions,
        (PoolRegions,),
        group_regions,
        row_major=True,
        kernels={"Regions": "sabir.compilation.backends.cpu.regions.kernel:regions_text"},
    ),
)
