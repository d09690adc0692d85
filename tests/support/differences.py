"""What two engines compute of one model, compared."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import sabir
from sabir.elements import element
from sabir.ir import canonical_domain
from sabir.opsets import STANDARD

FULL = (np.float32, np.float64, np.complex64, np.complex128)
NEAR, NEAR_NARROW = 1e-5, 0.02  # of the largest number: of floats, and of those of 16 bits and fewer


def outcome(session, feeds):
    """The outputs of a run, or the error that it raises."""
    try:
        return session.run(feeds)
    except sabir.SabirError as error:
        return error


def compare(name, ours, theirs, tolerance):
    """Assert that two arrays have one type, one shape, and values as near as rounding allows."""
    assert type(ours) is np.ndarray
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), name
    assert ours.flags.writeable
    if ours.dtype.kind != "f":
        np.testing.assert_array_equal(ours, theirs, err_msg=name)
    else:
        rtol = 4 * np.finfo(ours.dtype).eps
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=tolerance, err_msg=name)


def difference(found: list[Any] | str, expected: list[Any] | str, scale: float | None = 0.0) -> str:
    """Describe how the outputs of one engine, or its error as text, differ from those of another; empty if equal.

    Floats are as near as rounding in sums of many terms allows, whose terms are at most `scale` or the largest result. With
    a scale of None the values are open, and only types and shapes are compared.
    """
    if isinstance(found, str) or isinstance(expected, str):
        ends = [x[:400] if isinstance(x, str) else "outputs" for x in (found, expected)]
        return "" if found == expected else f"{ends[0]!r}, and not {ends[1]!r}"
    if len(found) != len(expected):
        return f"{len(found)} outputs, and not {len(expected)}"
    parts = (_different(x, y, scale) for x, y in zip(found, expected, strict=True))
    return next((f"output {i}: {part}" for i, part in enumerate(parts) if part), "")


def scale_of(model: sabir.Model) -> float | None:
    """Return the scale with which runs of a model are compared: None where it may draw random numbers."""
    nodes = (node for root in model.graphs() for graph in root.scopes() for node in graph)
    called = (STANDARD.find(canonical_domain(node.domain), node.op) for node in nodes)
    return None if any(operator is not None and operator.random for operator in called) else 0.0


def _different(ours: Any, theirs: Any, scale: float | None) -> str:
    if isinstance(theirs, list) and isinstance(ours, list):
        return difference(ours, theirs, scale)
    if isinstance(theirs, dict) and isinstance(ours, dict):
        keys = [*theirs]
        if [*ours] != keys:
            return f"the keys {[*ours]}, and not {keys}"
        return difference([ours[k] for k in keys], [theirs[k] for k in keys], scale)
    if theirs is None or ours is None:
        return "" if ours is theirs else f"{ours}, and not {theirs}"
    a, b = np.asarray(ours), np.asarray(theirs)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return f"{a.dtype}{list(a.shape)}, and not {b.dtype}{list(b.shape)}"
    if scale is None or not a.size or _are_near(a, b, scale):
        return ""
    return f"{np.array2string(a, threshold=30)}, and not {np.array2string(b, threshold=30)}"


def _are_near(a: np.ndarray, b: np.ndarray, scale: float) -> bool:
    if a.dtype.kind in "biuO" or (a.dtype.kind == "V" and element(a.dtype).is_integer):
        return a.tolist() == b.tolist()
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    near = NEAR if a.dtype in FULL else NEAR_NARROW
    with np.errstate(all="ignore"):
        ours, theirs = a.astype(wide), b.astype(wide)
        finite = np.isfinite(theirs)
        largest = max(scale, float(np.abs(theirs[finite]).max(initial=0)))
        atol = near * largest + float(np.finfo(np.float32).tiny)
        return bool(np.isclose(ours, theirs, rtol=near, atol=atol, equal_nan=True).all())


def check(model, feeds, tolerances, threads=2):
    """Run a session of each engine with several feeds, and compare what they give or raise.

    `tolerances` has the absolute one of each output. A later run with the shapes of an earlier one is a fast one.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "no plan could be compiled", sabir.SabirWarning)
        ours = sabir.Session(model, engine="compiled", threads=threads)
        theirs = sabir.Session(model, engine="reference")
        for number, given in enumerate(feeds):
            before = {name: x.copy() for name, x in given.items()}
            found, expected = outcome(ours, given), outcome(theirs, given)
            if isinstance(expected, Exception):
                assert (type(found), str(found)) == (type(expected), str(expected))
                continue
            assert not isinstance(found, Exception), repr(found)
            assert list(found) == list(expected)
            for (name, y), tolerance in zip(expected.items(), tolerances, strict=True):
                compare(f"{name} of run {number}", found[name], y, tolerance)
                assert not any(np.may_share_memory(found[name], x) for x in given.values())
            for name, x in given.items():
                np.testing.assert_array_equal(x, before[name], err_msg=f"the feed {name} was written to")
