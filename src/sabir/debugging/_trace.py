"""All values of one run, described as they are computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.debugging._statistics import Statistics, statistics_of, type_text
from sabir.evaluation import Runner, make_engine, read_request
from sabir.ir import Model, check_is_model
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.base import Limits
    from sabir.drawing import Cell
    from sabir.ir import Array
    from sabir.schema import Registry


class TracedValue(NamedTuple):
    """One value of a run: its name, the label of the node that computed it, and what it was.

    `node` is "" for an input or an initializer. `statistics` is None for a value that is no tensor of real
    numbers.

    >>> print(TracedValue('y', 'Log', 'float[2]', statistics_of(np.float32([0, -np.inf])), infinities=1))
    y: float[2], 0 to 0, mean 0, 1 infinite
    """

    name: str
    node: str
    type: str
    statistics: Statistics | None
    infinities: int = 0

    @property
    def nans(self) -> int:
        """The number of elements that are NaN."""
        return 0 if self.statistics is None else self.statistics.nans

    def __str__(self) -> str:
        found = self.statistics
        parts = [f"{self.name}: {self.type}"]
        if found is not None and found.finite:
            parts.append(f"{found.minimum:.4g} to {found.maximum:.4g}, mean {found.mean:.4g}")
        parts += [
            f"{count:,} {what}"
            for count, what in ((self.nans, "NaN"), (self.infinities, "infinite"))
            if count
        ]
        return ", ".join(parts)


class FirstNan(NamedTuple):
    """The first value of a run with a NaN, and the operands of the node that computed it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[2] x) => (float[2] y) { y = Sqrt (x) }''')
    >>> trace(model, [[-1.0, 1.0]], stop_at_nan=True).nan.operands[0].name
    'x'
    """

    value: TracedValue
    operands: tuple[TracedValue, ...]


@dataclass(frozen=True)
class Trace:
    """The values of one run in the order in which they were computed, initializers and inputs first.

    `nan` is where the run was stopped, None for a run to the end.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[2] x) => (float[2] y) { y = Sqrt (x) }''')
    >>> [value.name for value in trace(model, [[4.0, 1.0]]).values]
    ['x', 'y']
    """

    values: tuple[TracedValue, ...]
    nan: FirstNan | None = None

    def __str__(self) -> str:
        return "\n".join(map(str, self.values))

    def _repr_html_(self) -> str:
        from sabir.drawing import Number, titled_table  # ruff: ignore[import-outside-top-level]  for notebooks alone

        columns = (
            "value",
            "type",
            "computed by",
            *map(Number, ("least", "greatest", "mean", "NaN", "infinite")),
        )
        title = f"{len(self.values):,} values" + (f"; stopped at {self.nan.value.name}" if self.nan else "")
        return titled_table(title, columns, map(_row, self.values))


def _row(value: TracedValue) -> tuple[Cell, ...]:
    """Return a traced value as a row of a table."""
    from sabir.drawing import Number  # ruff: ignore[import-outside-top-level]  for notebooks alone

    numbers, found = [""] * 3, value.statistics
    if found is not None and found.finite:
        numbers = [f"{number:.4g}" for number in (found.minimum, found.maximum, found.mean)]
    counts = [f"{count:,}" if count else "" for count in (value.nans, value.infinities)]
    return value.name, value.type, value.node, *map(Number, (*numbers, *counts))


class _StoppedError(Exception):
    """Ends a run at a NaN; it leaves `trace` as no error."""

    def __init__(self, value: TracedValue) -> None:
        super().__init__(value.name)
        self.value = value


def trace(
    model: Model,
    feeds: Mapping[str, Any] | Sequence[Any],
    *,
    stop_at_nan: bool = False,
    observe: Callable[[TracedValue, Any], None] | None = None,
    newer_opsets: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Trace:
    """Run a model with the interpreter, and return what each value of the main graph was.

    These are the initializers, the inputs, and the results that a node or an output reads; a call of a
    function or of a subgraph counts as one node. `stop_at_nan` ends the run after the first value with a NaN.
    `observe` is called with each value as soon as it is computed, also when the run fails later; it may copy
    the array, and must not change or keep it.

    Raises what `evaluate` raises.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { r = Sqrt (x)  y = Relu (r) }''')
    >>> print(sabir.trace(model, {'x': [4.0, 16.0]}))
    x: float[2], 4 to 16, mean 10
    r: float[2], 2 to 4, mean 3
    y: float[2], 2 to 4, mean 3
    >>> found = sabir.trace(model, {'x': [-1.0, 4.0]}, stop_at_nan=True).nan
    >>> print(found.value.node, '-', found.value, '-', *found.operands)
    Sqrt with output 'r' - r: float[2], 2 to 2, mean 2, 1 NaN - x: float[2], -1 to 4, mean 1.5
    """
    check_is_model(model)
    runner = make_engine(model, lambda m: Runner(m, registry, limits, newer_opsets=newer_opsets))
    request = read_request(feeds, None, runner.inputs)
    values: list[TracedValue] = []

    def see(node: str, results: Mapping[str, Any]) -> None:
        for name, value in results.items():
            values.append(described(name, node, value))
            if observe is not None:
                observe(values[-1], value)
        found = next((v for v in values[len(values) - len(results) :] if v.nans), None)
        if found is not None and stop_at_nan:
            raise _StoppedError(found)

    try:
        runner.run_observed(request.feeds, see)
    except _StoppedError as stopped:
        return Trace(tuple(values), FirstNan(stopped.value, _operands(model, stopped.value, values)))
    return Trace(tuple(values))


def described(name: str, node: str, value: Any) -> TracedValue:
    """Return the description of a value that the node with this label computed."""
    if value is None or isinstance(value, (list, dict)):
        return TracedValue(name, node, type_text(value), None)
    array: Array = np.asarray(value)
    found = statistics_of(array)
    infinities = 0 if found is None else array.size - found.finite - found.nans
    return TracedValue(name, node, type_text(array), found, infinities)


def _operands(model: Model, value: TracedValue, seen: Sequence[TracedValue]) -> tuple[TracedValue, ...]:
    """Return the operands of the node that computed a value; none for an input or an initializer."""
    node = next(
        (n for n in model.graph if any(v is not None and v.name == value.name for v in n.outputs)), None
    )
    if node is None:
        return ()
    by_name = {v.name: v for v in seen}
    return tuple(by_name[v.name] for v in dict.fromkeys(node.reads()) if v.name in by_name)
