"""Short placeholders for bulk data: a random token, which no file can contain on purpose, and an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

TOKEN_SIZE = 16
PLACEHOLDER_SIZE = TOKEN_SIZE + 8


Contents = TypeVar("Contents")


class Placeholders(Generic[Contents]):
    """Buffers by their placeholders; `random` returns the bytes of the token."""

    def __init__(self, random: Callable[[int], bytes]) -> None:
        self.token = random(TOKEN_SIZE)
        self._views: list[Contents] = []

    def __len__(self) -> int:
        return len(self._views)

    def add(self, view: Contents) -> bytes:
        """Keep a buffer, and return its placeholder."""
        self._views.append(view)
        return self.token + (len(self._views) - 1).to_bytes(8, "little")

    def get(self, raw: bytes | memoryview) -> Contents | None:
        """Return the buffer whose placeholder is `raw`; None where there is none."""
        if len(raw) != PLACEHOLDER_SIZE or raw[:TOKEN_SIZE] != self.token:
            return None
        index = int.from_bytes(raw[TOKEN_SIZE:], "little")
        return self._views[index] if index < len(self._views) else None

    def release(self) -> None:
        """Drop all buffers."""
        self._views.clear()


def byte_view(data: bytes | memoryview) -> memoryview:
    """Return a read-only view of the data as single bytes; TypeError where it is not contiguous."""
    view = memoryview(data)
    if not view.nbytes:
        return memoryview(b"")  # an array with no elements cannot be cast
    if view.ndim != 1 or view.format != "B":
        view = view.cast("B")
    return view.toreadonly()
