"""`sabir show --weights`: every initializer with its type, its bytes and statistics of its elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import ACCIDENTS, SabirError
from sabir.cli._facts import TensorTotals, initializers
from sabir.cli._screen import bytes_text, plain
from sabir.debugging import Statistics, statistics_of
from sabir.ir import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.ir import Constant, Model

COLUMNS = ("name", "type", "bytes", "min", "max", "mean", "zeros", "NaN")


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
