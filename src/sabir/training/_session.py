"""The training session: a model whose state changes, with the methods initialize, step and run."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from sabir.base import FeedError, UnsupportedError, quote
from sabir.compilation import Commit
from sabir.evaluation import make_engine, read_request
from sabir.ir import Model
from sabir.opsets import STANDARD
from sabir.runtime import ENGINES
from sabir.serial import load, save
from sabir.training._combining import (
    inference_part,
    initial_state,
    initialization_part,
)
from sabir.training._fitting import BATCH, EPOCH, Epoch, Fitting, Progress, fit
from sabir.training._parts import (
    Options,
    RunnablePart,
    algorithm_of,
    check_names,
    check_outputs,
    ports_of,
)
from sabir.training._progress_bar import shown_progress
from sabir.training._remote_values import RemoteValues
from sabir.training._replicas import Replicas, Task
from sabir.training._saving import SEED, STEP, number_in, strip_training, with_state
from sabir.training._state import State, StepState, Store
from sabir.training._stopping import EarlyStopping
from sabir.training._validating import require_valid

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

    from sabir.base import Limits
    from sabir.drawing import Shown
    from sabir.evaluation import ModelPort, Request
    from sabir.ir import Array
    from sabir.schema import Registry
    from sabir.training._data import Data
    from sabir.training._traffic import Traffic

_T = TypeVar("_T")
_INITIALIZING = 0  # which random numbers are drawn, beside those of steps


class TrainingSession:  # ruff: ignore[too-many-public-methods]  also what fit, replicas and logs call
    """A training model as the standard describes it: an object that is initialized, stepped and run.

    The state variables are the initializers that bindings name; they start with the values in the model. A
    step runs the main graph and an algorithm as one graph and then assigns what the update bindings name, all
    of it or, if anything fails or an interrupt comes, nothing. `run` is inference and changes nothing.

    `engine`, `threads`, `strict`, `newer_opsets`, `registry` and `limits` are those of `sabir.Session`; with
    `strict` a step that contradicts a declared type assigns nothing, and limits bound each run. Nodes of
    algorithms and initializations that draw random numbers without a seed draw them from `seed`, the node and
    the number of the step, so that a resumed training repeats them. Without a `seed` it is the one in the
    model's metadata, where `save` notes it, or 0. One thread at a time may use a session.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float x) => (float y) <float w = {1}> { y = Mul (x, w) }
    ... @training {
    ...   algorithm: a (float t) => (float loss, float v) { loss = Sub (y, t)  v = Sub (w, loss) },
    ...   update_binding: ["w": "v"]}''')
    >>> session = sabir.TrainingSession(model)
    >>> print(session.step({'x': 1.0, 't': 3.0})['loss'], session.run({'x': 1.0})['y'])
    -2.0 3.0
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str] | bytes,
        *,
        engine: Literal["auto", "compiled", "reference"] = "auto",
        threads: int | None = None,
        strict: bool = False,
        newer_opsets: bool = False,
        seed: int | None = None,
        registry: Registry = STANDARD,
        limits: Limits | None = None,
    ) -> None:
        """Take a model, or the path or the bytes of a file.

        Raises SchemaError for training information that breaks a rule of the standard, which is quoted;
        FileError, WireError, UnsupportedError or LimitError.
        """
        self.model: Model = make_engine(model, lambda m: m.clone())
        require_valid(self.model, registry, limits)
        noted = number_in(self.model, SEED)
        self.seed = (noted or 0) if seed is None else seed
        if self.seed < 0:
            raise UnsupportedError(f"a seed is a number, 0 or more; got {self.seed}")
        if engine not in {"auto", *ENGINES}:
            raise UnsupportedError(
                f"there is no engine {engine!r}; the engines are auto, {', '.join(ENGINES)}"
            )
        self.engine, self.threads = engine, threads
        self.strict, self.newer_opsets = strict, newer_opsets
        self._pool: Replicas | None = None
        self._traffic: tuple[Traffic, ...] = ()
        self.options = options = Options(engine, threads, strict, newer_opsets, registry, limits)
        self._present = _noted_place(self.model, initial_state(self.model))
        self._pending: Commit[Store] | None = None
        self._inference = RunnablePart(inference_part(self.model), "the main graph", options, stream=None)
        self._starts = [_start(self.model, i, options) for i in range(len(self.model.training))]
        self._algorithms = [algorithm_of(self.model, i, options) for i in range(len(self.model.training))]
        self._ports: dict[RunnablePart, tuple[ModelPort, ...]] = {}
        self.state = State(lambda: self._store, self._commit)
        """The state variables: a mapping of arrays to read and to set."""

    @property
    def steps(self) -> int:
        """How many steps were made since the initialization; part of what `save` writes."""
        return self._store.step

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs for inference."""
        return self._ports_of(self._inference)

    def outputs_of(self, algorithm: int) -> list[str]:
        """Return the names of all outputs of a step of one algorithm: those of both graphs but the updates.

        Raises UnsupportedError where there is no such algorithm.
        """
        return list(self._algorithm(algorithm).outputs)

    def inputs_of(self, algorithm: int) -> tuple[ModelPort, ...]:
        """Return the inputs of a step of one algorithm: those of the main graph, then its own.

        Raises UnsupportedError where there is no such algorithm.
        """
        return self._ports_of(self._algorithm(algorithm))

    @property
    def position(self) -> tuple[int, int]:
        """How many epochs `fit` has completed, and how many batches of the next one; `save` writes both."""
        return self._store.epoch, self._store.step - self._store.epoch_began

    @property
    def updating(self) -> list[int]:
        """The numbers of the algorithms that update the state."""
        return [i for i, part in enumerate(self._algorithms) if part.updates]

    @property
    def summed(self) -> frozenset[str]:
        """The state variables that one algorithm updates and another applies: sums of gradients."""
        parts = [part for part in self._algorithms if part.updates]
        read = {name for part in parts[1:] for name in part.reads(())}
        return frozenset(name for part in parts[:1] for name in part.updates if name in read)

    @property
    def evaluating(self) -> int | None:
        """The number of the last algorithm that updates nothing; None where each updates something."""
        return next((i for i, p in reversed([*enumerate(self._algorithms)]) if not p.updates), None)

    def scalars_of(self, algorithms: Sequence[int]) -> list[str]:
        """Return the names of the losses of algorithms, and of other scalars that they assign to nothing."""
        return list(dict.fromkeys(n for i in algorithms for n in self._algorithms[i].scalars))

    def begin_epoch(self, number: int) -> None:
        """Let the epoch after `number` complete ones begin at the present step."""
        self._commit(self._store._replace(epoch=number, epoch_began=self.steps))

    def fit(  # ruff: ignore[too-many-arguments]  all but one are by keyword
        self,
        data: Data,
        *,
        epochs: int = 1,
        batch: int | None = None,
        validate: Data | float | None = None,
        shuffle: bool | int = True,
        drop_last: bool | None = None,
        patience: int | None = None,
        early_stopping: EarlyStopping | None = None,
        callbacks: Iterable[Callable[[Epoch], Any]] = (),
        progress: Callable[[Progress], Any] | Shown = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_steps: int | None = None,
        resume: str | os.PathLike[str] | None = None,
        keep_steps: int | None = 100,
    ) -> list[Epoch]:
        """Train until `epochs` epochs are complete, and return what each came to.

        `data` has samples, which are cut into batches of `batch` samples in an order that the seed and the
        epoch decide; without `shuffle` in order. It is one of

        - a dict of arrays by input name with one sample a row, or a tuple of arrays in the order of the
          inputs, the target last;
        - the path of a .npz, .csv, .parquet, .arrow or .feather file, or of a folder with a folder of
          pictures for each class, of which `ImageFolder` has options;
        - a data set of Hugging Face or of Ray Data, a table of pyarrow or a data frame of pandas, whose
          columns have the names of inputs; others are left out.

        Or it has batches of its own: an iterable of dicts or tuples, as a DataLoader of PyTorch, which is
        iterated for each epoch, or a function that returns an iterable. Their order is kept unless `shuffle`
        is a number above 1: batches of `batch` samples are then drawn from a window of so many samples.

        Every algorithm that updates the state steps; `validate` is data for the last algorithm that updates
        nothing, or the share of the samples that the seed sets apart for it, such as 0.1.

        `batch` is by default what the types of the inputs fix, else 32. Where they fix it, an incomplete
        batch is filled with samples whose labels are ignored, if the loss ignores a label, and is left out
        otherwise, with a warning. `drop_last=True` leaves out incomplete batches always.

        With `patience`, training stops early where the loss, of the validation if there is one, has not
        fallen for so many epochs, and the session ends as it was after the best epoch of this call, whether
        it stopped early or not; `early_stopping` has a rule of another kind. Training also stops where a
        function of `callbacks`, which are called with each `Epoch`, returns true. `progress` is called after
        each step; True shows a bar for each epoch, and "auto" one where somebody looks, see `ProgressBar`.
        The session is saved to `checkpoint` after each epoch, after every `checkpoint_steps` steps, at the
        end, and when the training is interrupted; a session of this file goes on at the same batch with the
        same numbers, as `epochs` counts those that were made before. `resume` is a checkpoint to write, and
        to `restore` first if the file is there; a `TrainingLog` is made after that, so with one call
        `restore` before.

        A loss that is NaN or infinite, and state that becomes so, stop the training with an EvaluationError
        that names the epoch, the step and the node. The session, and the checkpoint, then have the state
        before the first step that went wrong: a copy of the state is made after every `keep_steps` steps and
        each epoch, and the steps since are repeated. Batches of an iterator cannot be repeated; the state is
        then that of the copy. With None there is no copy, and only losses are looked at.

        Raises UnsupportedError for a model that cannot be trained or validated, FeedError for data that does
        not fit, and what `step` and `save` raise.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N,1] x) => (float[N,1] y) <float[1,1] w = {0.0}> { y = MatMul (x, w) }''')
        >>> from sabir.training import SGD, prepare
        >>> session = sabir.TrainingSession(prepare(model, 'mse', optimizer=SGD(0.1)))
        >>> x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(64, 1)
        >>> epochs = session.fit({'x': x, 'label': 3 * x}, epochs=20, batch=16)
        >>> print(len(epochs), session.state['w'].round(1))
        20 [[3.]]
        """
        self._require_training()
        if resume is not None:
            checkpoint = _only(resume, checkpoint, "resume names the checkpoint, and checkpoint another file")
            if Path(resume).exists():
                self.restore(resume)
        rule = None if patience is None else EarlyStopping(patience)
        rule = _only(early_stopping, rule, "early_stopping has its own patience")
        with shown_progress(progress) as report:
            asked = Fitting(
                epochs,
                batch,
                validate,
                shuffle,
                drop_last,
                rule,
                tuple(callbacks),
                report,
                checkpoint,
                checkpoint_steps,
                keep_steps,
            )
            return fit(self, data, asked)

    def restore(self, checkpoint: Model | str | os.PathLike[str]) -> None:
        """Go on from a checkpoint of this model: take its state, seed, and place in the epochs.

        Raises FeedError where it is of another model, and what `sabir.load` raises.
        """
        model = checkpoint if isinstance(checkpoint, Model) else load(checkpoint)
        values, present = initial_state(model), self._store.values
        for name in present.keys() | values.keys():
            if not _is_alike(present.get(name), values.get(name)):
                where = "the checkpoint" if isinstance(checkpoint, Model) else str(checkpoint)
                found, wanted = _shown(values.get(name)), _shown(present.get(name))
                raise FeedError(
                    f"{where}: this is a checkpoint of another model: the state variable {quote(name)} is "
                    f"{found} there, and {wanted} in the session"
                )
        noted = number_in(model, SEED)
        store = _noted_place(model, values)
        self.seed = self.seed if noted is None else noted
        self._commit(store)

    def initialize(self) -> None:
        """Set the state as if no training had happened, then run the initializations in order.

        Every state variable takes its value of the model; then each initialization assigns what its bindings
        name, and a later one reads what an earlier one assigned. Raises UnsupportedError for a model without
        training information, and what a run raises; the state is then as before.
        """
        self._require_training()
        values = initial_state(self.model)
        for start in self._starts:
            if start is not None:
                _, updates = start.run({}, values, (), (self.seed, 0))
                values |= updates
        self._commit(Store(values, 0))

    def step(
        self,
        feeds: Any,
        algorithm: int | Sequence[int] | None = None,
        outputs: str | Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Run one algorithm, or several in sequence, assign the updates, and return the loss or other values.

        `feeds` has values for the inputs of the main graph and of the algorithms. `algorithm` is a number,
        several numbers, or None for all that update the state (all, where none does), in sequence: one
        iteration. Of several algorithms the second reads what the first assigned; the assignments are made
        together, at the end.

        The result has values by name, and only what they and the updates need is computed. `outputs` names
        values of either graph. By default an algorithm that updates the state returns its losses: the values
        that its operators Gradient differentiate, or without them the output `loss`, or without that all
        outputs of its own that no binding assigns. One that updates nothing returns all outputs of both
        graphs.

        Raises UnsupportedError for a model without training information or such an algorithm; FeedError for
        feeds that do not fit; EvaluationError where a node fails, or an update has another type or shape than
        its variable; LimitError. The state is then as before.
        """
        return self._step(feeds, algorithm, outputs, in_epoch=False)

    def step_in_epoch(
        self, feeds: Any, algorithm: int | Sequence[int], outputs: str | Sequence[str]
    ) -> dict[str, Any]:
        """Make a step as `step` does, which counts as a batch of the epoch: what `fit` calls."""
        return self._step(feeds, algorithm, outputs, in_epoch=True)

    def _step(
        self,
        feeds: Any,
        algorithm: int | Sequence[int] | None,
        outputs: str | Sequence[str] | None,
        *,
        in_epoch: bool,
    ) -> dict[str, Any]:
        self._require_training()
        parts = self._chosen(algorithm)
        request = read_request(feeds, outputs, self._ports_of(parts[0]))
        readers = self._algorithms if algorithm is None else parts
        check_names(request.feeds, [p for part in readers for p in self._ports_of(part)])
        check_outputs(request.outputs or (), parts)
        if self._pool is not None and any(part.updates for part in parts):
            return self._step_of_replicas(self._pool, parts, request, in_epoch=in_epoch)
        results = dict[str, Any]()
        step = StepState(self._store, 1 if any(part.updates for part in parts) else 0, in_epoch=in_epoch)
        for number, part in enumerate(parts, 1):
            wanted = part.results if request.outputs is None else tuple(filter(part.has, request.outputs))
            commit = None
            if number == len(parts):
                commit = self._pending = Commit(functools.partial(step.ended, part))
            path = self.seed, self.steps
            values = _loaded(step.values, part, wanted)
            found, assigned = part.run(request.feeds, values, wanted, path, commit)
            results |= found
            if commit is None or not commit.done:
                step.assign(assigned)
        if not self._settled():
            self._commit(step.store)
        return results

    def _step_of_replicas(
        self, pool: Replicas, parts: Sequence[RunnablePart], request: Request, *, in_epoch: bool
    ) -> dict[str, Any]:
        """Make a step on the replicas."""
        if not all(part.updates for part in parts):
            raise UnsupportedError(
                "a distributed step runs algorithms that update the state; make a step of its own for one "
                "that evaluates"
            )
        known = set[str]()
        outputs: list[tuple[str, ...]] = []
        for part in parts:
            asked = part.results if request.outputs is None else tuple(filter(part.has, request.outputs))
            outputs.append(tuple(name for name in asked if name not in known))
            known.update(outputs[-1])
        first = self._algorithms[self.updating[0]]
        names = [
            {p.name for p in self._ports_of(part)} if part is first else part.reads(wanted)
            for part, wanted in zip(parts, outputs, strict=True)
        ]
        feeds = tuple({n: v for n, v in request.feeds.items() if n in some} for some in names)
        indices = tuple(map(self._algorithms.index, parts))
        store, before = self._store, pool.steps
        try:
            task = Task(indices, feeds, tuple(outputs), (self.seed, store.step), first.has_rows)
            return pool.step(store.values, task)
        finally:
            if pool.steps != before:
                self._commit(store.moved(pool.values, steps=1, in_epoch=in_epoch))

    def observe(
        self, feeds: Mapping[str, Any], algorithm: int, see: Callable[[str, Mapping[str, Any]], None]
    ) -> None:
        """Compute the next step of an algorithm with the interpreter, show each value, and change nothing.

        `see` is called as that of `Runner.run_observed`. `feeds` may have inputs of other algorithms.
        """
        part = self._algorithm(algorithm)
        known = {n: v for n, v in feeds.items() if any(p.name == n for p in self._ports_of(part))}
        values = _loaded(self._store.values, part, part.outputs)
        part.observe(known, values, (self.seed, self.steps), see)

    def part(self, algorithm: int) -> RunnablePart:
        """Return an algorithm with the main graph; raises UnsupportedError where there is no such one."""
        return self._algorithm(algorithm)

    @contextlib.contextmanager
    def sharded(self, pool: Replicas) -> Generator[None]:
        """Let replicas make the steps that update the state while the context lasts."""
        before, self._pool = self._pool, pool
        try:
            yield
        finally:
            self._pool = before
            self._traffic = pool.traffic
            if self._store.values is pool.values:
                pool.close()
                self._commit(self._store._replace(values=pool.values))

    @property
    def traffic(self) -> tuple[Traffic, ...]:
        """What each worker of the present `distribute`, or the last one, sent and waited for.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g () => (float y) <float w = {1}> { y = Neg (w) }''')
        >>> sabir.TrainingSession(model).traffic
        ()
        """
        return self._traffic if self._pool is None else self._pool.traffic

    def run(self, feeds: Any, outputs: str | Sequence[str] | None = None) -> dict[str, Any]:
        """Return the outputs of the main graph with the present state; it changes nothing.

        Feeds and outputs are as in `Session.run`; raises as that. A feed for a state variable that is an
        input replaces its value in this run.
        """
        part = self._inference
        request = read_request(feeds, outputs, self.inputs)
        check_names(request.feeds, self.inputs)
        check_outputs(request.outputs or (), [part])
        wanted = part.outputs if request.outputs is None else request.outputs
        return part.run(request.feeds, _loaded(self._store.values, part, wanted), wanted)[0]

    def export(self) -> Model:
        """Return the model for inference with the present state: `strip_training` of the training model."""
        return strip_training(self.checkpoint())

    def checkpoint(self, metadata: Mapping[str, object] | None = None) -> Model:
        """Return a copy of the training model from which training goes on exactly as from here.

        The state variables are initialized with their present values, and the metadata has the seed and the
        number of steps, and what `metadata` adds.
        """
        store = self._store
        place = {EPOCH: store.epoch, BATCH: store.step - store.epoch_began}
        notes = {SEED: self.seed, STEP: store.step, **place, **(metadata or {})}
        return with_state(self.model, {n: a.copy() for n, a in store.values.items()}, notes)

    def save(self, path: str | os.PathLike[str], *, metadata: Mapping[str, object] | None = None) -> None:
        """Write `checkpoint(metadata)` to a file, which has the old bytes or all of the new ones.

        Raises what `sabir.save` raises.
        """
        save(self.checkpoint(metadata), path)

    def __repr__(self) -> str:
        count = len(self._store.values)
        return f"<TrainingSession of {self.model!r}, {count} state variables, {self.steps} steps>"

    def _ports_of(self, part: RunnablePart) -> tuple[ModelPort, ...]:
        found = self._ports.get(part)
        if found is None:
            found = self._ports[part] = ports_of(part, self.model)
        return found

    @property
    def _store(self) -> Store:
        """Everything that a step changes, also where an interrupt came right after the step was done."""
        self._settled()
        return self._present

    def _settled(self) -> bool:
        """Take over what a run has committed; return whether there was something."""
        pending = self._pending
        if pending is None or not pending.done or pending.prepared is None:
            return False
        self._commit(pending.prepared)
        return True

    def _commit(self, store: Store) -> None:
        self._present = store  # one assignment: an interrupt comes before or after it
        self._pending = None

    def _require_training(self) -> None:
        if not self.model.training:
            raise UnsupportedError(
                f"{self.model!r} has no training information; sabir.training.prepare adds it"
            )

    def _chosen(self, algorithm: int | Sequence[int] | None) -> list[RunnablePart]:
        """Return the algorithms of a step, by default those with updates; raises UnsupportedError."""
        if algorithm is None:
            return [self._algorithms[i] for i in self.updating] or self._algorithms
        parts = [self._algorithm(i) for i in ([algorithm] if isinstance(algorithm, int) else algorithm)]
        if not parts:
            raise UnsupportedError("a step runs one algorithm or more; the list of algorithms is empty")
        return parts

    def _algorithm(self, index: int) -> RunnablePart:
        if not 0 <= index < len(self._algorithms):
            count = len(self._algorithms)
            raise UnsupportedError(f"there is no algorithm {index}; the model has {count}, numbered from 0")
        return self._algorithms[index]


