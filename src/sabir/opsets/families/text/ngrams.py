"""Repeated n-grams in sequences of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.opsets.families.shapes.sizes import passed_over

if TYPE_CHECKING:
    from sabir.opsets.typing import Array


def repeated(ids: Array, size: int) -> tuple[Array, Array]:
    """Return the tokens that would complete an n-gram which a sequence has already.

    `ids` is [batch, sequence]. The results are the rows and the tokens, each once for every occurrence.
    """
    if ids.shape[1] < size:
        nothing = np.zeros(0, np.int64)
        return nothing, nothing
    passed_over(ids, size)
    count, before = ids.shape[1] - size + 1, size - 1
    equal = np.ones((len(ids), count), bool)
    for j in range(before):
        equal &= ids[:, j : j + count] == ids[:, j - before, None]
    rows, places = np.nonzero(equal)
    return rows, ids[rows, places + before]
