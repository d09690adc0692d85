"""The tensor expressions of a prepared model: lowered, and rewritten by all passes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sabir.compilation.faults import is_strict
from sabir.compilation.frontend.lowering import lower
from sabir.compilation.passes import run_pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.passes import Pass
    from sabir.compilation.settings import Settings


def lowered(
    prepared: Prepared, sizes: Mapping[str, int], passes: Sequence[Pass], settings: Settings
) -> Lowered:
    """Return the tensor expressions of a prepared model after all passes that `settings` do not skip."""
    return rewritten(lower(prepared, sizes), passes, settings)


def rewritten(found: Lowered, passes: Sequence[Pass], settings: Settings) -> Lowered:
    """Return lowered expressions after all passes that `settings` do not skip."""
    found.rewrite(partial(run_pipeline, passes=passes, without=settings.without, verify=is_strict()))
    return found


__all__ = ["lower", "lowered", "rewritten"]
