"""Whether a value of a run contains arrays: those in sequences and maps may be views of an arena."""

from __future__ import annotations

from typing import Any, cast

import numpy as np


def contains_arrays(value: Any) -> bool:
    """Return whether a value is an array, or a list or dictionary that contains one.

    All items of a sequence have one type, so the first that is neither None nor empty decides.

    >>> contains_arrays([None, [], [np.zeros(2)]]), contains_arrays([{}, {1: 0.5}])
    (True, False)
    """
    if isinstance(value, np.ndarray):
        return True
    if isinstance(value, dict):
        value = list(cast("dict[Any, Any]", value).values())
    if not isinstance(value, list):
        return False
    for item in cast("list[Any]", value):
        if contains_arrays(item):
            return True
        if item is not None and not isinstance(item, list) and item != {}:
            return False
    return False
