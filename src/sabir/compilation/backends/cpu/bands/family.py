"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later

FAMILIES = (
    Family(
        "bands",
        schedule=Later("sabir.compilation.backends.cpu.bands.entries:schedule_bands"),
        scheduled=frozenset({"windows"}),
        kernels={"Bands": "sabir.compilation.backends.cpu.bands.kernel:bands_text"},
    ),
)
