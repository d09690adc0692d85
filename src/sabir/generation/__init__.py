"""Text generation: decoders with their caches."""

from sabir.generation._cache_buffers import with_cache_buffers

__all__ = ["with_cache_buffers"]
