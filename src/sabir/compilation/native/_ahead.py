"""What the first run of a process needs beside its kernels, loaded by a thread while the model is planned."""

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
    """Start to load the driver and the entrance of fast runs for this processor, once in a process.

    LLVM compiles them without the lock of the interpreter. The run that needs them reports what cannot be
    loaded.
    """
    if usable_cores() > 1:
        with contextlib.suppress(RuntimeError):  # the system refuses threads
            threading.Thread(target=_load, args=(target,), name="sabir-loader").start()


def _load(target: Target) -> None:
    with contextlib.suppress(UnsupportedError):
        # at once: else the second would wait until all kernels are compiled
        library = Library.load([text_of_driver(target), ENTRANCE_TEXT], target)
        load_driver(target)
        entrance(target)
        del library  # the others hold what they need
