"""Attention in its forms, and rotary embeddings."""

from __future__ import annotations

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it
from torch.nn import functional  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import case

QUERY, KEY, VALUE = (1, 2, 3, 2), (1, 2, 4, 2), (1, 2, 4, 3)
_MASK = [[True, True, False, True], [True, False, True, True], [False, True, True, True]]


def _attention(name, call, attributes="", q=QUERY, k=KEY, v=VALUE, mask=None, **options):
    inputs = {"q": q, "k": k, "v": v} | ({} if mask is None else {"m": mask})
    return case(f"Attention {name}", f"y = Attention <softmax_precision = 11{attributes}> ({call})",
                lambda q, k, v, m=None: functional.scaled_dot_product_attention(q, k, v, attn_mask=m, **options),
                **inputs)  # fmt: skip


def _heads(x, count):
    return x.unflatten(2, (count, -1)).transpose(1, 2)


def _of_three_axes(q, k, v):
    y = functional.scaled_dot_product_attention(_heads(q, 2), _heads(k, 2), _heads(v, 2))
    return y.transpose(1, 2).flatten(2)


def _with_past(q, k, v, pk, pv):
    k, v = torch.cat([pk, k], 2), torch.cat([pv, v], 2)
    return functional.scaled_dot_product_attention(q, k, v), k, v


def _capped(q, k, v):
    scores = q @ k.transpose(2, 3) / 2**0.5
    return torch.softmax(torch.tanh(scores / 1.5) * 1.5, -1) @ v


CASES = [
    _attention("plain", "q, k, v"),
    _attention("scaled", "q, k, v", ", scale = 0.25", scale=0.25),
    _attention("causal", "q, k, v", ", is_causal = 1", k=(1, 2, 3, 2), v=(1, 2, 3, 2), is_causal=True),
    _attention("bool mask", "q, k, v, m", mask=_MASK),
    _attention("float mask", "q, k, v, m", mask=(1, 1, 3, 4)),
    _attention("mask of one head", "q, k, v, m", mask=(1, 2, 3, 4)),
    _attention("groups", "q, k, v", q=(1, 4, 3, 2), enable_gqa=True),
    case("Attention of three axes", "y = Attention <q_num_heads = 2, kv_num_heads = 2, softmax_precision = 11> (q, k, v)",
         _of_three_axes, q=(2, 3, 4), k=(2, 3, 4), v=(2, 3, 4)),
    case("Attention with past", "y, a, b = Attention <softmax_precision = 11> (q, k, v, , pk, pv)", _with_past, outputs="y a b",
         q=(1, 1, 2, 2), k=(1, 1, 2, 2), v=(1, 1, 2, 2), pk=(1, 1, 3, 2), pv=(1, 1, 3, 2)),
    case("Attention with softcap", "y = Attention <softcap = 1.5, softmax_precision = 11> (q, k, v)", _capped,
         q=QUERY, k=KEY, v=VALUE),
]  # fmt: skip
