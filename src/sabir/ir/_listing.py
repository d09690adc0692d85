"""What `print` shows of the model objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable


class Listed:
    """An object whose `str` is a listing in the text syntax, which `sabir` supplies, and else its `repr`."""

    __slots__ = ()

    listing: ClassVar[Callable[[Any], str] | None] = None

    def __str__(self) -> str:
        return repr(self) if Listed.listing is None else Listed.listing(self)
