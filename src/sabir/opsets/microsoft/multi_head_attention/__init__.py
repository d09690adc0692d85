"""MultiHeadAttention: attention to keys and values that are projected already, in several layouts."""

from sabir.opsets.microsoft.multi_head_attention import _behaviours, _examples
from sabir.opsets.microsoft.multi_head_attention._history import multi_head_attention

__all__ = ["_behaviours", "_examples", "multi_head_attention"]