def _noted_place(model: Model, values: dict[str, Array]) -> Store:
    """Return values of the state with the step and the place in the epochs that a model notes."""
    step, epoch, batches = (number_in(model, name) or 0 for name in (STEP, EPOCH, BATCH))
    return Store(values, step, epoch, step - batches)


def _loaded(values: Mapping[str, Array], part: RunnablePart, outputs: tuple[str, ...]) -> Mapping[str, Array]:
    """Return the state that a run reads; what replicas have of it is fetched at once."""
    return values.load(part.reads(outputs)) if isinstance(values, RemoteValues) else values


def _only(one: _T | None, other: _T | None, reason: str) -> _T | None:
    """Return the one of two options that is given; raises UnsupportedError where both are."""
    if one is not None and other is not None:
        raise UnsupportedError(f"{reason}; pass one of them")
    return other if one is None else one


def _is_alike(one: Array | None, other: Array | None) -> bool:
    """Return whether two arrays are there and have one type and shape."""
    if one is None or other is None:
        return False
    return (one.dtype, one.shape) == (other.dtype, other.shape)


def _shown(array: Array | None) -> str:
    return "absent" if array is None else f"{array.dtype}{list(array.shape)}"


def _start(model: Model, index: int, options: Options) -> RunnablePart | None:
    part = initialization_part(model, index)
    what = f"initialization {index}"
    return part and RunnablePart(part, what, options, stream=(_INITIALIZING, index))


__all__ = ["TrainingSession"]
