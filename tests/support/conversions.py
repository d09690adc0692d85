"""Conversion proved by execution: a model converted to another opset computes what it computed before."""

from __future__ import annotations

import numpy as np

import sabir
from sabir.inference import infer
from support.rooms import run


def targets(domain: str, here: int) -> list[int]:
    """Every version of a domain but the one that a model has."""
    newest = sabir.opsets.STANDARD.newest_opset(domain)
    return [version for version in range(1, newest + 1) if version != here]


def converted(model: sabir.Model, domain: str, version: int) -> sabir.Model | sabir.ConversionError:
    """The model in another version of a domain, or the error that names what stands in the way."""
    try:
        return sabir.convert(model, opsets={domain: version})
    except sabir.ConversionError as error:
        assert error.refusals, error
        assert all(r.reason and r.operator and r.where.steps for r in error.refusals)
        return error


def assert_same_values(model: sabir.Model, feeds: dict, expected: list, tolerance: float) -> None:
    """The model is valid and computes the expected values."""
    infer(model.clone(), strict=True)
    got = run(model, feeds)
    assert len(got) == len(expected)
    for value, wanted in zip(got, expected, strict=True):
        assert_equal(value, wanted, tolerance)


def assert_equal(got: object, expected: object, tolerance: float) -> None:
    """Equal types, shapes and elements, floats within a tolerance."""
    if expected is None:
        assert got is None
    elif isinstance(expected, list):
        assert isinstance(got, list)
        assert len(got) == len(expected)
        for g, e in zip(got, expected, strict=True):
            assert_equal(g, e, tolerance)
    elif isinstance(expected, dict):
        assert isinstance(got, dict)
        assert list(got) == list(expected)
        for key, value in expected.items():
            assert_equal(got[key], value, tolerance)
    else:
        _assert_equal_arrays(np.asarray(got), np.asarray(expected), tolerance)


def _assert_equal_arrays(got: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    if expected.dtype.kind in "iubOU":
        assert got.tolist() == expected.tolist()
    else:
        wide = np.complex128 if expected.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)
