"""The parts of a training model, each prepared once and bound to an engine for each set of outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import (
    EvaluationError,
    FeedError,
    SpareArrays,
    is_only_reference,
    owns_memory,
    quote,
    run_with_limits,
    suggest,
)
from sabir.differentiation import expand_in_graph
from sabir.editing import extract
from sabir.evaluation import ModelPort, Runner
from sabir.inference import infer
from sabir.ir import TensorType
from sabir.opsets import with_internal
from sabir.runtime import Session
from sabir.scheduling import calls_in_graph
from sabir.training._combining import Part, pruned, state_of, step_part
from sabir.training._losses import LOSS
from sabir.training._random import draw_from_keys, keys_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.base import Limits
    from sabir.compilation import Commit
    from sabir.ir import Array, Model, Type, Value
    from sabir.schema import Registry


STEPPING = 1  # the random numbers of steps; 0 are those of initializations
_SMALL = 1 << 10  # bytes that are allocated faster than they are compared with feeds


class Options(NamedTuple):
    """The arguments of a training session that its parts need."""

    engine: Any
    threads: int | None
    strict: bool
    newer_opsets: bool
    registry: Registry
    limits: Limits | None


class _Bound(NamedTuple):
    """The session that computes some outputs of a part, and the names of its inputs."""

    session: Session
    inputs: frozenset[str]


class RunnablePart:
    """One part of a training model: inference, an initialization, or an algorithm with the main graph."""

    def __init__(
        self,
        part: Part,
        what: str,
        options: Options,
        *,
        stream: tuple[int, int] | None,
        internal: Iterable[str] = (),
    ) -> None:
        """Take a part; `stream` is where its random numbers come from, None: it draws its own in each run.

        `internal` are outputs that the caller drops before the next run, which uses their memory again.
        """
        self.what, self.outputs = what, part.outputs
        self.inputs: tuple[Value, ...] = tuple(part.model.graph.inputs)
        registry = options.registry if stream is None else with_internal(options.registry)
        self._part, self._options, self._stream = part, options._replace(registry=registry), stream
        self._names = {v.name for v in part.model.graph.defined()}
        self._ready: tuple[Part, str, int] | None = None
        self._sessions: dict[tuple[str, ...], _Bound] = {}
        self._reads: dict[tuple[str, ...], frozenset[str]] = {}
        self._asked = set[tuple[str, ...]]()  # the outputs of sessions that know what they may write over
        self._spares = SpareArrays()
        self._assigned = frozenset(part.updates.values())
        self._typed: dict[str, Type | None] | None = None
        self._reused = self._assigned | frozenset(internal)

    @property
    def registry(self) -> Registry:
        """The operators that the prepared graph calls."""
        return self._options.registry

    @property
    def prepared(self) -> Part:
        """The part with derivatives written out, in which random numbers come from keys that are fed."""
        return self._prepared()[0]

    def section(
        self, inputs: Sequence[str], outputs: Sequence[str], updates: Mapping[str, str]
    ) -> RunnablePart:
        """Return the nodes of the prepared graph between values, as a part that is run with them as feeds.

        `inputs` are all inputs of the graph and values before the section that it reads. `outputs` keep their
        memory for the next run, as `internal` says. Random numbers are drawn from `keys`.
        """
        part = self.prepared
        wanted = list(dict.fromkeys((*outputs, *updates.values())))
        model = extract(part.model, inputs=inputs, outputs=wanted, registry=self._options.registry)
        own = Part(model, tuple(outputs), dict(updates), ())
        return RunnablePart(own, self.what, self._options, stream=None, internal=outputs)

    def has_rows(self, output: str) -> bool:
        """Return whether a value has a row for each sample: its first size is named as that of an input."""
        if self._typed is None:
            model = infer(self.prepared.model, registry=self.registry)
            self._typed = {v.name: v.type for v in model.graph.defined()}
        sizes = {_first_size(self._typed.get(v.name)) for v in self.inputs}
        size = _first_size(self._typed.get(output))
        return size is not None and not isinstance(size, int) and size in sizes

    def keys(self, path: tuple[int, ...]) -> dict[str, Array]:
        """Return the keys of random numbers by the name of their input; nothing where none are drawn."""
        _, keys, count = self._prepared()
        if not count or self._stream is None:
            return {}
        return {keys: keys_for((path[0], *self._stream, *path[1:]), count)}

    @property
    def updates(self) -> dict[str, str]:
        """The outputs that are assigned, by the names of the state variables."""
        return self._part.updates

    @property
    def scalars(self) -> list[str]:
        """The names of the losses, and of the scalars that the part reports: outputs assigned to nothing.

        These are outputs of the algorithm itself, or of the main graph where the algorithm has none.
        """
        values = {v.name: v for v in self._part.model.graph.outputs if v is not None}
        kinds = {n: values[n].type for n in self._own or self.outputs}
        found = [n for n, kind in kinds.items() if isinstance(kind, TensorType) and kind.shape == ()]
        return list(dict.fromkeys((*self._losses, *found)))

    @property
    def results(self) -> tuple[str, ...]:
        """What a step returns where no outputs are named.

        These are the losses of an algorithm that updates the state, or where none is known, its own outputs
        that are assigned to nothing; all outputs of one that updates nothing.
        """
        return (self._losses or self._own) if self.updates else self.outputs

    @property
    def _losses(self) -> tuple[str, ...]:
        """What the algorithm differentiates; a prepared model may have its derivatives written out."""
        return tuple(filter(self.has, self._part.losses)) or tuple(n for n in self._own if n == LOSS)

    @property
    def _own(self) -> tuple[str, ...]:
        return tuple(n for n in self.outputs if n in self._part.own)

    def has(self, name: str) -> bool:
        """Return whether the graph of the part has a value of this name."""
        return name in self._names

    def reads(self, outputs: tuple[str, ...]) -> frozenset[str]:
        """Return the names of the inputs, state variables too, that some outputs and the updates need."""
        found = self._reads.get(outputs)
        if found is None:
            part, _, _ = self._prepared()
            found = frozenset(v.name for v in pruned(part, outputs).graph.inputs)
            self._reads[outputs] = found
        return found

    def run(
        self,
        feeds: Mapping[str, Any],
        state: Mapping[str, Array],
        outputs: tuple[str, ...],
        path: tuple[int, ...] = (0, 0),
        commit: Commit[Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the named outputs and the new values of the state variables that the part assigns.

        `path` is the seed, the step and what else random numbers depend on. With a `commit` new values may be
        written over those of `state` that nothing else refers to; the second result is empty if that is done.
        Raises EvaluationError for an update that does not fit.
        """
        session, wanted = self._session(outputs)
        if commit is not None and outputs not in self._asked:
            self._asked.add(outputs)
            session.prepare_reusing(self._inputs(wanted, feeds, state, path))
        over = {} if commit is None else self._replaceable(session, state, feeds)
        inputs = self._inputs(wanted, feeds, state, path)
        spares = self._spares.free()
        results = session.run_reusing(inputs, {**spares, **over}, commit)
        updates = {} if commit is not None and commit.done else self.assigned(results, state)
        assigned, in_place = self._assigned, session.in_place
        fresh = {o: results[o] for o in self._reused if o in results and o not in in_place}
        self._spares.keep({o: x for o, x in fresh.items() if _size(x) > _SMALL}, spares)
        return {n: np.copy(results[n]) if n in assigned else results[n] for n in outputs}, updates

    def observe(
        self,
        feeds: Mapping[str, Any],
        state: Mapping[str, Array],
        path: tuple[int, ...],
        see: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        """Run the part with the interpreter, and show each value, as `Runner.run_observed` does."""
        options = self._options
        part, _, _ = self._prepared()
        model = pruned(part, self.outputs)
        runner = Runner(model, options.registry, options.limits, newer_opsets=options.newer_opsets)
        wanted = frozenset(port.name for port in runner.inputs)
        runner.run_observed(self._inputs(wanted, feeds, state, path), see)

    def _inputs(
        self,
        wanted: frozenset[str],
        feeds: Mapping[str, Any],
        state: Mapping[str, Array],
        path: tuple[int, ...],
    ) -> dict[str, Any]:
        """Return the inputs of a run: feeds, state, and the keys of random numbers."""
        inputs = {n: state[n] for n in wanted if n in state and n not in feeds}
        inputs.update((n, v) for n, v in feeds.items() if n in wanted)
        inputs.update((n, keys) for n, keys in self.keys(path).items() if n in wanted)
        return inputs

    def assigned(self, results: Mapping[str, Any], state: Mapping[str, Array]) -> dict[str, Array]:
        """Return the new values of the state variables among results; raises EvaluationError as `run`."""
        found: dict[str, Array] = {}
        for name, output in self.updates.items():
            value, present = results[output], state[name]
            found[name] = value if value is present else self._checked(name, value, present)
        return found

    def _replaceable(
        self, session: Session, state: Mapping[str, Array], feeds: Mapping[str, Any]
    ) -> dict[str, Array]:
        """Return the values that nothing but `state` refers to, by the outputs that may be written there."""
        names = {o: n for o, n in session.in_place.items() if n not in feeds}
        return {o: state[n] for o, n in names.items() if is_only_reference(state, n) and _is_own(state[n])}

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

    def _session(self, outputs: tuple[str, ...]) -> _Bound:
        found = self._sessions.get(outputs)
        if found is None:
            part, _, _ = self._prepared()
            options = self._options
            session = Session(
                pruned(part, outputs),
                engine=options.engine,
                threads=options.threads,
                strict=options.strict,
                newer_opsets=options.newer_opsets,
                registry=options.registry,
                limits=options.limits,
                updates={new: name for name, new in part.updates.items()},
            )
            inputs = frozenset(port.name for port in session.inputs)
            found = self._sessions[outputs] = _Bound(session, inputs)
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
            model = expand_in_graph(model, registry, strict=True)
        fed = (*part.fed, keys) if count else part.fed
        return part._replace(model=model, fed=fed), keys, count


def algorithm_of(model: Model, index: int, options: Options) -> RunnablePart:
    """Return an algorithm of a training model with the main graph, which is run as a step."""
    return RunnablePart(step_part(model, index), f"algorithm {index}", options, stream=(STEPPING, index))


def ports_of(part: RunnablePart, model: Model) -> tuple[ModelPort, ...]:
    """Return the inputs of a part that are no state variables, and those of the main graph that are both."""
    state = state_of(model)
    both = {v.name for v in state.values() if v.is_input}
    return tuple(
        ModelPort(v.name, v.type, v.constant is not None or v.name in both)
        for v in part.inputs
        if v.name not in state or v.name in both
    )


def check_names(feeds: Mapping[Any, Any], inputs: Iterable[ModelPort]) -> None:
    """Raise FeedError for a feed that is none of some inputs."""
    known = dict.fromkeys(port.name for port in inputs)
    other = next((n for n in feeds if n not in known), None)
    if other is not None:
        hint = suggest(str(other), known) or f"; the inputs are {', '.join(map(repr, known)) or 'none'}"
        raise FeedError(f"the model has no input {other!r}{hint}")


def check_outputs(outputs: Iterable[str], parts: Sequence[RunnablePart]) -> None:
    """Raise FeedError for an output that no part has."""
    other = next((n for n in outputs if not any(part.has(n) for part in parts)), None)
    if other is not None:
        known = [n for part in parts for n in (*part.outputs, *part.updates.values())]
        hint = suggest(other, known) or f"; the outputs are {', '.join(map(repr, dict.fromkeys(known)))}"
        raise FeedError(f"there is no value {other!r}{hint}")


def _first_size(kind: Type | None) -> Any:
    return kind.shape[0] if isinstance(kind, TensorType) and kind.shape else None


def _size(value: Any) -> int:
    return cast("Array", value).nbytes if isinstance(value, np.ndarray) else 0


def _is_own(array: Array) -> bool:
    return owns_memory(array) and array.flags.writeable


__all__ = ["STEPPING", "Options", "RunnablePart", "algorithm_of", "check_names", "check_outputs", "ports_of"]
