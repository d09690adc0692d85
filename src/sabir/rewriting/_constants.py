"""Constants as nodes, and the data of values that are constant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Attribute, Node, SparseTensor, Tensor, canonical_domain

if TYPE_CHECKING:
    from collections.abc import Collection

    from sabir.ir import Constant, Value


def constant_node(value: Value, data: Constant) -> Node:
    """Return a detached node `Constant` that computes a value.

    >>> node = constant_node(sabir.ir.Value('c'), sabir.ir.ArrayTensor(np.zeros(3, np.float32)))
    >>> node.op, list(node.attributes)
    ('Constant', ['value'])
    """
    name = "sparse_value" if isinstance(data, SparseTensor) else "value"
    return Node("Constant", (), [value], {name: Attribute.of(name, data)})


def constant_of(value: Value, state: Collection[Value] = ()) -> Tensor | None:
    """Return the data of an initializer or of a node `Constant`, None for other values.

    An initializer that a feed may replace, or that is in `state`, which training changes, is no constant.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }''')
    >>> [constant_of(value) is not None for value in model.graph[0].inputs]
    [False, True]
    """
    node = value.node
    if node is None:
        data = None if value.is_input or value in state else value.constant
    elif node.op == "Constant" and not canonical_domain(node.domain):
        data = node.attributes["value"].value if "value" in node.attributes else None
    else:
        data = None
    return data if isinstance(data, Tensor) else None
