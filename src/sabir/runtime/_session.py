"""The session: what a program that runs models holds on to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from sabir.base import Limits, SabirError, UnsupportedError
from sabir.evaluation import ModelPort, Runner
from sabir.ir import Model, drop_constants
from sabir.opsets import STANDARD
from sabir.runtime._threads import ThreadLimit
from sabir.serial import load

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from sabir.schema import Registry

ENGINES = ("auto", "reference")


class Session:
    """A snapshot of a model, ready to run: edits of the model after this do not reach it.

    `engine` is `"auto"`, the fastest there is for the model, or `"reference"`, the interpreter on numpy.
    `threads` bounds the threads that one run may use; None leaves that to the libraries beneath. With
    `strict` a value that contradicts its declared type or shape ends the run; else it is a SabirWarning, once
    a place. With `newer_opsets` an operator set newer than any known one counts as the newest, where it is
    refused otherwise. `registry` has the operators, those of the standard by default. `limits` bounds what
    one run may spend.

    Several threads may run a session at a time. Dropping it frees the constants at once.
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str] | bytes,
        *,
        engine: Literal["auto", "reference"] = "auto",
        threads: int | None = None,
        strict: bool = False,
        newer_opsets: bool = False,
        registry: Registry = STANDARD,
        limits: Limits | None = None,
    ) -> None:
        """Load and bind a model; raises WireError, SchemaError or UnsupportedError, each saying where."""
        if engine not in ENGINES:
            raise UnsupportedError(f"there is no engine {engine!r}; the engines are {', '.join(ENGINES)}")
        if threads is not None and threads < 1:
            raise UnsupportedError(f"threads must be 1 or more, or None; got {threads}")
        self.engine: str = "reference"
        self.threads = threads
        loaded = model if isinstance(model, Model) else load(model)
        try:
            self._runner = Runner(loaded, registry, limits, strict=strict, newer_opsets=newer_opsets)
        except SabirError as error:
            if loaded.path is None:
                raise
            raise error.within(str(loaded.path)) from error
        self._model = repr(loaded)
        if loaded is not model:
            for graph in loaded.graphs():  # nobody else has it
                drop_constants(graph)

    @property
    def inputs(self) -> tuple[ModelPort, ...]:
        """The inputs: name, type, shape, and whether one may be left out."""
        return self._runner.input_ports

    @property
    def outputs(self) -> tuple[ModelPort, ...]:
        """The outputs: name, type and shape."""
        return self._runner.output_ports

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default) by name, in arrays that are the caller's own.

        Raises FeedError for feeds that do not match the inputs, EvaluationError where a node fails.
        """
        if self.threads is None:
            return self._runner.run(feeds, outputs)
        limit = ThreadLimit(self.threads)
        try:
            return self._runner.run(feeds, outputs)
        finally:
            limit.release()

    def __repr__(self) -> str:
        return f"<Session of {self._model}, engine {self.engine!r}>"
