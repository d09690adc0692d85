"""Small graphs for examples: their logits depend on tokens, positions, masks, the past and the encoder."""

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
_COMMON = f"""
    words = Constant <value = float[8,2] {_WORDS}> ()
    weights = Constant <value = float[2,8] {_WEIGHTS}> ()
    one = Constant <value = int64[1] {{1}}> ()
    two = Constant <value = int64[1] {{2}}> ()"""
_READ = """
    e = Gather (words, encoder_input_ids)
    counts = Cast <to = 1> (encoder_attention_mask)
    kept = Unsqueeze (counts, two)
    h = Mul (e, kept)"""
_CROSS = """
    present_key_cross_0 = Unsqueeze (h, one)
    waves = Sin (h)
    present_value_cross_0 = Unsqueeze (waves, one)"""
_FIRST = """
    encoder_hidden_states = Identity (h)
    d = Gather (words, decoder_input_ids)
    present_key_self_0 = Unsqueeze (d, one)
    present_value_self_0 = Neg (present_key_self_0)
    seen = ReduceMean (h, one)
    own = ReduceMean (d, one)
    moved = Add (d, seen)
    x = Sub (moved, own)
    logits = MatMul (x, weights)"""
_MASKED = """
    counts = Cast <to = 1> (encoder_attention_mask)
    ends = Constant <value = int64[2] {1, 3}> ()
    kept = Unsqueeze (counts, ends)
    read = Mul (both, kept)"""
_UNMASKED = "\n    read = Identity (both)"
_RESULTS = """float[b,n,8] logits, float[b,s,w] encoder_hidden_states, float[b,1,n,2] present_key_self_0,
    float[b,1,n,2] present_value_self_0, float[b,1,s,w] present_key_cross_0,
    float[b,1,s,w] present_value_cross_0"""
ENCODER = f"""encoder (
    int32[b,s] encoder_input_ids, int32[b,s] encoder_attention_mask, int32[b,n] decoder_input_ids
) => ({_RESULTS}) {{{_COMMON}{_READ}{_CROSS}{_FIRST}
}}"""
READER = f"""encoder (int32[b,s] encoder_input_ids, int32[b,s] encoder_attention_mask) => (
    float[b,1,s,2] present_key_cross_0, float[b,1,s,2] present_value_cross_0
) {{{_COMMON}{_READ}{_CROSS}
}}"""
"""An encoder that leaves the first tokens to the decoder."""
LISTENER = f"""encoder (
    float[b,w,s] encoder_input_ids, int32[b,n] decoder_input_ids
) => ({_RESULTS}) {{{_COMMON}
    h = Transpose <perm = [0, 2, 1]> (encoder_input_ids){_CROSS}{_FIRST}
}}"""
SOUNDS = np.array([[[0.5, -1.5, 2], [1, 0.25, -0.75]], [[-2, 1, 0], [0.5, 0.5, 1.5]]], np.float32)
FROM_TEXT: dict[str, Any] = {"model_type": 1, "decoder_start_token_id": 1, "encoder": ENCODER}
FROM_READER: dict[str, Any] = {**FROM_TEXT, "encoder": READER}
FROM_SOUND: dict[str, Any] = {"model_type": 2, "decoder_start_token_id": 1, "encoder": LISTENER}


def reading(*, mask: bool, states: bool = False, tokens: str = "1") -> str:
    """Return a decoder after an encoder: whether it reads its mask and hidden states, and how many tokens."""
    more = (", int32[b,s] encoder_attention_mask" if mask else "") + (
        ", float[b,s,2] encoder_hidden_states" if states else ""
    )
    return f"""decoder (
    int32[b,{tokens}] input_ids{more}, float[b,1,p,2] past_key_self_0, float[b,1,p,2] past_value_self_0,
    float[b,1,s,2] past_key_cross_0, float[b,1,s,2] past_value_cross_0
) => (
    float[b,{tokens},8] logits, float[b,1,q,2] present_key_self_0, float[b,1,q,2] present_value_self_0
) {{{_COMMON}
    d = Gather (words, input_ids)
    key = Unsqueeze (d, one)
    value = Neg (key)
    present_key_self_0 = Concat <axis = 2> (past_key_self_0, key)
    present_value_self_0 = Concat <axis = 2> (past_value_self_0, value)
    both = Add (past_key_cross_0, past_value_cross_0){_MASKED if mask else _UNMASKED}
    seen = ReduceMean <keepdims = 0> (read, two)
    own = ReduceMean <keepdims = 0> (present_value_self_0, two)
    context = Add (seen, own)
    x = Add (d, context)
    logits = MatMul (x, weights)
}}"""


PROMPTS = np.array([[1, 2, 3], [0, 0, 4]], np.int32)
TOKENS: dict[str, Any] = {"decoder": DECODER, "eos_token_id": 2, "pad_token_id": 0}


def changed(**attributes: Any) -> dict[str, Any]:
    """Return `TOKENS` with other or further attributes."""
    return {**TOKENS, **attributes}


def one(value: float, kind: type = np.int32) -> Array:
    """Return an input of one element."""
    return np.full(1, value, np.dtype(kind))
