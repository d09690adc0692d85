"""GroupQueryAttention: attention to a cache of keys, whose heads several heads of queries share."""

from sabir.opsets.microsoft.group_query_attention import _behaviours, _body, _examples, _lowering
from sabir.opsets.microsoft.group_query_attention._history import group_query_attention

__all__ = ["_behaviours", "_body", "_examples", "_lowering", "group_query_attention"]
