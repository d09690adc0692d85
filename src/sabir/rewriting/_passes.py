"""Passes: rewrites of a whole model that report whether they changed it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sabir.ir import Model


class Pass(Protocol):
    """A rewrite of a whole model.

    >>> one: Pass = DeadNodes()
    >>> one.name
    'dead nodes'
    """

    @property
    def name(self) -> str:
        """The name by which it is reported."""
        ...

    def run(self, model: Model) -> bool:
        """Rewrite a model, and return whether anything changed."""
        ...


def run_passes(
    model: Model, passes: Iterable[Pass], *, after: Callable[[Model], None] | None = None
) -> tuple[str, ...]:
    """Run passes one after the other, and return the names of those that changed the model.

    `after` is called on the model after each pass; tests pass `ir.verify`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> dead = model.graph.append(sabir.ir.Node('Neg', [model.graph.inputs[0]]))
    >>> run_passes(model, [DeadNodes()])
    ('dead nodes',)
    """
    changed: list[str] = []
    for one in passes:
        if one.run(model):
            changed.append(one.name)
        if after is not None:
            after(model)
    return tuple(changed)
