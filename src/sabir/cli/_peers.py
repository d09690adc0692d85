"""onnxruntime beside Sabir in `sabir bench`, where it is installed; nothing else of Sabir needs it."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError
from sabir.serial import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from sabir.ir import Model

PEERS = ("onnxruntime",)
_WARNINGS_OFF = 3


def peer(name: str, model: Model, threads: int) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a function that runs a model with another program, on a number of threads.

    Raises UnsupportedError where the program is not installed, or refuses the model.
    """
    try:
        library: Any = importlib.import_module(name)
    except ImportError as error:
        raise UnsupportedError(
            f"{name} cannot be imported ({error}); install it: python -m pip install {name}"
        ) from None
    options = library.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = _WARNINGS_OFF
    with _refusals(name):
        session = library.InferenceSession(dumps(model), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]

    def run(feeds: Mapping[str, Any]) -> dict[str, Any]:
        with _refusals(name):
            return dict(zip(names, session.run(None, dict(feeds)), strict=True))

    return run


@contextlib.contextmanager
def _refusals(name: str) -> Generator[None]:
    """Turn the errors of another program, which are of its own classes, into ours."""
    try:
        yield
    except Exception as error:  # its classes have no common base
        first = str(error).strip().partition("\n")[0]
        raise UnsupportedError(f"{name} cannot run this model: {first or type(error).__name__}") from error
