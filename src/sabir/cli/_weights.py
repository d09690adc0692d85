"""`sabir show --weights`: every initializer with its type, its bytes and statistics of its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ACCIDENTS, SabirError
from sabir.cli._facts import TensorTotals, initializers
from sabir.cli._screen import bytes_text, plain
from sabir.ir import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.ir import Array, Constant, Model

COLUMNS = ("name", "type", "bytes", "min", "max", "mean", "zeros", "NaN")
_BLOCK = 1 << 22  # elements whose statistics are computed at a time, so that a mapped tensor stays mapped


class Statistics(NamedTuple):
    """Statistics of the elements of one tensor; `minimum` to `mean` are over its finite elements."""

    minimum: float | None
    maximum: float | None
    mean: float | None
    zeros: int
    nans: int


class Weight(NamedTuple):
    """One initializer; `problem` says why its elements cannot be read."""

    name: str
    type: str
    bytes: int
    statistics: Statistics | None
    problem: str = ""


def weights(model: Model, progress: Callable[[int, int], None]) -> Iterator[Weight]:
    """Yield every initializer of a model; `progress` is called with the bytes read and the total."""
    constants = list(initializers(model))
    sizes = [_totals(constant).bytes for _, constant in constants]
    done, total = 0, sum(sizes)
    for (name, constant), size in zip(constants, sizes, strict=True):
        statistics, problem = None, ""
        try:
            statistics = statistics_of(constant.array())
        except (SabirError, *ACCIDENTS) as error:
            problem = str(error)
        yield Weight(name, _type(constant), size, statistics, problem)
        done += size
        progress(done, total)


def statistics_of(array: Array) -> Statistics | None:
    """Return the statistics of an array of numbers; None for texts and complex numbers."""
    if array.dtype.kind in "OUSc":
        return None
    flat = array.reshape(-1)
    least, most, total, count, zeros, nans = np.inf, -np.inf, 0.0, 0, 0, 0
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK].astype(np.float64)
        finite = block[np.isfinite(block)]
        zeros += int(np.count_nonzero(block == 0))
        nans += int(np.count_nonzero(np.isnan(block)))
        if finite.size:
            least, most = min(least, float(finite.min())), max(most, float(finite.max()))
            with np.errstate(over="ignore"):
                total += float(finite.sum())
            count += finite.size
    if not count:
        return Statistics(None, None, None, zeros, nans)
    return Statistics(least, most, total / count, zeros, nans)


def row(weight: Weight) -> tuple[str, ...]:
    """Return the cells of a table for one initializer."""
    head = (plain(weight.name), plain(weight.type), bytes_text(weight.bytes))
    s = weight.statistics
    if s is None:
        return (*head, plain(weight.problem), "", "", "", "")
    numbers = ("" if n is None else f"{n:.4g}" for n in (s.minimum, s.maximum, s.mean))
    return (*head, *numbers, f"{s.zeros:,}", f"{s.nans:,}")


def as_json(weight: Weight) -> dict[str, Any]:
    """Return one initializer as JSON has it."""
    data: dict[str, Any] = {"name": weight.name, "type": weight.type, "bytes": weight.bytes}
    if weight.statistics is not None:
        s = weight.statistics
        data |= {"min": s.minimum, "max": s.maximum, "mean": s.mean, "zeros": s.zeros, "nan": s.nans}
    if weight.problem:
        data["problem"] = weight.problem
    return data


def _totals(constant: Constant) -> TensorTotals:
    totals = TensorTotals()
    totals.add(constant)
    return totals


def _type(constant: Constant) -> str:
    if isinstance(constant, SparseTensor):
        return f"sparse {constant.values.element}{list(constant.shape)}"
    return str(constant.type)
