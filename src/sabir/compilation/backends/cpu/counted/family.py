"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import Distinct, Suppress, TruePlaces

FAMILIES = (
    Family(
        "counted",
        Later("sabir.compilation.backends.cpu.counted.entries:add_counted"),
        (Distinct, Suppress, TruePlaces),
        Later("sabir.compilation.backends.cpu.counted.entries:group_counted"),
        row_major=True,
        kernels={
            "Distinction": "sabir.compilation.backends.cpu.counted.distinction:distinction_text",
            "Places": "sabir.compilation.backends.cpu.counted.places:places_text",
            "Suppression": "sabir.compilation.backends.cpu.counted.suppression:suppression_text",
        },
    ),
)
