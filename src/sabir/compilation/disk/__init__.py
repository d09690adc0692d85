"""The cache on disk: files by kind and key, which processes share, within a limit of bytes.

>>> from sabir.compilation.disk import cache
>>> cache().get('plans', bytes(32)) is None
True
"""

from sabir.compilation.disk.entries import CacheEntry
from sabir.compilation.disk.folder import Cache, cache

__all__ = ["Cache", "CacheEntry", "cache"]
