"""Model versions: which of two is enough for a change, and the least one that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sabir.comparison._policy import BUMPS

if TYPE_CHECKING:
    from sabir.comparison._policy import Bump

_Parts: TypeAlias = tuple[int, int, int]
_MOST: _Parts = (0xFFFF, 0xFFFF, 0xFFFF_FFFF)
_MOST_NUMBER = 0xFFFF_FFFF  # above it the number would be read as parts


def unpacked(version: int) -> _Parts | None:
    """Return MAJOR, MINOR and PATCH of a `model_version`, or None for a simple number."""
    bits = version & 0xFFFF_FFFF_FFFF_FFFF  # the field is signed, the parts are not
    return (bits >> 48, bits >> 32 & 0xFFFF, bits & 0xFFFF_FFFF) if bits >> 32 else None


def version_text(version: int) -> str:
    """Return a version as people write it: `1.2.345`, or a simple number."""
    parts = unpacked(version)
    return str(version) if parts is None else ".".join(map(str, parts))


def is_enough(old: int, new: int, required: Bump | None) -> bool:
    """Return whether a version follows another one with the required increment.

    Between simple numbers, and where the scheme becomes semantic, any increase is enough. A simple number
    never follows a semantic version: it is smaller.
    """
    if required is None:
        return True
    before, after = unpacked(old), unpacked(new)
    if after is None:
        return before is None and new > old
    if before is None:
        return True
    parts = BUMPS.index(required) + 1  # the leading part that increases may be any of these
    return after[:parts] > before[:parts]


def least_version(old: int, required: Bump) -> int | None:
    """Return the smallest version that is enough after another one, None where its part cannot increase."""
    parts = unpacked(old)
    if parts is None:
        return old + 1 if old < _MOST_NUMBER else None
    place = BUMPS.index(required)
    if parts[place] == _MOST[place]:
        return None
    major, minor, patch = (*parts[:place], parts[place] + 1, 0, 0)[:3]
    return major << 48 | minor << 32 | patch
