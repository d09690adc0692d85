"""Elements narrower than a byte: between packed bytes and one code a byte.

A code is in the low bits of its byte, signed or not, and the other bits are zero. ml_dtypes stores its
small types like this, so a view of the codes is the array of values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]

# Words are little-endian on every host, so that their first byte is the first element.
_PAIR = np.dtype("<u2")
_QUAD = np.dtype("<u4")


def expand(packed: Bytes, bits: int, count: int) -> Bytes:
    """Return the first `count` codes of `packed`, one a byte; `bits` is 2, 4 or 6."""
    codes = _EXPAND[bits](packed)
    return codes[:count]


def shrink(codes: npt.NDArray[Any], bits: int) -> Bytes:
    """Return one-byte `codes` packed first-in-lowest-bits, the last byte's rest zero."""
    size = -(-codes.size * bits // 8)
    return _SHRINK[bits](codes.view(np.uint8))[:size]


def _expand2(packed: Bytes) -> Bytes:
    words = packed.astype(_QUAD)
    words |= words << 12
    words &= 0x000F000F
    words |= words << 6
    words &= 0x03030303
    return words.view(np.uint8)


def _expand4(packed: Bytes) -> Bytes:
    words = packed.astype(_PAIR)
    words |= words << 4
    words &= 0x0F0F
    return words.view(np.uint8)


def _expand6(packed: Bytes) -> Bytes:
    groups = _padded(packed, 3).reshape(-1, 3)
    first, second, third = groups[:, 0], groups[:, 1], groups[:, 2]
    codes = np.empty((len(groups), 4), np.uint8)
    codes[:, 0] = first
    codes[:, 1] = first >> 6 | second << 2
    codes[:, 2] = second >> 4 | third << 4
    codes[:, 3] = third >> 2
    codes &= 0x3F
    return codes.reshape(-1)


def _shrink2(codes: Bytes) -> Bytes:
    words = _padded(codes, 4).view(_QUAD) & 0x03030303
    return (words | words >> 6 | words >> 12 | words >> 18).astype(np.uint8)


def _shrink4(codes: Bytes) -> Bytes:
    words = _padded(codes, 2).view(_PAIR) & 0x0F0F
    return (words | words >> 4).astype(np.uint8)


def _shrink6(codes: Bytes) -> Bytes:
    groups = _padded(codes, 4).reshape(-1, 4) & 0x3F
    packed = np.empty((len(groups), 3), np.uint8)
    packed[:, 0] = groups[:, 0] | groups[:, 1] << 6
    packed[:, 1] = groups[:, 1] >> 2 | groups[:, 2] << 4
    packed[:, 2] = groups[:, 2] >> 4 | groups[:, 3] << 2
    return packed.reshape(-1)


def _padded(row: Bytes, multiple: int) -> Bytes:
    """Return `row` with zeros up to whole groups; itself when it has none to add."""
    missing = -row.size % multiple
    return np.concatenate([row, np.zeros(missing, np.uint8)]) if missing else row


_EXPAND = {2: _expand2, 4: _expand4, 6: _expand6}
_SHRINK = {2: _shrink2, 4: _shrink4, 6: _shrink6}
