"""Compares what an engine computed with what a case expects."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

# two steps of the format with 8 bits of precision
_BFLOAT16 = 2.0**-6


def compare(expected: Any, got: Any, rtol: float, atol: float, where: str) -> None:
    """Raise AssertionError, with the place, unless a value has the type, the shape and nearly the numbers."""
    if expected is None:
        _require(got is None, f"{where} is {type(got).__name__}, and None is expected")
    elif isinstance(expected, dict):
        _maps(cast("dict[Any, Any]", expected), got, rtol, atol, where)
    elif isinstance(expected, (list, tuple)):
        _lists(list(cast("list[Any]", expected)), got, rtol, atol, where)
    else:
        _arrays(np.asarray(expected), got, rtol, atol, where)


def _maps(expected: dict[Any, Any], got: Any, rtol: float, atol: float, where: str) -> None:
    _require(isinstance(got, dict), f"{where} is {type(got).__name__}, and a dict is expected")
    _require(set(got) == set(expected), f"{where} has the keys {list(got)}, expected are {list(expected)}")
    for key, value in expected.items():
        compare(value, got[key], rtol, atol, f"{where}[{key!r}]")


def _lists(expected: list[Any], got: Any, rtol: float, atol: float, where: str) -> None:
    # some engines return a sequence as an array of objects
    if not isinstance(got, (list, tuple, np.ndarray)):
        raise AssertionError(f"{where} is {type(got).__name__}, and a list is expected")
    items = list(cast("list[Any]", got))
    _require(len(items) == len(expected), f"{where} has {len(items)} items, expected are {len(expected)}")
    for place, (one, other) in enumerate(zip(expected, items, strict=True)):
        compare(one, other, rtol, atol, f"{where}[{place}]")


def _arrays(expected: np.ndarray[Any, Any], got: Any, rtol: float, atol: float, where: str) -> None:
    _require(not _is_listed(got), f"{where} is {type(got).__name__}, and an array is expected")
    found = np.asarray(got)
    _require(
        found.shape == expected.shape, f"{where} has the shape {found.shape}, expected is {expected.shape}"
    )
    if expected.dtype.kind in "OU":
        _require(
            found.tolist() == expected.tolist(),
            f"{where} is {found.tolist()}, expected is {expected.tolist()}",
        )
        return
    _require(
        found.dtype == expected.dtype, f"{where} has the type {found.dtype}, expected is {expected.dtype}"
    )
    if expected.dtype.name == "bfloat16":
        rtol = max(rtol, _BFLOAT16)
    if expected.dtype.kind == "V":  # numpy compares no numbers of ml_dtypes with Python's
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=where)


def _is_listed(value: Any) -> bool:
    return value is None or isinstance(value, (list, tuple, dict))


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)
