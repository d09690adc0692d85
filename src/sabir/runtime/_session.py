"""The session: a model that a program runs again and again."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from sabir.base import Limits, UnsupportedError
from sabir.compilation import Compiled
from sabir.evaluation import make_engine, read_request
from sabir.files import opened_file
from sabir.ir import OptionalType
from sabir.opsets import STANDARD
from sabir.runtime._buffers import check_buffers, write_buffers
from sabir.runtime._engines import Options, engine_named, known_engine
from sabir.runtime._node_args import NodeArg, node_arg
from sabir.runtime._threads import ThreadLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sabir.compilation import Commit, Explanation
    from sabir.drawing import Shown
    from sabir.evaluation import ModelPort
    from sabir.ir import Array, Model
    from sabir.runtime._engines import Engine
    from sabir.schema import Registry

_DICT: Any = dict  # of no type that the checker knows: a cast of what it narrows takes 50 ns in each run


def _opened(kind: type[Session], path: str, options: dict[str, Any]) -> Session:
    return kind(path, **options)


class Session:
    """A snapshot of a model, ready to run: edits of the model after this do not reach it.

    `engine` is `"compiled"`, native code made for the model, or `"reference"`, the interpreter on numpy;
    `"auto"` is the compiled engine where code can be compiled, else the other. `threads` is how many threads
    one run may use; None leaves the number to the libraries that Sabir uses. With `strict` a value that
    contradicts its declared type or shape is an EvaluationError; else it is a SabirWarning, once for each
    place, as are deviations from the standard that other runtimes accept, which docs/running.md lists. With
    `newer_opsets` an operator set newer than any known one counts as the newest; else it is an
    UnsupportedError. `registry` has the operators, by default those of the standard. `limits` bounds what one
    run may use. With the precision "fast" the compiled engine may use algorithms that round a few times more,
    by some 1e-6 of the largest result, where they are faster: that is Winograd's F(4x4) for convolutions of
    large images. Without `keep_memory` each run gives back the memory that it leaves for the next one, as
    `release` does. `updates` names inputs by the outputs that are new values of them, for
    `run_reusing`. `caches` names inputs by the outputs that have their rows and some new ones: `run` writes
    only the new rows, if the array of `out` is the feed itself. `sizes` names inputs of one integer that the
    sizes of other values depend on, such as the length of a cache: the compiled engine then needs no new plan
    for each number. `providers` is refused: it is an argument of onnxruntime.

    Several threads may run a session at a time. Dropping it frees the constants at once.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> session = sabir.Session(model)
    >>> session.run({'x': [-1.0, 2.0]})['y']
    array([0., 2.], dtype=float32)
    >>> session.run(['y'], {'x': np.float32([-1, 2])})
    [array([0., 2.], dtype=float32)]
    """

    def __init__(  # ruff: ignore[too-many-arguments]  all but one are by keyword
        self,
        model: Model | str | os.PathLike[str] | bytes,
        *,
        engine: Literal["auto", "compiled", "reference"] = "auto",
        threads: int | None = None,
        strict: bool = False,
        newer_opsets: bool = False,
        registry: Registry = STANDARD,
        limits: Limits | None = None,
        keep_memory: bool = True,
        updates: Mapping[str, str] | None = None,
        precision: Literal["exact", "fast"] = "exact",
        caches: Mapping[str, str] | None = None,
        sizes: Collection[str] = (),
        providers: None = None,
    ) -> None:
        """Load and bind a model; raises FileError, WireError, SchemaError, UnsupportedError or LimitError."""
        if providers is not None:
            raise UnsupportedError(
                "a session runs on the CPU and has no `providers`: leave them out; `engine=` chooses how"
            )
        self.engine, make = engine_named(engine)
        if threads is not None and (not isinstance(cast("object", threads), int) or threads < 1):
            raise UnsupportedError(f"threads must be a number, 1 or more, or None; got {threads!r}")
        if cast("object", precision) not in ("exact", "fast"):  # ruff: ignore[literal-membership]  a list has no hash
            raise UnsupportedError(f"precision must be 'exact' or 'fast'; got {precision!r}")
        self.threads = threads
        self._model = ""
        self._origin = (
            (
                os.fsdecode(model),
                {
                    "engine": engine,
                    "threads": threads,
                    "strict": strict,
                    "newer_opsets": newer_opsets,
                    "limits": limits,
                    "keep_memory": keep_memory,
                    "updates": updates,
                    "precision": precision,
                    "caches": caches,
                    "sizes": sizes,
                    **({} if registry is STANDARD else {"registry": registry}),
                },
            )
            if isinstance(model, (str, os.PathLike))
            else None
        )
        self._engine: Engine
        file = opened_file(Path(os.fsdecode(model))) if isinstance(model, (str, os.PathLike)) else None
        options = Options(
            registry, limits, strict, newer_opsets, threads, file, updates, precision, caches, sizes
        )

        def bind(loaded: Model) -> Engine:
            self._model = repr(loaded)
            return make(loaded, options)

        known = None if file is None else known_engine(self.engine, options)
        if known is None:
            self._engine = make_engine(model if file is None else file, bind)
        else:
            self._model, self._engine = known
        self._keep_memory = keep_memory
        self._run_fast: Callable[..., dict[str, Any] | None] | None = (
            getattr(self._engine, "run_fast", None) if keep_memory else None
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Let a session of a file be pickled and copied: as its path and options, so that it is loaded again.

        Raises UnsupportedError for a session of a model in memory.
        """
        if self._origin is None:
            raise UnsupportedError(
                "a session of a model in memory cannot be pickled or copied: save the model and pickle the"
                " session of its file, or pickle `sabir.dumps(model)` and make a session of it there"
            )
        return _opened, (type(self), *self._origin)

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs: name, type, shape, and whether one may be left out."""
        return self._engine.inputs

    @property
    def outputs(self) -> tuple[ModelPort, ...]:
        """The outputs: name, type and shape."""
        return self._engine.outputs

    def explain(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Explanation:
        """Return which nodes became which kernel, and what the interpreter evaluates instead, and why.

        That is the plan for the `shapes` of the inputs by name. Without them it is the plan compiled last, or
        before the first run the one for the declared shapes. Raises FeedError where a size is not declared
        and `shapes` does not have it, and UnsupportedError for an engine without kernels.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> print(sabir.Session(model, engine='compiled').explain({'x': [4]}))
        1 node: 1 kernel, nothing evaluated
        kernels
          1 nest       Relu with output 'y'
        """
        if not isinstance(self._engine, Compiled):
            raise UnsupportedError(
                f"the engine {self.engine!r} has no kernels; make the session with engine='compiled'"
            )
        return self._engine.explain(shapes)

    def compile(self, feeds: Mapping[str, Any], progress: Callable[[int, int], None] | Shown = None) -> None:
        """Compile what a run with feeds of these shapes needs, so that the first such run is quick.

        Nothing is run; an engine that does not compile does nothing. `progress` is called with the number of
        kernels that are ready and of all; True shows a bar of tqdm, the extra `sabir[progress]`, and "auto"
        one in a terminal or a notebook. Raises FeedError for feeds that a run would refuse.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> sabir.Session(model).compile({'x': np.zeros(1000, np.float32)})
        """
        from sabir.drawing import counting_bar  # ruff: ignore[import-outside-top-level]  sessions need no bars

        with counting_bar(progress, "compiling", "kernel") as report:
            if isinstance(self._engine, Compiled):
                with contextlib.suppress(UnsupportedError):  # a warning has said why the interpreter runs it
                    self._engine.compile(feeds, report)

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs without a default as onnxruntime describes them; `inputs` says more."""
        return [node_arg(p) for p in self.inputs if not p.optional or isinstance(p.type, OptionalType)]

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs as onnxruntime describes them; `outputs` says more."""
        return list(map(node_arg, self.outputs))

    @overload
    def run(
        self,
        feeds: Mapping[str, Any] | Sequence[Any],
        outputs: str | Sequence[str] | None = None,
        *,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Any]: ...

    @overload
    def run(
        self,
        feeds: str | Sequence[str] | None,
        outputs: Mapping[str, Any],
        *,
        out: Mapping[str, Array] | None = None,
    ) -> list[Any]: ...

    def run(
        self, feeds: Any, outputs: Any = None, *, out: Mapping[str, Array] | None = None
    ) -> dict[str, Any] | list[Any]:
        """Return the requested outputs (all by default) by name, in arrays that are the caller's own.

        `feeds` maps input names to values, or has one value for each input in order; `outputs` is the name of
        a value of the main graph, or several. In onnxruntime's order, `run(names, feeds)`, the result is a
        list in the order of the names, as onnxruntime returns it; without names it has all outputs.

        `out` has arrays by the names of outputs: the results are written into these, and are valid once the
        run returns. They must have the element type and the shape of the output, row by row.

        Raises FeedError for feeds that do not match the inputs and for arrays of `out` that do not match the
        outputs, EvaluationError where a node fails.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> y = np.empty(2, np.float32)
        >>> sabir.Session(model).run({'x': np.float32([-1, 2])}, out={'y': y})['y'] is y
        True
        >>> y
        array([0., 2.], dtype=float32)
        """
        if outputs is None and type(feeds) is _DICT and out is None:  # the common form
            fast = self._run_fast
            found = None if fast is None else fast(feeds)
            return self._run(feeds, None) if found is None else found
        request = read_request(feeds, outputs, self.inputs)
        results = (
            self._run_all(request.feeds, request.outputs)
            if out is None
            else self._run_into(request.feeds, request.outputs, out)
        )
        if not request.outputs_first:
            return results
        return [results[name] for name in request.outputs or results]

    @property
    def in_place(self) -> Mapping[str, str]:
        """The inputs whose memory `run_reusing` can give to outputs, by their names: some of `updates`.

        That depends on the shapes of the last run.
        """
        return getattr(self._engine, "in_place", {})

    def prepare_reusing(self, feeds: Mapping[str, Any]) -> None:
        """Find out what `in_place` names before the first run, for feeds of its shapes, if that is possible.

        Raises FeedError as `run`.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> session = sabir.Session(model, engine='compiled', updates={'y': 'x'})
        >>> session.prepare_reusing({'x': np.float32([-1, 2])})
        >>> session.in_place
        {'y': 'x'}
        """
        prepare = getattr(self._engine, "prepare_fast", None)
        if prepare is not None:
            prepare(feeds)

    def run_reusing(
        self, feeds: dict[str, Any], spare: Mapping[str, Array], commit: Commit[Any] | None = None
    ) -> dict[str, Any]:
        """Return what `run(feeds)` returns, where possible in arrays of `spare`, by the names of outputs.

        They must not share memory, and nothing else may use it. An array that does not fit is not used. With
        a `commit` the array of an output may be the feed that `in_place` names. If the run uses such a feed,
        it calls `commit.prepare` before it computes anything, and writes over all of them at its end, or over
        none. Raises as `run`.

        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> sabir.Session(model).run_reusing({'x': np.float32([-1, 2])}, {})
        {'y': array([0., 2.], dtype=float32)}
        """
        fast = self._run_fast
        found = None if fast is None else fast(feeds, spare, commit)
        return self._run(feeds, None) if found is None else found

    async def run_async(
        self,
        feeds: Mapping[str, Any] | Sequence[Any],
        outputs: str | Sequence[str] | None = None,
        *,
        out: Mapping[str, Array] | None = None,
    ) -> dict[str, Any]:
        """Return what `run` returns, while the event loop goes on: the run has a thread of its own.

        Arrays that are fed may not be changed until then. A task that is cancelled waits no more, and its run
        goes on to the end; `cancel` stops it. Raises what `run` raises.

        >>> import asyncio
        >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
        ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
        >>> asyncio.run(sabir.Session(model).run_async({'x': [-1.0, 2.0]}))['y']
        array([0., 2.], dtype=float32)
        """
        import asyncio  # ruff: ignore[import-outside-top-level]  a program that awaits has it already

        return await asyncio.to_thread(self.run, feeds, outputs, out=out)

    def cancel(self) -> None:
        """Stop the runs that other threads are in: they raise CancelledError. Later runs are not concerned.

        Raises UnsupportedError for the engine "reference", which cannot be stopped from another thread.
        """
        stop = getattr(self._engine, "cancel", None)
        if stop is None:
            raise UnsupportedError(
                f"the engine {self.engine!r} cannot be cancelled; give it Limits(seconds=)"
            )
        stop()

    def release(self) -> None:
        """Give back the memory that runs have left for the next ones; the session can still run."""
        release = getattr(self._engine, "release", None)
        if release is not None:
            release()

    def _run_into(
        self, feeds: Mapping[str, Any], outputs: Sequence[str] | None, out: Mapping[str, Any]
    ) -> dict[str, Any]:
        buffers = check_buffers(out, [p.name for p in self.outputs] if outputs is None else outputs)
        fast = self._run_fast if outputs is None else None
        found = None if fast is None else fast(feeds, buffers)
        results = write_buffers(self._run(feeds, outputs) if found is None else found, buffers)
        return {**results, **out}

    def _run_all(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None) -> dict[str, Any]:
        """Run for all outputs the fast way where there is one, as for the common form."""
        fast = self._run_fast if outputs is None else None
        found = None if fast is None else fast(feeds)
        return self._run(feeds, outputs) if found is None else found

    def _run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None) -> dict[str, Any]:
        threads = None if isinstance(self._engine, Compiled) else self.threads  # that one limits itself
        try:
            with contextlib.nullcontext() if threads is None else ThreadLimit(threads):
                return self._engine.run(feeds, outputs)
        finally:
            if not self._keep_memory:
                self.release()

    def __repr__(self) -> str:
        return f"<Session of {self._model}, engine {self.engine!r}>"
