"""The inference of one call: an operator's `infer` behaviour, applied to types and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import ACCIDENTS, InferenceError
from sabir.inference._contents import folded
from sabir.inference._operands import check_sizes, check_types, operand_types
from sabir.inference._places import attribute_of
from sabir.inference._subgraphs import TypedSubgraph
from sabir.schema import Call, as_results, check_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.base import Location
    from sabir.inference._subgraphs import Apply
    from sabir.ir import Node, Type, Value
    from sabir.schema import Condition, Scope, Version


def infer_call(
    version: Version,
    node: Node,
    operands: Sequence[Value | None],
    types: Sequence[Type | None],
    scope: Scope,
    where: Location,
    apply: Apply,
    *,
    conditions: list[Condition],
) -> tuple[Type | None, ...]:
    """Return the types of a node's outputs, None where they are unknown.

    `operands` are the inputs of the node, None for those that the call of its function leaves out; `types`
    are their types. `apply` infers a subgraph. What the call is valid under is added to `conditions`.
    Raises SchemaError and InferenceError for an invalid call.
    """
    binding = version.binding("infer")
    binding.signature.check_arity(operands, len(node.outputs))
    inputs = operand_types(version, operands, types)
    arguments = binding.arguments(
        scope.arguments(node.attributes),
        lambda g: TypedSubgraph(
            apply, g, scope.scope_of(g), where.at("attribute", name=attribute_of(node, g))
        ),
    )
    if inputs is None:
        return (None,) * len(node.outputs)
    check_types(version, inputs)
    call = Call(tuple(v is not None for v in node.outputs), version.since, conditions)
    try:
        results = as_results(binding(inputs, arguments, call))
    except ACCIDENTS as error:
        raise InferenceError(f"{version} on ({', '.join(map(str, inputs))}): {error}") from error
    check_sizes(results)
    check_results(version, inputs, results)
    return folded(version, node, inputs, results, scope, call)
