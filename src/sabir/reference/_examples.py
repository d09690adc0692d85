"""Examples of operators as models of one node, with what the model is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.elements import element
from sabir.ir import Attribute, Builder, MapType, SequenceType, minimum_ir, tensor_type
from sabir.opsets.families.shapes import contents
from sabir.syntax import parse_graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Model, Type, Value
    from sabir.schema import Example, Operator, Version

# the default domain of a model whose node belongs to another one
_OPSET = 21


def example_attributes(version: Version, example: Example) -> dict[str, Any]:
    """Return the attributes of an example, as the version of its operator types them.

    A subgraph is written in the text syntax, and is parsed.

    >>> from sabir.schema import Example
    >>> example_attributes(find_version('Elu:6'), Example(6, [1.0], alpha=0.5))['alpha'].value
    0.5
    """
    kinds = {a.name: a.type for a in version.attributes}
    return {
        name: _attribute(name, kinds.get(name), value)
        for name, value in example.attributes.items()
        if value is not None
    }


def _attribute(name: str, kind: str | None, value: Any) -> Attribute:
    if kind == "graph":
        return Attribute(name, "graph", parse_graph(value))
    if kind == "float":
        return Attribute(name, "float", float(np.float32(value)))
    if kind == "floats":
        return Attribute(name, "floats", tuple(float(np.float32(v)) for v in value))
    if kind in {"ints", "strings"}:
        return Attribute(name, cast("Any", kind), tuple(value))
    return Attribute.of(name, value)


def type_of_value(value: Any, *, known: bool = False) -> Any:
    """Return the type of an array, of a list (a sequence) or of a dict (a map), which has at least one item.

    With `known`, the type of an array has its contents too.

    >>> str(type_of_value([np.zeros((2, 3), np.float32)]))
    'seq(float[2,3])'
    """
    if isinstance(value, list):
        return SequenceType(_joined([type_of_value(item) for item in cast("list[Any]", value)]))
    if isinstance(value, dict):
        key, item = next(iter(cast("dict[Any, Any]", value).items()))
        return MapType(element(np.asarray(key).dtype), type_of_value(item))
    array = np.asarray(value)
    kind = tensor_type(array.dtype, array.shape)
    return kind.with_known(contents.of_array(array)) if known else kind


def _joined(types: Sequence[Type]) -> Any:
    """Return the type that covers the items of a sequence."""
    joined: Any = types[0] if types else None
    for kind in types[1:]:
        joined = joined.join(kind)
    return joined


def example_inputs(
    builder: Builder, example: Example, *, known: bool = False
) -> tuple[list[Value | None], dict[str, Any]]:
    """Add the inputs of an example to a graph as `i0`, `i1`, …; return its operands, and the feeds by name.

    An operand is None where the example leaves the input out. With `known`, the types have the contents.

    >>> example = find_version('Relu').operator.all_examples()[0]
    >>> operands, feeds = example_inputs(sabir.Builder(21), example)
    >>> list(feeds)
    ['i0']
    """
    operands: list[Value | None] = []
    feeds: dict[str, Any] = {}
    for place, value in enumerate(example.inputs):
        declared = example.types[place] if example.types else None
        if value is None and declared is None:
            operands.append(None)
            continue
        several = isinstance(value, (list, dict))
        kind = declared or type_of_value(value, known=known and not several)
        operands.append(builder.input(f"i{place}", kind))
        feeds[f"i{place}"] = value if value is None or several else np.asarray(value)
    return operands, feeds


def example_call(operator: Operator, example: Example) -> tuple[Builder, tuple[Value, ...], dict[str, Any]]:
    """Return a builder with a node that makes the call of an example, the results, and the feeds.

    >>> operator = find_version('Relu').operator
    >>> builder, results, feeds = example_call(operator, operator.all_examples()[0])
    >>> len(results), list(feeds)
    (1, ['i0'])
    """
    version = operator.at(example.opset)
    opset = _OPSET if operator.domain else example.opset
    # a builder refuses operators that were removed
    builder = Builder(opset, opsets={operator.domain: example.opset}, check=not version.removed)
    operands, feeds = example_inputs(builder, example)
    made: Any = builder.op(
        operator.name,
        *operands,
        outputs=example.outputs,
        domain=operator.domain,
        **example_attributes(version, example),
    )
    return builder, cast("Any", made if isinstance(made, tuple) else (made,)), feeds


def example_model(operator: Operator, example: Example) -> tuple[Model, dict[str, Any]]:
    """Return a model of one node that makes the call of an example, and its feeds by name.

    The inputs are `i0`, `i1`, …, the outputs `o0`, `o1`, ….

    >>> operator = find_version('Relu').operator
    >>> model, feeds = example_model(operator, operator.all_examples()[0])
    >>> [node.op for node in model.graph]
    ['Relu']
    """
    builder, results, feeds = example_call(operator, example)
    for place, value in enumerate(results):
        builder.output(value, f"o{place}")
    return builder.model(ir_version=minimum_ir(max(example.opset, _OPSET))), feeds
