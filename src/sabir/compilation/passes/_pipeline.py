"""Passes over tensor expressions, between lowering and fusion.

Each pass rewrites the expressions of a plan and preserves their values. Its module's docstring shows an
example before and after. A backend lists its passes, in order. `sabir compile --show NAME`
writes the expressions after a pass, and `sabir compile --without NAME` skips a pass, to find the faulty one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import check_time
from sabir.loops import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.loops import Expression


class Pass(NamedTuple):
    """A rewrite of the expressions of a plan, by slot, that preserves their values.

    It runs if any expression of the plan is one that it `looks_for`. A `required` pass replaces expressions
    for which the backend has no kernel, and cannot be skipped.
    """

    name: str
    run: Callable[[Mapping[int, Expression]], dict[int, Expression]]
    looks_for: Callable[[Expression], object]
    required: bool = False


def run_pipeline(
    expressions: Mapping[int, Expression],
    passes: Sequence[Pass],
    without: frozenset[str] = frozenset(),
    until: str | None = None,
    *,
    verify: bool = False,
) -> dict[int, Expression]:
    """Run the `passes` except those named in `without`, up to the pass `until`; return the expressions.

    With `verify` the expressions are verified before the first pass and after each; then InvalidExpression
    is raised with the name of the faulty pass.
    """
    found = dict(expressions)
    _verified(found, "lowering", verify=verify)
    parts = list(walk.postorder(found.values()))
    for each in passes:
        if each.name not in without and any(map(each.looks_for, parts)):
            check_time()
            before, found = found, each.run(found)
            _verified(found, f"the pass {each.name}", verify=verify)
            if any(found[slot] is not x for slot, x in before.items()):
                parts = list(walk.postorder(found.values()))
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
