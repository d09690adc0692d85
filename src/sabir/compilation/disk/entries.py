"""The file of one entry of the cache: a header that says what it is, and the data.

The data begins at a multiple of 64 bytes, so that kernels can read it from a map of the file.
"""

from __future__ import annotations

import hashlib
import struct
from typing import NamedTuple

_MAGIC = b"SABIR\xc3\r\n"
_FORMAT = 1
_HEADER = struct.Struct("<8sI20s32sQ32s24x")  # magic, format, kind, key, bytes of data, digest of the data
HEADER_SIZE = _HEADER.size
KEY_SIZE = 32
MAX_KIND = 20


class CacheEntry(NamedTuple):
    """An entry of the cache: its kind, the name and bytes of its file, and when it was last used.

    >>> from sabir.compilation.disk import CacheEntry
    >>> CacheEntry('objects', '00.sabir', 1128, 0.0).size
    1128
    """

    kind: str
    name: str
    size: int
    used: float


def header_of(kind: str, key: bytes, data: bytes | memoryview) -> bytes:
    """Return the header of an entry."""
    return _HEADER.pack(_MAGIC, _FORMAT, kind.encode(), key, len(data), hashlib.sha256(data).digest())


def problem_of(file: memoryview, kind: str, key: bytes, *, verify: bool) -> str:
    """Return what is wrong with the file of an entry; an empty text where nothing is.

    With `verify` the digest of the data is compared too.
    """
    if len(file) < HEADER_SIZE:
        return "it is truncated"
    magic, version, its_kind, its_key, size, digest = _HEADER.unpack_from(file)
    if magic != _MAGIC:
        return "it is not an entry of this cache"
    if version != _FORMAT:
        return "it has another format"
    if (its_kind.rstrip(b"\0"), its_key) != (kind.encode(), key):
        return "it is the entry of another key"
    if size != len(file) - HEADER_SIZE:
        return "it is truncated" if size > len(file) - HEADER_SIZE else "it is longer than its header says"
    if verify and hashlib.sha256(file[HEADER_SIZE:]).digest() != digest:
        return "its data is corrupt"
    return ""
