"""Sequences that are continued with one token at a time: the best one, or a drawn one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.opsets.families.generation.processors import in_vocabulary
from sabir.opsets.families.shapes.ranks import as_number
from sabir.opsets.families.shapes.sizes import allotted

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.opsets.families.generation.decoders import Decoder
    from sabir.opsets.families.generation.processors import Processors
    from sabir.opsets.typing import Array


def length_of(ids: Array, most: Array) -> int:
    """Return `max_length`; raises ValueError where the prompts are that long already."""
    length = int(as_number("max_length", most))
    if length <= ids.shape[1]:
        raise ValueError(f"`max_length` is {length}, and the prompts have {ids.shape[1]} tokens already")
    return length


def followed(
    decoder: Decoder,
    processors: Processors,
    choose: Callable[[Array], Array],
    ids: Array,
    length: int,
    *,
    pad: int,
    vocabulary: int,
) -> Array:
    """Return the prompts [rows, sequence] with tokens that `choose` takes by scores, [rows, length].

    A sequence that ends has padding instead of the token at its end.
    """
    y = np.full(allotted((len(ids), length), ids.dtype, ids.size), pad, ids.dtype)
    y[:, : ids.shape[1]] = ids
    done = np.zeros(len(ids), bool)
    logits = decoder.start()
    for place in range(ids.shape[1], length):
        scores = in_vocabulary(logits, vocabulary, processors.allowed, processors.allowed_first)
        tokens = choose(processors.applied(scores, y[:, :place], first=place == ids.shape[1]))
        done |= tokens == processors.end
        y[:, place] = np.where(done, pad, tokens)
        if done.all() or place == length - 1:
            break
        logits = decoder.step(y[:, place])
    return y
