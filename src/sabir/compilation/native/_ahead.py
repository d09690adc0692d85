"""What the first run of a process needs beside its kernels, loaded by a thread while the model is planned."""

from __future__ import annotations

import contextlib
import functools
import threading

from sabir.base import UnsupportedError
from sabir.compilation.native._cores import usable_cores
from sabir.compilation.native._entrance import ENTRANCE_TEXT, entrance
from sabir.compilation.native._objects import Library
from sabir.compilation.native._team import load_driver, text_of_driver


@functools.cache
def load_ahead() -> None:
    """Start to load the driver and the entrance of fast runs, once in a process.

    LLVM compiles them without the lock of the interpreter. The run that needs them reports what cannot be
    loaded.
    """
    if usable_cores() > 1:
        with contextlib.suppress(RuntimeError):  # the system refuses threads
            threading.Thread(target=_load, name="sabir-loader").start()


def _load() -> None:
    with contextlib.suppress(UnsupportedError):
        # at once: else the second would wait until all kernels are compiled
        library = Library.load([text_of_driver(), ENTRANCE_TEXT])
        load_driver()
        entrance()
        del library  # the others hold what they need
