"""Engines: the protocol by which a session runs a model, and the engines that exist."""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sabir.base import UnsupportedError, has_limits
from sabir.opsets import is_standard
from sabir.runtime._threads import ThreadLimit

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sabir.base import Limits
    from sabir.compilation import Precision, Subject
    from sabir.evaluation import ModelPort
    from sabir.files import OpenedFile
    from sabir.ir import Model
    from sabir.schema import Registry


class Engine(Protocol):
    """A model, bound and ready to run; a snapshot, which several threads may run at once.

    It decides what its limits count: the bytes of its values and temporaries, the work of its calls.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.evaluation import Runner
    >>> engine: Engine = Runner(model)
    >>> engine.run({'x': np.float32([-1, 2])})['y']
    array([0., 2.], dtype=float32)
    """

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs: name, type, shape, and whether one may be left out."""
        ...

    @property
    def outputs(self) -> tuple[ModelPort, ...]:
        """The outputs: name, type and shape."""
        ...

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default), in arrays that are the caller's own.

        Raises FeedError for feeds or names that do not match, EvaluationError where a node fails, LimitError.
        """
        ...


class Options(NamedTuple):
    """The arguments of a session that its engine needs; `file` is the one that its model was loaded from.

    `updates` has the inputs that outputs are new values of, by the names of the outputs; `caches` those whose
    rows outputs have, with others. `sizes` names the inputs that sizes depend on.
    """

    registry: Registry
    limits: Limits | None
    strict: bool
    newer_opsets: bool
    threads: int | None = None
    file: OpenedFile | None = None
    updates: Mapping[str, str] | None = None
    precision: Precision = "exact"
    caches: Mapping[str, str] | None = None
    sizes: Collection[str] = ()


def _reference(model: Model, options: Options) -> Engine:
    from sabir.evaluation import Runner  # ruff: ignore[import-outside-top-level]  the other engine needs none

    return Runner(
        model, options.registry, options.limits, strict=options.strict, newer_opsets=options.newer_opsets
    )


def _compiled(model: Model, options: Options) -> Engine:
    if options.strict:  # a strict run compares every value, which native code does not hand out
        return _reference(model, options)
    return _compiled_of(model, options)


def known_engine(name: str, options: Options) -> tuple[str, Engine] | None:
    """Return the engine of a file that the cache describes, which is not read, and how its model is shown.

    It is None where the cache does not describe it, and where the engine of that name reads every model.
    """
    # ruff: ignore[import-outside-top-level]  as below
    from sabir.compilation import Subject

    is_usual = options.limits is None and not options.strict and is_standard(options.registry)
    if name != "compiled" or options.file is None or not is_usual or has_limits():
        return None
    subject = Subject.known(options.file, newer_opsets=options.newer_opsets)
    return None if subject is None else (subject.name, _compiled_of(subject, options))


def _compiled_of(model: Model | Subject, options: Options) -> Engine:
    # ruff: ignore[import-outside-top-level]  where LLVM is missing, only this engine is
    from sabir.compilation import Compiled, Settings

    threads = options.threads
    return Compiled(
        model, options.registry, options.limits, threads=threads,
        file=options.file, updates=options.updates,
        settings=Settings(
            options.precision, newer_opsets=options.newer_opsets,
            caches=tuple(sorted((options.caches or {}).items())), sizes=tuple(sorted(options.sizes)),
        ),
        evaluating=contextlib.nullcontext if threads is None else functools.partial(ThreadLimit, threads),
    )  # fmt: skip


ENGINES: dict[str, Callable[[Model, Options], Engine]] = {"compiled": _compiled, "reference": _reference}


@functools.cache
def why_not_compiled() -> str:
    """Return why models cannot be compiled here; an empty text where they can.

    >>> why_not_compiled()
    ''
    """
    # ruff: ignore[import-outside-top-level]  as above
    from sabir.compilation.backends.cpu.backend import this_machine

    try:
        this_machine().require_loading()
    except UnsupportedError as error:
        return str(error)
    return ""


@functools.cache
def _fastest() -> str:
    """Return what "auto" means here: the compiled engine, or the reference where code cannot be compiled.

    The latter is a warning, once, but in a browser, where no code can be compiled anyway.
    """
    problem = why_not_compiled()
    if problem and sys.platform != "emscripten":
        from sabir.evaluation import warn  # ruff: ignore[import-outside-top-level]  most sessions never warn

        warn(
            f"the interpreter runs all models, which is much slower than compiled code: {problem};"
            ' `engine="reference"` chooses it without this warning'
        )
    return "reference" if problem else "compiled"


def engine_named(name: str) -> tuple[str, Callable[[Model, Options], Engine]]:
    """Return the name of an engine and its constructor; "auto" is the fastest. Raises UnsupportedError."""
    chosen = _fastest() if name == "auto" else name
    if chosen not in tuple(ENGINES):
        raise UnsupportedError(f"there is no engine {name!r}; the engines are auto, {', '.join(ENGINES)}")
    return chosen, ENGINES[chosen]
