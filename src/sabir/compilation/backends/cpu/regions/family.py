"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import PoolRegions

FAMILIES = (
    Family(
        "regions",
        Later("sabir.compilation.backends.cpu.regions.entries:add_regions"),
        (PoolRegions,),
        Later("sabir.compilation.backends.cpu.regions.entries:group_regions"),
        row_major=True,
        kernels={"Regions": "sabir.compilation.backends.cpu.regions.kernel:regions_text"},
    ),
)
