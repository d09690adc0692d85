"""The declaration of this family; `sabir.compilation.fusion.families` explains the fields."""

from __future__ import annotations

from sabir.compilation.backends.cpu.attention.entries import add_attention
from sabir.compilation.backends.cpu.attention.scores import claim_scores
from sabir.compilation.fusion.families import Family
from sabir.loops import Contract

FAMILIES = (
    Family(
        "attention",
        add_attention,
        claims=(Contract,),
        claim=claim_scores,
        closed=False,
        epilogue=True,
        kernels={"Attention": "sabir.compilation.backends.cpu.attention.kernel:attention_text"},
    ),
)
