"""A small decoder for examples: its logits depend on tokens, position_ids, the mask and the past."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from sabir.opsets.typing import Array

_WORDS = """{0.31, -1.2, 0.87, 0.4, -0.95, 0.66, 1.3, -0.21, -0.5, -0.77, 0.12, 1.05, -1.4, 0.3, 0.7, 0.9}"""
_WEIGHTS = """{1.7, -0.6, 0.9, -1.1, 0.4, -2.1, 1.2, 0.8, -0.3, 1.9, -1.5, 0.7, 2.2, -0.4, 0.5, -1.8}"""
DECODER = f"""decoder (
    int32[b,s] input_ids, int32[b,s] position_ids, int32[b,t] attention_mask, float[2,b,1,p,2] past_0
) => (float[b,s,8] logits, float[2,b,1,t,2] present_0) {{
    words = Constant <value = float[8,2] {_WORDS}> ()
    weights = Constant <value = float[2,8] {_WEIGHTS}> ()
    zero = Constant <value = int64[1] {{0}}> ()
    one = Constant <value = int64[1] {{1}}> ()
    two = Constant <value = int64[1] {{2}}> ()
    ends = Constant <value = int64[2] {{1, 3}}> ()
    first = Constant <value = int64 {{0}}> ()
    x = Gather (words, input_ids)
    heads = Unsqueeze (x, one)
    half = Unsqueeze (heads, zero)
    new = Concat <axis = 0> (half, half)
    present_0 = Concat <axis = 3> (past_0, new)
    keys = Gather <axis = 0> (present_0, first)
    counts = Cast <to = 1> (attention_mask)
    kept = Unsqueeze (counts, ends)
    masked = Mul (keys, kept)
    context = ReduceMean <keepdims = 0> (masked, two)
    places = Cast <to = 1> (position_ids)
    waves = Sin (places)
    column = Unsqueeze (waves, two)
    moved = Add (x, column)
    seen = Add (moved, context)
    logits = MatMul (seen, weights)
}}"""
PROMPTS = np.array([[1, 2, 3], [0, 0, 4]], np.int32)
TOKENS: dict[str, Any] = {"decoder": DECODER, "eos_token_id": 2, "pad_token_id": 0}


def changed(**attributes: Any) -> dict[str, Any]:
    """Return `TOKENS` with other or further attributes."""
    return {**TOKENS, **attributes}


def one(value: float, kind: type = np.int32) -> Array:
    """Return an input of one element."""
    return np.full(1, value, np.dtype(kind))
