"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.bands.entries import schedule_bands
from sabir.compilation.fusion.families import Family

FAMILIES = (
    Family(
        "bands",
        schedule=schedule_bands,
        kernels={"Bands": "sabir.compilation.backends.cpu.bands.kernel:bands_text"},
    ),
)
