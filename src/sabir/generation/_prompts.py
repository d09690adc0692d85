"""The computation of prompts: common beginnings once, and nothing that an earlier cache contains."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.generation._cache import Cache, Padding
    from sabir.generation._decoder import Decoder
    from sabir.generation._sampling import Scores
    from sabir.ir import Array


class Computed(NamedTuple):
    """A cache with the prompts as its rows, the logits after each: [rows, vocabulary], and what was reused.

    `reused` is for each row the number of positions that came from an earlier cache.
    """

    cache: Cache
    logits: Scores
    reused: list[int]


def compute_prompts(
    decoder: Decoder,
    prompts: Sequence[Sequence[int]],
    known: Sequence[Cache],
    padding: Padding | None,
    context: Mapping[str, Array] | None,
) -> Computed:
    """Compute prompts, which have the same length where there is no `padding`.

    `known` has caches of one row each. With a `context` nothing is reused, as it depends on what was encoded.
    """
    if context is not None or not decoder.has_cache:
        cache = decoder.start(len(prompts), context)
        return Computed(cache, decoder.step(cache, prompts), [0] * len(prompts))
    pool = list(known)
    reused = [_longest(prompt, pool)[1] for prompt in prompts]
    if len(prompts) > 1:
        pool += _shared(decoder, prompts, pool)
    parts: dict[int, tuple[Cache, Scores]] = {}
    for numbers, base, length in _groups(prompts, pool, separate=padding == "right"):
        cache = decoder.start() if base is None else base.fork()
        cache.truncate(length)
        cache.select([0] * len(numbers))
        logits = decoder.step(cache, [prompts[n][length:] for n in numbers])
        if len(numbers) == len(prompts):
            return Computed(cache, logits, reused)
        parts |= {n: (cache.row(i), logits[i]) for i, n in enumerate(numbers)}
    rows = [parts[n] for n in range(len(prompts))]
    stacked = type(rows[0][0]).stack([cache for cache, _ in rows], padding or "left")
    return Computed(stacked, np.stack([logits for _, logits in rows]), reused)


def common_length(a: Sequence[int], b: Sequence[int]) -> int:
    """Return how many tokens two sequences begin with alike."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _longest(prompt: Sequence[int], pool: Sequence[Cache]) -> tuple[Cache | None, int]:
    """Return the cache with the most positions of a prompt, and their number; the last token is computed."""
    most, found = 0, None
    for cache in pool:
        length = common_length(prompt[:-1], cache.tokens[0])
        is_whole = length == len(cache.tokens[0])
        if length > most and (is_whole or cache.can_truncate):
            most, found = length, cache
    return found, most


def _shared(decoder: Decoder, prompts: Sequence[Sequence[int]], pool: Sequence[Cache]) -> list[Cache]:
    """Return a cache of the beginning that all prompts share, if none contains it yet."""
    length = min(common_length(prompts[0], prompt[:-1]) for prompt in prompts)
    base, known = _longest(prompts[0][: length + 1], pool)
    if known >= length:
        return []
    cache = decoder.start() if base is None else base.fork()
    cache.truncate(known)
    decoder.step(cache, [prompts[0][known:length]])
    return [cache]


def _groups(
    prompts: Sequence[Sequence[int]], pool: Sequence[Cache], *, separate: bool
) -> list[tuple[list[int], Cache | None, int]]:
    """Return the prompts that run together: their numbers, the cache that has their beginning, its length."""
    groups: dict[tuple[int, ...], tuple[list[int], Cache | None, int]] = {}
    for number, prompt in enumerate(prompts):
        base, length = _longest(prompt, pool)
        key = (id(base), length, len(prompt), number if separate else 0)
        groups.setdefault(key, ([], base, length))[0].append(number)
    return list(groups.values())
