"""The cycle collector, paused while many objects are created that all stay alive."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


@contextlib.contextmanager
def without_collector() -> Generator[None, None, None]:
    """Pause the cycle collector: a new graph contains no garbage, and each pass would visit all of it."""
    on = gc.isenabled()
    try:
        gc.disable()  # inside `try`, so that no interrupt leaves it disabled
        yield
    finally:
        if on:
            gc.enable()
