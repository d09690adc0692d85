"""How one value of a run differs from another."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np


class Difference(NamedTuple):
    """How one result differs from the expected one; `problem` is "" where it is within the tolerances.

    `largest` is the largest absolute difference of two elements, `relative` the largest one relative to the
    expected element; both are NaN where there are no numbers to compare.

    >>> difference('y', np.float32([1, 2]), np.float32([1, 4]), 0.1, 0).largest
    2.0
    """

    name: str
    largest: float
    relative: float
    problem: str = ""


def difference(name: str, value: Any, expected: Any, rtol: float, atol: float) -> Difference:
    """Compare a result with the expected one, sequences and maps item by item; NaN equals NaN.

    An element is within the tolerances if it differs by `atol + rtol * abs(expected)` at most.

    >>> difference('y', np.float32([1, 2]), np.float32([1, 4]), 0.1, 0).problem
    '1 of 2 elements differ by more than the tolerance'
    """
    match expected:
        case None:
            return Difference(name, 0, 0, "" if value is None else "there is a value, and none is expected")
        case list():
            return _of_items(name, value, dict(enumerate(cast("list[Any]", expected))), rtol, atol)
        case dict():
            return _of_items(name, value, cast("dict[Any, Any]", expected), rtol, atol)
        case _:
            return _of_arrays(name, value, np.asarray(expected), rtol, atol)


def _of_items(name: str, value: Any, expected: dict[Any, Any], rtol: float, atol: float) -> Difference:
    items = dict(enumerate(cast("list[Any]", value))) if isinstance(value, list) else value
    if not isinstance(items, dict) or items.keys() != expected.keys():
        return Difference(name, np.nan, np.nan, "the keys or the number of items differ")
    got = cast("dict[Any, Any]", items)
    parts = [difference(f"{name}[{key!r}]", got[key], item, rtol, atol) for key, item in expected.items()]
    problem = next((f"{p.name}: {p.problem}" for p in parts if p.problem), "")
    return Difference(
        name, max((p.largest for p in parts), default=0), max((p.relative for p in parts), default=0), problem
    )


def _of_arrays(name: str, value: Any, expected: Any, rtol: float, atol: float) -> Difference:
    array = np.asarray(value)
    if value is None or array.dtype != expected.dtype or array.shape != expected.shape:
        shown = "nothing" if value is None else f"{array.dtype}{list(array.shape)}"
        problem = f"{shown}, expected {expected.dtype}{list(expected.shape)}"
        return Difference(name, np.nan, np.nan, problem)
    if expected.dtype.kind in "OUSb":
        wrong = int(np.count_nonzero(array != expected))
        different = float(wrong > 0)
        return Difference(name, different, different, f"{wrong:,} elements differ" if wrong else "")
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    got, wanted = array.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        distance = np.where(_alike(got, wanted), 0, np.abs(got - wanted))
        allowed = atol + rtol * np.abs(wanted)
        wrong = int(np.count_nonzero((distance != 0) & ~(distance <= allowed)))
        relative = np.where(distance == 0, 0, distance / np.abs(wanted))
    problem = f"{wrong:,} of {array.size:,} elements differ by more than the tolerance" if wrong else ""
    return Difference(name, _largest(distance), _largest(relative), problem)


def _alike(one: Any, other: Any) -> Any:
    """Return where two arrays are equal, infinities and NaN included."""
    return (one == other) | (np.isnan(one) & np.isnan(other))


def _largest(numbers: Any) -> float:
    return float(np.max(numbers)) if numbers.size else 0.0
