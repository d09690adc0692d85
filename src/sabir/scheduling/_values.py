"""The values of a graph, as programs number them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sabir.ir import Type


class ValueInfo(NamedTuple):
    """A value of a graph: its name, its declared type and its slot.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> program = schedule(model, STANDARD).program
    >>> print(program.inputs[0].name, program.inputs[0].type)
    x float[N]
    """

    name: str
    type: Type | None
    slot: int
