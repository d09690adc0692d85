"""Values that value_info of a graph describes more than once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.ir import Graph, Value


def described_twice(graph: Graph, where: Location) -> Iterator[tuple[Value, Value, Location]]:
    """Yield each repeated entry of value_info, the value of the first entry, and the location.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.base import Location
    >>> list(described_twice(model.graph, Location().at('graph')))
    []
    """
    if not graph.orphan_value_info:
        return
    first = {v.name: v for v in graph.defined() if v.value_info_index is not None}
    for value in graph.orphan_value_info:
        known = first.setdefault(value.name, value)
        if known is not value:
            yield value, known, where.at("value_info", index=value.value_info_index, name=value.name)
