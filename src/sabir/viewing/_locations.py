"""From the location of a finding or a change to the object of the page that it concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sabir.base import Location, NotFoundError
from sabir.ir import resolve

if TYPE_CHECKING:
    from sabir.ir import Model

_Kind = TypeVar("_Kind")


def nearest(model: Model, location: Location, *kinds: type[_Kind]) -> _Kind | None:
    """Return the innermost object of these classes on the path to a location; None where there is none.

    >>> from sabir.ir import Node
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> location = sabir.base.Location().at('graph').at('node', index=0).at('output', index=0)
    >>> nearest(model, location, Node).op
    'Relu'
    """
    for stop in range(len(location.steps), 0, -1):
        try:
            found = resolve(model, Location(location.steps[:stop]))
        except NotFoundError:  # a part that only a call of a function has
            continue
        if isinstance(found, kinds):
            return found
    return None
