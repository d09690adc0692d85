"""The gradient of Attention."""

from typing import NamedTuple

from sabir.elements import BOOL
from sabir.ir import Value
from sabir.opsets.families.attention import attention_gradients
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.onnx.attention._history import PADDED_MASKS, v23
from sabir.opsets.typing import Gradient
from sabir.schema import Call

_END = 2**63 - 1


@v23.gradient
def gradient(  # ruff: ignore[too-many-arguments, too-many-locals]  the operator's signature
    g: Gradient, q: Value, k: Value, v: Value, /, *rest: Value | None,
    qk_matmul_output_mode: int, softcap: float, softmax_precision: int | None, kv_num_heads: int | None,
    q_num_heads: int | None, scale: float | None, is_causal: int, right_window_size: int = -1,
    left_window_size: int = -1, call: Call,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Halves are computed in float; the gradient of a mask is that of a bias."""
    wide = halves.widened(g, q)
    inputs = graphs.AttentionInputs.of(g, wide, k, v, *rest)
    masks, padded = _masks(g, inputs, k, (left_window_size, 0 if is_causal else right_window_size), call)
    layout = _Layout(g, (q_num_heads, kv_num_heads) if graphs.is_packed((q, k, v), q_num_heads) else None)
    present = (layout.apart(k, 1), layout.apart(v, 1)) if inputs.past_key is None else g.ys(1, 2)
    keys, values = (calls.typed(g, x, element_of(wide)) for x in present)
    scores = attention_gradients.Scores(
        layout.apart(wide, 0), keys, values, masks, scale, softcap, softmax_precision
    )
    dy, *d_present, d_scores = (
        None if d is None else calls.typed(g, d, element_of(wide)) for d in (*g.dys, None, None, None)[:4]
    )
    dy = None if dy is None else layout.apart(dy, 0)
    dq, *d_kv, d_bias = scores.gradients(g, dy, (qk_matmul_output_mode, d_scores))
    d_kv = [attention_gradients.total(g, *pair) for pair in zip(d_kv, d_present, strict=True)]
    (old_key, dk), (old_value, dv) = (_parted(g, d, inputs.past_key) for d in d_kv)
    d_inputs = layout.joined(dq, q, 0), layout.joined(dk, k, 1), layout.joined(dv, v, 1)
    d_mask = _of_mask(g, d_bias, inputs.mask, masks.bias if padded else None)
    found = (*d_inputs, d_mask, old_key, old_value, None)
    pairs = zip(found, (q, k, v, *rest), strict=False)
    return tuple(None if d is None or x is None else calls.typed(g, d, element_of(x)) for d, x in pairs)


class _Layout(NamedTuple):
    """The numbers of heads of queries and of keys where these are in the last dimension."""

    g: Gradient
    heads: tuple[int | None, int | None] | None

    def apart(self, x: Value, place: int) -> Value:
        return x if self.heads is None else graphs.split(self.g, x, self.heads[place] or 0)

    def joined(self, d: Value | None, x: Value, place: int) -> Value | None:
        if d is None or self.heads is None:
            return d
        return graphs.joined(self.g, d, x, self.heads[place] or 0)


def _masks(
    g: Gradient, inputs: graphs.AttentionInputs, k: Value, window: tuple[int, int], call: Call
) -> tuple[graphs.ScoreMaskValues, bool]:
    """Return the masks of the scores, and whether that of the call is padded."""
    allowed, mask = inputs.visible(window), inputs.mask
    padded = call.opset >= PADDED_MASKS and mask is not None and not _covers(g, mask, k, inputs.past_key)
    bias, kind = inputs.typed_mask(padded=padded)
    if kind is BOOL:
        return graphs.ScoreMaskValues(None, graphs.combined(g, bias, allowed)), False
    return graphs.ScoreMaskValues(bias, allowed), padded


def _covers(g: Gradient, mask: Value, k: Value, past: Value | None) -> bool:
    """Return whether a mask is known to have an element for each key."""
    lengths = [(g.shape(x) or (None, None))[-2] for x in (k, past) if x is not None]
    known = [n for n in lengths if isinstance(n, int)]
    shape = g.shape(mask)
    return shape == () or (len(known) == len(lengths) and bool(shape) and shape[-1] == sum(known))


def _parted(g: Gradient, d: Value | None, past: Value | None) -> tuple[Value | None, Value | None]:
    """Return the gradients of the cache and of what the call appends to it."""
    if d is None or past is None:
        return None, d
    count = graphs.size(g, past, 2)
    return g.Slice(d, [0], count, [2]), g.Slice(d, count, [_END], [2])


def _of_mask(g: Gradient, d: Value | None, mask: Value | None, padded: Value | None) -> Value | None:
    """Return the gradient of a mask of numbers, which may end before the keys do."""
    if d is None or mask is None or not element_of(mask).is_float:
        return None
    if padded is None:
        return g.fit(d, mask)
    return g.Slice(g.fit(d, padded), [0], graphs.size(g, mask, -1), [-1])
