"""The gate after a causal convolution."""

from __future__ import annotations

from sabir.schema import Attribute, one_of

ACTIVATION = Attribute(
    "activation",
    "string",
    "silu or swish: `y sigmoid(y)`; or none.",
    default="none",
    values=one_of("silu", "swish", "none"),
)
