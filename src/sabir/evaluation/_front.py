"""What every engine has in front of its runs: ports, feeds, limits, and the comparison of results."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import EvaluationError, SabirWarning, SchemaError, budget, quote
from sabir.evaluation._costs import numbers_of
from sabir.evaluation._declared import DeclaredValue, Dimensions, compare, declaration, has_sized_items
from sabir.evaluation._feeds import FeedReader, ModelPort
from sabir.evaluation._run import Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Self

    from sabir.ir import Array
    from sabir.scheduling import Schedule, ValueInfo


_OWNERS = (np.ndarray, list, dict)  # what has memory, or contains what has


class Front:
    """What every engine has in front of its runs: ports, feeds, limits, and the comparison of results.

    It is made of inputs, outputs and the defaults of inputs by slot. With `strict` a value that contradicts
    its declared type raises EvaluationError; else it is a SabirWarning, once for each place.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> from sabir.scheduling import schedule
    >>> front = Front.of(schedule(model, STANDARD), {})
    >>> run, inputs = front.start({'x': [1.0, 2.0]})
    >>> inputs
    [array([1., 2.], dtype=float32)]
    """

    def __init__(
        self, inputs: Sequence[ValueInfo], outputs: Sequence[ValueInfo], defaults: Mapping[int, Array], *,
        strict: bool = False, numbers: int = 0,
    ) -> None:  # fmt: skip
        """Raise SchemaError where two outputs have one name.

        `numbers` is how many numbers the constants have: the limits of a run grow with it.
        """
        self.output_slots = _output_slots(outputs)
        self.outputs = tuple(ModelPort(v.name, v.type) for v in outputs if v.slot)
        self.numbers = numbers
        self._strict = strict
        self._reported: set[str] = set()
        self._declared = {
            v.name: DeclaredValue(f"output {quote(v.name)}", declaration(v.type)) for v in self.outputs
        }
        self._feeds = FeedReader(inputs, defaults)

    @classmethod
    def of(
        cls, scheduled: Schedule, defaults: Mapping[int, Array], *, strict: bool = False, numbers: int = 0,
        deviations: Iterable[str] = (),
    ) -> Self:  # fmt: skip
        """Return the front of a schedule; warn of what the file should repair. Raises as the constructor.

        `deviations` are those that the run accepts, as it is not strict.
        """
        for deviation in deviations:
            warn(f"{deviation}; a strict run refuses it")
        for note in scheduled.notes:
            warn(f"{note}; `sabir check --fix` mends the file")
        for name in scheduled.experimental:
            warn(f"{name} is experimental: its meaning may change without a new version")
        program = scheduled.program
        return cls(program.inputs, program.outputs, defaults, strict=strict, numbers=numbers)

    @property
    def compares_items(self) -> bool:
        """Whether each run must compare items of an output: their sizes do not follow from those of feeds."""
        return any(has_sized_items(value.declared) for value in self._declared.values())

    @property
    def is_strict(self) -> bool:
        """Whether a value that contradicts its declaration is an error."""
        return self._strict

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs of the model."""
        return self._feeds.ports

    def start(self, feeds: Mapping[str, Any]) -> tuple[Run, list[Any]]:
        """Return the state of a new run, and the feeds as values, None where an input keeps its default.

        Raises FeedError.
        """
        run = Run(budget(), Dimensions(), self._mismatch, self._strict)
        inputs = self._feeds.read(feeds, run)
        run.budget.raise_for(self.numbers + sum(map(numbers_of, inputs)))
        return run, inputs

    def finish(
        self, names: Sequence[str], results: Sequence[Any], inputs: Sequence[Any], run: Run
    ) -> dict[str, Any]:
        """Return the results of a run by name, compared with their declared types, as the caller's own."""
        declared = self._declared
        named = [(declared[n], r) for n, r in zip(names, results, strict=True) if n in declared]
        compare([d for d, _ in named], [r for _, r in named], run)
        return dict(zip(names, _own_results(results, inputs), strict=True))

    def _mismatch(self, where: str, problem: str) -> None:
        if self._strict:
            raise EvaluationError(problem)
        if where not in self._reported:
            self._reported.add(where)
            warn(f"{problem}; a strict run makes this an error")


def warn(message: str) -> None:
    """Issue a SabirWarning at the line outside Sabir that called it.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter('always')
    ...     warn('the file is odd')
    >>> print(caught[0].message)
    the file is odd
    """
    depth, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("sabir."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, SabirWarning, stacklevel=depth)


def _output_slots(outputs: Sequence[ValueInfo]) -> dict[str, int]:
    """Return the slots of the outputs by name; raises SchemaError where two values have one name."""
    found: dict[str, int] = {}
    for value in outputs:
        if value.slot and found.setdefault(value.name, value.slot) != value.slot:
            raise SchemaError(f"two outputs are named {quote(value.name)}; a run returns its results by name")
    return found


def _own_results(results: Iterable[Any], feeds: Iterable[Any]) -> list[Any]:
    """Return the results, copied where they may share memory; a view of a constant is read-only."""
    roots = {_root(array) for feed in feeds for array in _arrays(feed)}
    return [_owned(result, roots) for result in results]


def _owned(value: Any, roots: set[int]) -> Any:
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        root = _root(array)
        if not array.flags.writeable or root in roots:
            return array.copy()
        roots.add(root)
        return array
    if isinstance(value, list):
        return [_owned(item, roots) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        if not isinstance(next(iter(entries.values()), None), _OWNERS):  # all are of one type
            return entries.copy()
        return {key: _owned(item, roots) for key, item in entries.items()}
    return value


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _arrays(item)
    elif isinstance(value, dict):
        yield from _arrays(list(cast("dict[Any, Any]", value).values()))


def _root(array: Array) -> int:
    """Return the id of the object that owns an array's memory."""
    found: Any = array
    while True:
        if isinstance(found, np.ndarray):
            below: Any = cast("Array", found).base
        elif isinstance(found, memoryview):
            below = found.obj
        else:
            below = None
        if below is None:
            return id(cast("object", found))
        found = below
