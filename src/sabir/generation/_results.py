"""What a generation returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

FinishReason: TypeAlias = Literal["stop", "length", "context", "interrupted"]
"""Why a generation ended: a stop id or string, the number of new tokens, the context length, an interrupt."""


@dataclass(frozen=True)
class Generation:
    """The tokens generated for one prompt, and how long that took.

    `ids` are the new tokens; if a stop id ended the generation, it is the last of them. `text` is their
    text without special tokens, and ends before a stop string; it is None without a tokenizer.
    `prompt_tokens` is the length of the prompt in tokens, `reused_tokens` how many of these were not
    computed again. `seconds` is the time of the whole call, `first_token_seconds` that until the first
    token of this prompt, both with compilation. `score` is the result of beam search: the sum of the
    logarithms of the probabilities, divided by the number of tokens to the power `length_penalty`.

    >>> result = Generation('blue', [5, 2], 'stop', 3, seconds=0.5, first_token_seconds=0.3)
    >>> round(result.tokens_per_second, 6)
    5.0
    """

    text: str | None
    ids: Sequence[int]
    finish_reason: FinishReason
    prompt_tokens: int
    reused_tokens: int = 0
    seconds: float = 0.0
    first_token_seconds: float = 0.0
    score: float | None = None

    @property
    def tokens_per_second(self) -> float:
        """The tokens a second after the first token; 0 where there are fewer than two tokens."""
        seconds = self.seconds - self.first_token_seconds
        return (len(self.ids) - 1) / seconds if len(self.ids) > 1 and seconds > 0 else 0.0
