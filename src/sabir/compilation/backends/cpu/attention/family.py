"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.fusion.families import Family, Later
from sabir.loops import Contract

FAMILIES = (
    Family(
        "attention",
        Later("sabir.compilation.backends.cpu.attention.entries:add_attention"),
        claims=(Contract,),
        claim=Later("sabir.compilation.backends.cpu.attention.scores:claim_scores"),
        closed=False,
        epilogue=True,
        kernels={"Attention": "sabir.compilation.backends.cpu.attention.kernel:attention_text"},
    ),
)
