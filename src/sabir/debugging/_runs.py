"""Two runs compared: of two models, engines or precisions, on the same inputs; and where they part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import FeedError, listed_names, quote
from sabir.comparison import aligned_results
from sabir.debugging._differences import Difference, difference
from sabir.elements import element
from sabir.evaluation import read_request
from sabir.ir import Model, check_is_model
from sabir.opsets import STANDARD
from sabir.runtime import Session
from sabir.scheduling import label_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Literal, TypeAlias

    from sabir.base import Limits
    from sabir.evaluation import ModelPort
    from sabir.ir import Array, Node, Value
    from sabir.schema import Registry

    EngineName: TypeAlias = Literal["auto", "compiled", "reference"]
    Precision: TypeAlias = Literal["exact", "fast"]

_NAN = float("nan")


class Parting(NamedTuple):
    """The first value at which two runs part: its names, the labels of its nodes, and the difference.

    `operands` has the differences of the operands of the node in the first model that correspond to values of
    the second. With `alone` the runs part only where the value is computed without the others, as fused
    kernels do.

    >>> Parting(('a', 'b'), ('Exp', 'Exp'), Difference('a', 1.0, 0.5, 'differs'), ()).names
    ('a', 'b')
    """

    names: tuple[str, str]
    nodes: tuple[str, str]
    difference: Difference
    operands: tuple[Difference, ...]
    alone: bool = False


@dataclass(frozen=True)
class RunComparison:
    """What two runs computed.

    `engines` ran them. `outputs` has the difference of each output. Where it was looked for, `parting` is the
    first value at which they part, None if the `compared` values agree.

    >>> RunComparison(('compiled', 'reference'), (Difference('y', 0.0, 0.0),)).equal
    True
    """

    engines: tuple[str, str]
    outputs: tuple[Difference, ...]
    parting: Parting | None = None
    compared: int = 0

    @property
    def equal(self) -> bool:
        """Whether all outputs agree within the tolerances."""
        return not any(d.problem for d in self.outputs)

    def _repr_html_(self) -> str:
        from sabir.drawing import Number, note, titled_table  # ruff: ignore[import-outside-top-level]  for notebooks alone

        columns = ("output", *map(Number, ("largest difference", "relative")), "problem")
        rows = (
            (d.name, Number(f"{d.largest:.3g}"), Number(f"{d.relative:.3g}"), d.problem) for d in self.outputs
        )
        parting = ""
        if self.parting is not None:
            names, nodes = (" and ".join(pair) for pair in (self.parting.names, self.parting.nodes))
            parting = note(f"the runs part at {names}, which {nodes} compute")
        title = f"{' and '.join(self.engines)}: {'equal' if self.equal else 'different'}"
        return titled_table(title, columns, rows, parting)


def compare_runs(  # ruff: ignore[too-many-arguments]  each is an option of the two runs
    first: Model,
    second: Model | None,
    feeds: Mapping[str, Any] | Sequence[Any],
    *,
    engines: tuple[EngineName, EngineName] | None = None,
    precisions: tuple[Precision, Precision] = ("exact", "exact"),
    rtol: float = 1e-3,
    atol: float = 1e-5,
    bisect: bool = False,
    threads: int | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> RunComparison:
    """Run two models, or one on two engines, on the same inputs, and return how their results differ.

    Without a `second` model the first one runs twice, by default on the engines "auto" and "reference". The
    second model gets those of the feeds that it has inputs for. Outputs are compared by their names, or one
    by one where each model has one; the second run is what the first is expected to compute. `bisect` looks
    for the first value at which the runs part: see `RunPair.part`.

    Raises FeedError for an input that only the second model has, and what `Session` and its runs raise.

    >>> header = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y)'
    >>> one = sabir.parse(header + '{ a = Neg (x)  b = Relu (a)  y = Exp (b) }')
    >>> other = sabir.parse(header + '{ a = Neg (x)  c = Abs (a)  y = Exp (c) }')
    >>> found = sabir.compare_runs(one, other, {'x': [1.0, -2.0]}, bisect=True)
    >>> found.equal, found.parting.names, found.parting.nodes
    (False, ('y', 'y'), ("Exp with output 'y'", "Exp with output 'y'"))
    """
    pair = RunPair(
        first,
        second,
        engines=engines,
        precisions=precisions,
        threads=threads,
        registry=registry,
        limits=limits,
    )
    values = read_request(feeds, None, pair.inputs).feeds
    found = pair.compare(values, rtol=rtol, atol=atol)
    if not bisect:
        return found
    parting, compared = pair.part(values, rtol=rtol, atol=atol)
    return RunComparison(found.engines, found.outputs, parting, compared)


class RunPair:
    """Two models, or one twice, ready to run on the same inputs.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> RunPair(model, None).compare({'x': np.float32([1, -1])}).equal
    True
    """

    def __init__(
        self,
        first: Model,
        second: Model | None = None,
        *,
        engines: tuple[EngineName, EngineName] | None = None,
        precisions: tuple[Precision, Precision] = ("exact", "exact"),
        threads: int | None = None,
        registry: Registry = STANDARD,
        limits: Limits | None = None,
    ) -> None:
        """Bind the models; the arguments are those of `compare_runs`, which see."""
        check_is_model(first)
        self._models = (first, first if second is None else second)
        self._registry, self._limits = registry, limits
        names = engines or (("auto", "reference") if second is None else ("auto", "auto"))
        self._sessions = tuple(
            Session(
                model, engine=engine, precision=precision, threads=threads, registry=registry, limits=limits
            )
            for model, engine, precision in zip(self._models, names, precisions, strict=True)
        )
        self._require_inputs()

    @property
    def engines(self) -> tuple[str, str]:
        """The engines of the two runs."""
        return self._sessions[0].engine, self._sessions[1].engine

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs of the first model, which both get."""
        return self._sessions[0].inputs

    def compare(self, feeds: Mapping[str, Any], *, rtol: float = 1e-3, atol: float = 1e-5) -> RunComparison:
        """Return how the outputs differ; raises what the runs raise."""
        results = self._run(feeds, None, None)
        return RunComparison(self.engines, tuple(_compared(*results, rtol, atol)))

    def part(
        self, feeds: Mapping[str, Any], *, rtol: float = 1e-3, atol: float = 1e-5
    ) -> tuple[Parting | None, int]:
        """Return the first value at which the runs part, and how many values were compared.

        The values of the two main graphs are aligned by `sabir.comparison.aligned_results`, and compared in
        the order of the first model, floats of any width with each other; values of other types are not
        compared where these differ. Both runs keep all these values in memory. Where none differs, but an
        output does, the values are computed one at a time, as the compiled engine computes some otherwise
        that nothing asks for; then the first is found by halves. Raises what the runs raise.
        """
        pairs, results = self._aligned_results(feeds)
        if not pairs:
            return None, 0
        found = {a.name: _alike(results[0][a.name], results[1][b.name], a.name, rtol, atol) for a, b in pairs}
        compared = sum(d is not None for d in found.values())
        for a, b in pairs:
            here = found[a.name]
            if here is not None and here.problem:
                return _parting(a, b, here, found, alone=False), compared
        if self.compare(feeds, rtol=rtol, atol=atol).equal:
            return None, compared
        return self._part_alone(feeds, pairs, rtol, atol), compared

    def errors(self, feeds: Mapping[str, Any]) -> list[tuple[Value, float]]:
        """Return how far the second model is from the values of the first, for those that correspond.

        The error of a value is the root mean square of the differences of its elements, divided by the root
        mean square of the elements in the first model; infinite where these are all 0 and others differ.
        Values of the main graphs are aligned as in `part`; those that are no floats are left out. Raises what
        the runs raise.

        >>> header = '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y)'
        >>> one, other = (sabir.parse(f'{header} <float w = {{{w}}}> {{ y = Mul (x, w) }}') for w in (2, 1))
        >>> [(value.name, error) for value, error in RunPair(one, other).errors({'x': np.float32([-3, 4])})]
        [('y', 0.5)]
        """
        pairs, results = self._aligned_results(feeds)
        found = ((a, _error(results[0][a.name], results[1][b.name])) for a, b in pairs)
        return [(value, error) for value, error in found if error is not None]

    def _aligned_results(
        self, feeds: Mapping[str, Any]
    ) -> tuple[list[tuple[Value, Value]], tuple[dict[str, Any], dict[str, Any]]]:
        """Return the values that correspond and have names, and the results of the two runs by these."""
        pairs = [(a, b) for a, b in self._aligned() if a.name and b.name]
        names = [
            list(dict.fromkeys(side)) for side in ([a.name for a, _ in pairs], [b.name for _, b in pairs])
        ]
        return pairs, self._run(feeds, *names) if pairs else ({}, {})

    def _part_alone(
        self, feeds: Mapping[str, Any], pairs: Sequence[tuple[Value, Value]], rtol: float, atol: float
    ) -> Parting | None:
        """Return the first value that differs where it is the only one requested, by halves."""
        seen: dict[str, Difference | None] = {}

        def differs(place: int) -> bool:
            a, b = pairs[place]
            results = self._run(feeds, [a.name], [b.name])
            seen[a.name] = here = _alike(results[0][a.name], results[1][b.name], a.name, rtol, atol)
            return here is not None and bool(here.problem)

        low, high = 0, len(pairs) - 1
        if not differs(high):
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if differs(middle) else (middle + 1, high)
        a, b = pairs[low]
        here = seen[a.name]
        return None if here is None else _parting(a, b, here, seen, alone=True)

    def _aligned(self) -> Sequence[tuple[Value, Value]]:
        first, second = self._models
        if first is second:
            nodes = first.graph.sorted_nodes()
            return [(v, v) for node in nodes for v in node.outputs if v is not None]
        return aligned_results(first, second, registry=self._registry, limits=self._limits)

    def _run(
        self, feeds: Mapping[str, Any], first: Sequence[str] | None, second: Sequence[str] | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        taken = {port.name for port in self._sessions[1].inputs}
        others = {name: value for name, value in feeds.items() if name in taken}
        return self._sessions[0].run(feeds, first), self._sessions[1].run(others, second)

    def _require_inputs(self) -> None:
        """Raise FeedError for an input that only the second model has, and that has no default."""
        known = [port.name for port in self.inputs]
        for port in self._sessions[1].inputs:
            if port.name not in known and not port.optional:
                raise FeedError(
                    f"the second model has the input {quote(port.name)}, and the first has none of this name;"
                    f" its inputs are {listed_names(known)}"
                )


def _compared(
    first: Mapping[str, Any], second: Mapping[str, Any], rtol: float, atol: float
) -> Iterator[Difference]:
    """Yield the differences of the outputs by their names, or of the only ones."""
    if len(first) == len(second) == 1:
        (name, value), (other,) = next(iter(first.items())), second.values()
        yield difference(name, value, other, rtol, atol)
        return
    for name, value in first.items():
        if name in second:
            yield difference(name, value, second[name], rtol, atol)
    missing = [(n, "second") for n in first if n not in second]
    missing += [(n, "first") for n in second if n not in first]
    for name, which in missing:
        yield Difference(name, _NAN, _NAN, f"the {which} model has no such output")


def _alike(value: Any, other: Any, name: str, rtol: float, atol: float) -> Difference | None:
    """Return how two values differ, floats of any width; None where they are of other types."""
    if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray):
        same = isinstance(value, np.ndarray) == isinstance(other, np.ndarray)
        return difference(name, value, other, rtol, atol) if same else None
    one, two = cast("Array", value), cast("Array", other)
    if one.dtype == two.dtype:
        return difference(name, one, two, rtol, atol)
    if not all(element(array.dtype).is_float for array in (one, two)):
        return None
    return difference(name, one.astype(np.float64), two.astype(np.float64), rtol, atol)


def _error(value: Any, other: Any) -> float | None:
    """Return the relative root mean square error of floats of one shape; None for other values."""
    if not isinstance(value, np.ndarray) or not isinstance(other, np.ndarray):
        return None
    one, two = cast("Array", value), cast("Array", other)
    if one.shape != two.shape or not all(element(array.dtype).is_float for array in (one, two)):
        return None
    size = float(np.linalg.norm(one.astype(np.float64)))
    distance = float(np.linalg.norm(one.astype(np.float64) - two.astype(np.float64)))
    return distance / size if size else np.inf if distance else 0.0


def _parting(
    a: Value, b: Value, here: Difference, found: Mapping[str, Difference | None], *, alone: bool
) -> Parting:
    read = a.node.inputs if a.node is not None else ()
    known = (found.get(v.name) for v in dict.fromkeys(read) if v is not None)
    operands = tuple(d for d in known if d is not None)
    return Parting((a.name, b.name), (_label(a.node), _label(b.node)), here, operands, alone)


def _label(node: Node | None) -> str:
    return "" if node is None else label_of(node)
