"""The session: what a program that runs models holds on to."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Literal

from sabir.base import Limits, SabirError, UnsupportedError
from sabir.evaluate import Ports, Runner
from sabir.ir import Model
from sabir.serial import load

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

ENGINES = ("auto", "reference")


class Session:
    """A model ready to run.

    `engine` is `"auto"`, the fastest there is for the model, or `"reference"`, the interpreter on numpy.
    `threads` bounds the threads that one run may use; None leaves that to the libraries beneath. `limits`
    bounds what one run may spend.
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str] | bytes,
        *,
        engine: Literal["auto", "reference"] = "auto",
        threads: int | None = None,
        limits: Limits | None = None,
    ) -> None:
        """Load and bind a model; raises WireError, SchemaError or UnsupportedError, each saying where."""
        if engine not in ENGINES:
            raise UnsupportedError(f"there is no engine {engine!r}; the engines are {', '.join(ENGINES)}")
        if threads is not None and threads < 1:
            raise UnsupportedError(f"threads must be 1 or more, or None; got {threads}")
        self.model = model if isinstance(model, Model) else load(model)
        self.engine: str = "reference"
        self.threads = threads
        try:
            self._runner = Runner(self.model, limits=limits)
        except SabirError as error:
            if self.model.path is None:
                raise
            raise error.within(str(self.model.path)) from error

    @property
    def inputs(self) -> tuple[Ports, ...]:
        """The inputs: name, type, shape, and whether one may be left out."""
        return self._runner.input_ports

    @property
    def outputs(self) -> tuple[Ports, ...]:
        """The outputs: name, type and shape."""
        return self._runner.output_ports

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the named outputs (all by default) by name.

        Raises FeedError for feeds that do not match the inputs, EvaluationError where a node fails.
        """
        with _limited(self.threads):
            return self._runner.run(feeds, outputs)

    def __repr__(self) -> str:
        return f"<Session of {self.model!r}, engine {self.engine!r}>"


def _limited(threads: int | None) -> contextlib.AbstractContextManager[Any]:
    """Bound the threads of numpy's BLAS while a run lasts."""
    if threads is None:
        return contextlib.nullcontext()
    # ruff: ignore[import-outside-top-level]  20 ms that only this option needs
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs] - it has none

    return threadpool_limits(limits=threads)
