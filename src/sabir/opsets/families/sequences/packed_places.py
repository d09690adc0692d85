"""Sequences of several lengths, packed one after the other: the places where each begins and ends."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.ir import may_be_equal, sub
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim, TensorType


def batch_of(name: str, places: TensorType, tokens: Dim) -> Dim:
    """Return the number of sequences whose places, [batch + 1], an operand has.

    Raises InferenceError for another shape, and for known places that do not ascend from 0 to `tokens`.
    """
    check_rank(name, places, 1)
    count = places.shape[-1] if places.shape else None
    if count in {0, 1}:
        raise InferenceError(f"`{name}` must have the start and the end of a sequence")
    known = contents.ints(places.known)
    if known:
        check_places(name, known, tokens)
    return sub(count, 1)


def check_places(name: str, places: Sequence[int], tokens: Dim) -> None:
    """Raise InferenceError unless places ascend from 0 to the number of tokens."""
    ascend = all(end > start for start, end in itertools.pairwise(places))
    if places[0] != 0 or not may_be_equal(places[-1], tokens) or not ascend:
        raise InferenceError(f"`{name}` must ascend from 0 to {tokens}, the number of tokens")
