"""Loading of the driver and of the entrance by a thread, while the model is planned."""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import TYPE_CHECKING

from sabir.base import UnsupportedError
from sabir.compilation.native._cores import usable_cores
from sabir.compilation.native._entrance import ENTRANCE_TEXT, entrance
from sabir.compilation.native._objects import Library
from sabir.compilation.native._team import load_driver, text_of_driver

if TYPE_CHECKING:
    from sabir.compilation.native._target import Target


@functools.cache
def load_ahead(target: Target) -> None:
    """Start a thread that loads the driver and the entrance of fast runs, once in a process.

    LLVM compiles them without the lock of the interpreter. Errors are ignored: the run that needs the
    functions reports them.
    """
    if usable_cores() > 1:
        with contextlib.suppress(RuntimeError):  # the system refuses threads
            threading.Thread(target=_load, args=(target,), name="sabir-loader").start()


def _load(target: Target) -> None:
    with contextlib.suppress(UnsupportedError):
        # both in one call: between two calls, the compilation of all kernels could take the lock
        library = Library.load([text_of_driver(target), ENTRANCE_TEXT], target)
        load_driver(target)
        entrance(target)
        del library  # the functions keep their code alive
