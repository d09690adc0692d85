"""Constants as nodes, and the data of values that are constant."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from sabir.base import ACCIDENTS, SabirError
from sabir.ir import ArrayTensor, Attribute, Node, SparseTensor, Tensor, canonical_domain
from sabir.schema import Call, as_results

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sabir.ir import Array, Constant, Value
    from sabir.schema import Scope, Version


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
    else:
        data = data_of_node(node)
    return data if isinstance(data, Tensor) else None


def data_of_node(node: Node) -> Tensor | None:
    """Return the data of a node `Constant`, None where it has texts or a sparse tensor, and for other nodes.

    >>> data_of_node(sabir.ir.Node('Constant', (), [sabir.ir.Value('c')], {'value_int': 3})).array()
    array(3)
    """
    if node.op != "Constant" or canonical_domain(node.domain):
        return None
    for name, attribute in node.attributes.items():
        value = attribute.value
        if attribute.ref:
            return None
        match name:
            case "value":
                return value if isinstance(value, Tensor) else None
            case "value_int" | "value_ints":
                return ArrayTensor(np.asarray(value, np.int64))
            case "value_float" | "value_floats":
                return ArrayTensor(np.asarray(value, np.float32))
            case _:
                continue
    return None


def evaluated(
    node: Node, version: Version, scope: Scope, operands: Sequence[Tensor | None]
) -> Sequence[Array] | None:
    """Return the results of a call on constants; None where it is invalid, or computes other than numbers.

    `version` is the operator version that the node calls in the scope.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g () => (float[2] y) <float[2] w = {1, 2}> { y = Neg (w) }''')
    >>> scope, (node,) = sabir.schema.Scope.of(model, sabir.opsets.STANDARD), model.graph
    >>> evaluated(node, scope.callee(node), scope, [node.inputs[0].constant])
    [array([-1., -2.], dtype=float32)]
    """
    call = Call(tuple(v is not None for v in node.outputs), version.since)
    binding = version.binding("evaluate")
    try:
        binding.signature.check_arity(node.inputs, len(node.outputs))
        arguments = binding.arguments(scope.arguments(node.attributes))
        arrays = [None if t is None else t.array() for t in operands]
        with np.errstate(all="ignore"):
            results = as_results(binding(arrays, arguments, call))
    except (SabirError, *ACCIDENTS):
        return None  # a run reports what is wrong with these values
    if len(results) < len(node.outputs) or not all(isinstance(x, (np.ndarray, np.generic)) for x in results):
        return None
    found = [np.asarray(cast("Array", x)) for x in results]
    return None if any(x.dtype.kind in "OSU" for x in found) else found
