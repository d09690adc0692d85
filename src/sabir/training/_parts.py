"""The parts of a training model, each prepared once and bound to an engine for each set of outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import EvaluationError, quote, run_with_limits
from sabir.differentiation import expand_in_graph
from sabir.ir import TensorType
from sabir.runtime import Session
from sabir.scheduling import calls_in_graph
from sabir.training._combining import pruned
from sabir.training._random import draw_from_keys, keys_for
from sabir.training._spares import Spares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.base import Limits
    from sabir.ir import Array, Value
    from sabir.schema import Registry
    from sabir.training._combining import Part


class Options(NamedTuple):
    """The arguments of a training session that its parts need."""

    engine: Any
    threads: int | None
    registry: Registry
    limits: Limits | None


class RunnablePart:
    """One part of a training model: inference, an initialization, or an algorithm with the main graph."""

    def __init__(self, part: Part, what: str, options: Options, *, stream: tuple[int, int] | None) -> None:
        """Take a part; `stream` is where its random numbers come from, None: it draws its own in each run."""
        self.what, self.outputs = what, part.outputs
        self.inputs: tuple[Value, ...] = tuple(part.model.graph.inputs)
        self._part, self._options, self._stream = part, options, stream
        self._names = {v.name for v in part.model.graph.defined()}
        self._ready: tuple[Part, str, int] | None = None
        self._sessions: dict[tuple[str, ...], Session] = {}
        self._spares = Spares()

    @property
    def updates(self) -> dict[str, str]:
        """The outputs that are assigned, by the names of the state variables."""
        return self._part.updates

    @property
    def scalars(self) -> list[str]:
        """The names of the outputs of the algorithm itself that are scalars and assigned to nothing."""
        values = {v.name: v for v in self._part.model.graph.outputs if v is not None}
        kinds = {n: values[n].type for n in self.outputs if n in self._part.own}
        return [n for n, kind in kinds.items() if isinstance(kind, TensorType) and kind.shape == ()]

    def has(self, name: str) -> bool:
        """Return whether the graph of the part has a value of this name."""
        return name in self._names

    def run(
        self,
        feeds: Mapping[str, Any],
        state: Mapping[str, Array],
        outputs: tuple[str, ...],
        path: tuple[int, ...] = (0, 0),
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the named outputs and the new values of the state variables that the part assigns.

        `path` is the seed, the step and what else random numbers depend on. Raises EvaluationError for
        an update that does not fit.
        """
        session = self._session(outputs)
        wanted = {port.name for port in session.inputs}
        given = {**{n: v for n, v in state.items() if n in wanted and n not in feeds}}
        given.update((n, v) for n, v in feeds.items() if n in wanted)
        _, keys, count = self._prepared()
        if keys in wanted and self._stream is not None:
            given[keys] = keys_for((path[0], *self._stream, *path[1:]), count)
        spares = self._spares.free()
        results = session.run_reusing(given, spares)
        updates = {n: self._checked(n, results[o], state[n]) for n, o in self.updates.items()}
        assigned = set(self.updates.values())
        self._spares.keep({o: results[o] for o in assigned}, spares)
        return {n: np.copy(results[n]) if n in assigned else results[n] for n in outputs}, updates

    def _checked(self, name: str, value: Any, present: Array) -> Array:
        """Return a new value of a state variable; raises EvaluationError for another type or shape."""
        found = type(value).__name__
        if isinstance(value, np.ndarray):
            array = cast("Array", value)
            if (array.dtype, array.shape) == (present.dtype, present.shape):
                return array
            found = f"{array.dtype}{list(array.shape)}"
        raise EvaluationError(
            f"{self.what} assigns {found} to the state variable {quote(name)}, which is "
            f"{present.dtype}{list(present.shape)}; the state is as before"
        )

    def _session(self, outputs: tuple[str, ...]) -> Session:
        found = self._sessions.get(outputs)
        if found is None:
            part, _, _ = self._prepared()
            options = self._options
            model = pruned(part, outputs)
            found = self._sessions[outputs] = Session(
                model,
                engine=options.engine,
                threads=options.threads,
                registry=options.registry,
                limits=options.limits,
            )
        return found

    def _prepared(self) -> tuple[Part, str, int]:
        """Return the part with derivatives written out, the name of its keys, and their number of nodes."""
        if self._ready is None:
            self._ready = run_with_limits(self._options.limits, self._prepare)
        return self._ready

    def _prepare(self) -> tuple[Part, str, int]:
        part, registry = self._part, self._options.registry
        model, keys, count = part.model, "", 0
        if self._stream is not None:
            model, keys, count = draw_from_keys(model, registry)
        if calls_in_graph(model, registry):
            model = expand_in_graph(model, registry)
        fed = (*part.fed, keys) if count else part.fed
        return part._replace(model=model, fed=fed), keys, count


__all__ = ["Options", "RunnablePart"]
