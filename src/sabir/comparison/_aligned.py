"""Which values of two models correspond to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Limits, run_with_limits, without_collector
from sabir.comparison._alignment import Alignment
from sabir.comparison._identity import Identities, Numbers
from sabir.ir import Model, Node, check_is_model
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Value
    from sabir.schema import Registry


def aligned_results(
    old: Model, new: Model, *, registry: Registry = STANDARD, limits: Limits | None = None
) -> list[tuple[Value, Value]]:
    """Return the results of nodes of two main graphs that correspond, in topological order of the old graph.

    Results of one name correspond if most such pairs have the same operator, or that of a node before it, as
    after optimization or quantization: the result of fused nodes has the name of the last one. Otherwise
    names are numbers that two exporters gave, and say nothing. The others are aligned by structure, as
    `compare` aligns nodes. A value that is only read through QuantizeLinear and DequantizeLinear is
    represented by what its readers get. A value without a partner is left out. Raises as `compare`.

    >>> old, new = (sabir.parse(f'<ir_version: 10, opset_import: ["" : 21]> '
    ... f'g (float[N] x) => (float[N] y) {{ {n} = Neg (x)  y = Relu ({n}) }}') for n in 'ab')
    >>> [(here.name, there.name) for here, there in aligned_results(old, new)]
    [('a', 'b'), ('y', 'y')]
    """
    for model in (old, new):
        check_is_model(model)
    return run_with_limits(limits, _aligned, old, new, registry)


def _aligned(old: Model, new: Model, registry: Registry) -> list[tuple[Value, Value]]:
    results = _results(old)
    pairs = _by_name(results, _results(new))
    same = sum(_operator(there.node) in _operators(here) for here, there in pairs)
    found = dict(pairs) if 2 * same > len(pairs) else {}
    taken = set(found.values())
    for here, there in _by_structure(old, new, registry):
        if here not in found and there not in taken:
            found[here] = there
    pairs = [(_as_read(here), _as_read(found[here])) for here in results if here in found]
    return list(dict.fromkeys(pairs))


def _results(model: Model) -> list[Value]:
    nodes = model.graph.sorted_nodes()
    return [value for node in nodes for value in node.outputs if value is not None and value.name]


def _as_read(value: Value) -> Value:
    """Return what the readers of a value get: its quantized and restored form, if all of them read that."""
    restored = _only_result(value, "QuantizeLinear")
    restored = None if restored is None else _only_result(restored, "DequantizeLinear")
    return value if restored is None else restored


def _only_result(value: Value, op: str) -> Value | None:
    """Return the result of the first reader if all readers call this operator on the value."""
    readers = [use.user for use in value.uses]
    if not readers or not all(isinstance(r, Node) and r.op == op and r.inputs[0] is value for r in readers):
        return None
    return next((r.outputs[0] for r in readers if isinstance(r, Node)), None)


def _operators(value: Value) -> set[object]:
    """Return the operators of the node of a value and of those before it, which it may be fused with."""
    before = [v.node for v in value.node.inputs if v is not None] if value.node is not None else []
    return {_operator(node) for node in (value.node, *before) if node is not None}


def _operator(node: Node | None) -> tuple[str, str] | None:
    return None if node is None else (node.domain, node.op)


def _by_structure(old: Model, new: Model, registry: Registry) -> list[tuple[Value, Value]]:
    with without_collector():  # tables of all nodes
        numbers = Numbers()
        alignment = Alignment(Identities(old, numbers, registry), Identities(new, numbers, registry))
        inputs = _by_name(old.graph.inputs, new.graph.inputs)
        alignment.align(old.graph, new.graph, inputs, _by_name(old.graph.outputs, new.graph.outputs))
        return [(here, there) for there, here in alignment.old_values.items() if there.node is not None]


def _by_name(old: Iterable[Value | None], new: Iterable[Value | None]) -> list[tuple[Value, Value]]:
    named = {value.name: value for value in new if value is not None}
    return [(value, named[value.name]) for value in old if value is not None and value.name in named]
