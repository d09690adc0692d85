"""Summaries of constants: statistics and a histogram of a bounded number of elements."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, SabirError
from sabir.debugging import statistics_of
from sabir.ir import SparseTensor
from sabir.viewing._texts import TEXT, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array, Constant

_BINS = 32
_CELLS = 32  # rows and columns of a heat map
_LEVELS = 255
_MOST = 1 << 16  # elements of one tensor that are read
_PIECES = 64  # parts of a large tensor from which they come
_FEW = 12  # elements that are listed and not summarized


class Sample(NamedTuple):
    """Elements of a tensor: all of them, or some from evenly spread places.

    >>> sampled(np.arange(10)).is_whole
    True
    """

    elements: Array
    is_whole: bool


def sampled(array: Array, most: int = _MOST) -> Sample:
    """Return the elements of a tensor, or `most` of them from 64 places that are spread over it.

    >>> found = sampled(np.zeros((1000, 1000)), most=640)
    >>> found.elements.shape, found.is_whole
    ((640,), False)
    """
    flat = array.reshape(-1)
    if flat.size <= most:
        return Sample(flat, is_whole=True)
    length = most // _PIECES
    starts: Sequence[int] = np.linspace(0, flat.size - length, _PIECES).astype(np.int64).tolist()
    return Sample(np.concatenate([flat[start : start + length] for start in starts]), is_whole=False)


def weight_summary(constant: Constant, most: int = _MOST) -> dict[str, Any]:
    """Return what a page shows of a constant: its size, statistics, a histogram, or why it cannot be read.

    At most `most` elements are read, from places that are spread over it; `sampled` is their number where
    that is not all. Of a sparse tensor they are those of its values. A NaN or an infinite element is counted,
    and left out of the rest.

    >>> from sabir.ir import ArrayTensor
    >>> weight_summary(ArrayTensor(np.float32([1, 2, 3])))['values']
    '1, 2, 3'
    """
    try:
        array = (constant.values if isinstance(constant, SparseTensor) else constant).array()
        found: dict[str, Any] = {"size": int(array.size)}
        sample = sampled(array, most)
    except (SabirError, *ACCIDENTS) as error:
        return {"size": 0, "problem": shortened(str(error), TEXT)}
    if not sample.is_whole:
        found["sampled"] = int(sample.elements.size)
    if sample.is_whole and sample.elements.size <= _FEW:
        found["values"] = shortened(", ".join(map(_number, sample.elements.tolist())), TEXT)
    statistics = statistics_of(sample.elements)
    if statistics is None or statistics.minimum is None or statistics.maximum is None:
        return found if statistics is None else found | {"nans": statistics.nans}
    numbers = sample.elements.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    found |= {
        "min": statistics.minimum,
        "max": statistics.maximum,
        "mean": _json_number(statistics.mean),
        "std": _json_number(_deviation(finite)),
        "zeros": statistics.zeros,
        "nans": statistics.nans,
        "infinities": int(numbers.size - finite.size - statistics.nans),
    }
    if finite.size > _FEW:
        found["histogram"] = _histogram(finite, statistics.minimum, statistics.maximum)
    if array.ndim > 1 and min(array.shape[0], array.size // array.shape[0]) > 1:
        found["map"] = _heat_map(array.reshape(array.shape[0], -1))
    return found


def _deviation(finite: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(finite.std())


def _histogram(finite: Array, least: float, most: float) -> list[int]:
    """Return how many elements each of 32 equal parts of their range has; constant ones are in the middle."""
    if not np.isfinite(most - least) or most - least <= np.finfo(np.float64).tiny:
        counts = [0] * _BINS
        counts[_BINS // 2] = int(finite.size)
        return counts
    return np.histogram(finite, _BINS, (least, most))[0].tolist()


def _heat_map(matrix: Array) -> dict[str, Any]:
    """Return elements of evenly spread rows and columns as bytes, from the least to the largest one."""
    rows, columns = map(_places, matrix.shape)
    cells = matrix[np.ix_(rows, columns)].astype(np.float64)
    finite = cells[np.isfinite(cells)]
    least, most = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    width = most - least if 0 < most - least < np.inf else 1.0
    levels = np.nan_to_num((cells - least) / width, nan=0.0, posinf=1.0, neginf=0.0).clip(0, 1) * _LEVELS
    text = base64.b64encode(levels.astype(np.uint8).tobytes()).decode()
    return {"rows": len(rows), "columns": len(columns), "cells": text}


def _places(count: int) -> Array:
    return np.linspace(0, count - 1, min(count, _CELLS)).astype(np.int64)


def _json_number(number: float | None) -> float | None:
    return None if number is None or not np.isfinite(number) else number


def _number(item: object) -> str:
    return f"{item:.6g}" if isinstance(item, float) else shortened(str(item), TEXT)
