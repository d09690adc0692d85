"""Model versions: which of two is enough for a change, and the least one that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError
from sabir.comparison._policy import BUMPS
from sabir.ir import ModelVersion

if TYPE_CHECKING:
    from sabir.comparison._policy import Bump

_MOST_NUMBER = 0xFFFF_FFFF  # above it the number would be read as parts


def semantic(number: int) -> ModelVersion | None:
    """Return the semantic version that a `model_version` means, or None for a simple number."""
    return None if ModelVersion.is_simple(number) else ModelVersion.unpack(number)


def version_text(number: int) -> str:
    """Return a version as people write it: `1.2.345`, or a simple number.

    >>> version_text(281483566645593), version_text(7)
    ('1.2.345', '7')
    """
    return str(semantic(number) or number)


def is_enough(old: int, new: int, required: Bump | None) -> bool:
    """Return whether a version follows another one with the required increment.

    Between simple numbers, and where the scheme becomes semantic, any increase is enough. A simple number
    never follows a semantic version: it is smaller.
    """
    if required is None:
        return True
    before, after = semantic(old), semantic(new)
    if after is None:
        return before is None and new > old
    if before is None:
        return True
    parts = BUMPS.index(required) + 1  # the leading part that increases may be any of these
    return _parts(after)[:parts] > _parts(before)[:parts]


def least_version(old: int, required: Bump) -> int | None:
    """Return the smallest version that is enough after another one, None where its part cannot increase."""
    version = semantic(old)
    if version is None:
        return old + 1 if old < _MOST_NUMBER else None
    try:
        return version.bump(required).packed
    except SchemaError:
        return None


def _parts(version: ModelVersion) -> tuple[int, int, int]:
    return version.major, version.minor, version.patch
