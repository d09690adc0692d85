"""Progress bars of tqdm, in terminals and notebooks."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from sabir.base import UnsupportedError, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Shown: TypeAlias = bool | Literal["auto"] | None


def progress_bars(shown: Shown) -> Any:
    """Return the class of progress bars, that of `tqdm.auto`, or None where none are to be shown.

    "auto" shows them if there is somebody to look, in a notebook or a terminal, and tqdm is installed. Raises
    UnsupportedError if `shown` is True and tqdm is missing, and for other values.

    >>> progress_bars(False) is None
    True
    """
    if shown is None or shown is False:
        return None
    if shown is not True and shown != "auto":
        raise UnsupportedError(f"progress is True, False, 'auto' or a function; got {quote(shown)}")
    if shown == "auto" and not _is_interactive():
        return None
    try:
        from tqdm.auto import tqdm  # ruff: ignore[import-outside-top-level]  an extra that bars alone need
    except ImportError:
        if shown == "auto":
            return None
        message = "progress=True shows bars with tqdm; install it with `pip install 'sabir[progress]'`"
        raise UnsupportedError(message) from None
    return tqdm


@contextlib.contextmanager
def counting_bar(
    progress: Callable[[int, int], None] | Shown, action: str, unit: str
) -> Generator[Callable[[int, int], None] | None]:
    """Yield the function that long work calls with what is done and the total, 0 if that is not known.

    That is `progress` itself where it is a function; else one that moves a bar, which is closed at the end.
    Raises UnsupportedError as `progress_bars` does.

    >>> with counting_bar(None, 'compiling', 'kernel') as report:
    ...     print(report)
    None
    """
    if callable(progress):
        yield progress
        return
    bars = progress_bars(progress)
    if bars is None:
        yield None
        return
    with bars(desc=action, unit=unit, total=None) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total or None
            bar.update(done - bar.n)

        yield report  # ruff: ignore[fallible-context-manager]  the bar of work that fails stays as it is
        bar.total = bar.n  # work may end before what was announced
        bar.refresh()


def _is_interactive() -> bool:
    """Return whether standard error is a terminal, or this is the kernel of a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())  # pyright: ignore[reportUnnecessaryComparison] - a program without a console has none


__all__ = ["Shown", "counting_bar", "progress_bars"]
