"""The cycle collector, held off while many objects are made that all live on."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextlib.contextmanager
def without_collector() -> Generator[None, None, None]:
    """Hold the cycle collector off: a graph is all links and no garbage, and each pass would visit it all."""
    on = gc.isenabled()
    try:
        gc.disable()  # inside, where an interrupt cannot come between it and its end
        yield
    finally:
        if on:
            gc.enable()
