"""What `print` and notebooks show of the model objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sabir.base import Displayed

if TYPE_CHECKING:
    from collections.abc import Callable


class Listed(Displayed):
    """An object whose `str` is a listing in the text syntax, which `sabir` supplies, and else its `repr`."""

    __slots__ = ()

    listing: ClassVar[Callable[[Any], str] | None] = None

    def __str__(self) -> str:
        return repr(self) if Listed.listing is None else Listed.listing(self)
