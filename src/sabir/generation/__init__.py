"""Text generation: language models with their caches, tokenizers, sampling and beam search."""

from sabir.generation._cache_buffers import with_cache_buffers
from sabir.generation._generator import TextGenerator
from sabir.generation._results import FinishReason, Generation
from sabir.generation._settings import MAX_NEW_TOKENS, Options, Settings
from sabir.generation._text_pieces import TextPieces
from sabir.generation._tokenizer import Tokenizer

__all__ = [
    "MAX_NEW_TOKENS",
    "FinishReason",
    "Generation",
    "Options",
    "Settings",
    "TextGenerator",
    "TextPieces",
    "Tokenizer",
    "with_cache_buffers",
]
