"""Attributes and the types of constants as texts of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.ir import SparseTensor, Tensor
from sabir.viewing._texts import TEXT, shortened
from sabir.viewing._weights import weight_summary

if TYPE_CHECKING:
    from sabir.ir import Attribute

_MOST_ITEMS = 8  # of a list


def attribute_text(attribute: Attribute) -> str:
    """Return an attribute as a page shows it; a long list or tensor is cut.

    >>> from sabir.ir import Attribute
    >>> attribute_text(Attribute.of('pads', [0] * 12))
    '[0, 0, 0, 0, 0, 0, 0, 0, … 12 in all]'
    """
    if attribute.ref:
        return shortened(f"@{attribute.ref}", TEXT)
    value: Any = attribute.value
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value  # pyright: ignore[reportUnknownVariableType] - of any attribute type
        more = f", … {len(items):,} in all" if len(items) > _MOST_ITEMS else ""
        return shortened(f"[{', '.join(map(_item_text, items[:_MOST_ITEMS]))}{more}]", TEXT)
    return shortened(_item_text(value), TEXT)


def constant_type(constant: Tensor | SparseTensor) -> str:
    """Return the type of a constant, `?` where it is not sound."""
    if isinstance(constant, SparseTensor):
        return f"sparse {constant.values.element}{list(constant.shape)}"
    kind = constant.sound_type
    return "?" if kind is None else str(kind)


def _item_text(value: object) -> str:
    if isinstance(value, (Tensor, SparseTensor)):
        return f"{constant_type(value)} {weight_summary(value).get('values', '')}".strip()
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if isinstance(value, str) else str(value)
