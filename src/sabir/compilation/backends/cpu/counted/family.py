"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.counted.entries import add_counted, group_counted
from sabir.compilation.fusion.families import Family
from sabir.loops import Distinct, Suppress, TruePlaces

FAMILIES = (
    Family(
        "counted",
        add_counted,
        (Distinct, Suppress, TruePlaces),
        group_counted,
        row_major=True,
        kernels={
            "Distinction": "sabir.compilation.backends.cpu.counted.distinction:distinction_text",
            "Places": "sabir.compilation.backends.cpu.counted.places:places_text",
            "Suppression": "sabir.compilation.backends.cpu.counted.suppression:suppression_text",
        },
    ),
)
