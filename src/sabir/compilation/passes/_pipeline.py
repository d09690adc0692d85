"""The passes over tensor expressions, between lowering and fusion, in the order in which they run.

Each pass rewrites the expressions of a plan and keeps what they compute. Its module's docstring shows an
example before and after. `sabir compile --show NAME` writes the expressions after a pass, and
`sabir compile --without NAME` leaves a pass out, to find the one that is at fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import check_time
from sabir.compilation.passes._channels_last import channels_last
from sabir.compilation.passes._common_products import common_products
from sabir.compilation.passes._repeats import repeats_as_views
from sabir.compilation.passes._shared_heads import shared_heads
from sabir.loops import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.loops import Expression


class Pass(NamedTuple):
    """A rewrite of the expressions of a plan, by slot, that keeps what they compute."""

    name: str
    run: Callable[[Mapping[int, Expression]], dict[int, Expression]]


PIPELINE = (
    Pass("common-products", common_products),
    Pass("shared-heads", shared_heads),
    Pass("channels-last", channels_last),
    Pass("repeats-as-views", repeats_as_views),
)
PASSES = tuple(each.name for each in PIPELINE)
"""The names of the passes, in order."""


def run_pipeline(
    expressions: Mapping[int, Expression],
    without: frozenset[str] = frozenset(),
    until: str | None = None,
    *,
    verify: bool = False,
) -> dict[int, Expression]:
    """Return the expressions after all passes but those named in `without`, or up to the pass `until`.

    With `verify` the expressions are verified before the first pass and after each; then InvalidExpression
    is raised with the name of the pass at fault.
    """
    found = dict(expressions)
    _verified(found, "lowering", verify=verify)
    for each in PIPELINE:
        if each.name not in without:
            check_time()
            found = each.run(found)
            _verified(found, f"the pass {each.name}", verify=verify)
        if each.name == until:
            break
    return found


def _verified(expressions: Mapping[int, Expression], after: str, *, verify: bool) -> None:
    if not verify:
        return
    try:
        walk.verify(expressions.values())
    except walk.InvalidExpression as error:
        raise walk.InvalidExpression(f"after {after}: {error}") from error
