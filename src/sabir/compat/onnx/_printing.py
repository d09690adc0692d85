"""The short text form of messages that `helper.printable_graph` writes."""

from __future__ import annotations

import warnings
from typing import Any, cast

from sabir.compat.onnx import _attributes
from sabir.compat.onnx.onnx_ml_pb2 import AttributeProto, GraphProto, TensorProto

_INDENT = "  "


def printable_dim(dim: Any) -> str:
    """Return the size or the name of a dimension, `?` for an unknown one."""
    which = dim.WhichOneof("value")
    return "?" if which is None else str(getattr(dim, which))


def printable_type(t: Any) -> str:
    """Return the type of a tensor, as `FLOAT, Nx3`; other types by the name of their kind."""
    which = t.WhichOneof("value")
    if which != "tensor_type":
        return "" if which is None else f"Unknown type {which}"
    text = TensorProto.DataType.Name(t.tensor_type.elem_type)
    if not t.tensor_type.HasField("shape"):
        return text
    dims = "x".join(map(printable_dim, t.tensor_type.shape.dim))
    return f"{text}, {dims or 'scalar'}"


def printable_value_info(v: Any) -> str:
    """Return the name of a value with its type, as `%x[FLOAT, Nx3]`."""
    text = f"%{v.name}"
    return f"{text}[{printable_type(v.type)}]" if v.type else text


def printable_tensor_proto(t: Any) -> str:
    """Return the name of a tensor with its type, as `%w[FLOAT, 3x4]`."""
    dims = "x".join(map(str, t.dims))
    return f"%{t.name}[{TensorProto.DataType.Name(t.data_type)}, {dims or 'scalar'}]"


def printable_attribute(attr: Any, subgraphs: bool = False) -> str | tuple[str, list[Any]]:
    """Return an attribute as `axis = 1`; with `subgraphs` also its graphs."""
    value, graphs = _value(attr)
    text = f"{attr.name} = {value}"
    return (text, graphs) if subgraphs else text


def printable_node(node: Any, prefix: str = "", subgraphs: bool = False) -> str | tuple[str, list[Any]]:
    """Return a node as `%y = Relu(%x)`; with `subgraphs` also its graphs."""
    shown = [_shown_attribute(attribute) for attribute in node.attribute]
    graphs = [graph for _, inner in shown for graph in inner]
    attributes = f"[{', '.join(sorted(text for text, _ in shown))}]" if shown else ""
    results = ", ".join(f"%{name}" for name in node.output)
    operands = ", ".join(f"%{name}" for name in node.input)
    head = f"{results} = " if results else ""
    text = f"{prefix}{head}{node.op_type}{attributes}({operands})"
    return (text, graphs) if subgraphs else text


def printable_graph(graph: Any, prefix: str = "") -> str:
    """Return a graph and the graphs within it; `printer.to_text` writes the text syntax instead."""
    if not prefix:
        warnings.warn(
            "printable_graph is deprecated since onnx 1.19; call onnx.printer.to_text",
            DeprecationWarning,
            stacklevel=2,
        )
    return _graph(graph, prefix)


def _graph(graph: Any, prefix: str) -> str:
    inner = prefix + _INDENT
    lines = [*_header(graph, prefix), f"{prefix}) {{" if graph.input or graph.initializer else "{"]
    if not (graph.input or graph.initializer):
        lines = [f"{prefix}graph {graph.name} {{"]
    graphs: list[Any] = []
    for node in graph.node:
        text, found = printable_node(node, inner, subgraphs=True)
        lines.append(str(text))
        graphs.extend(found)
    results = ", ".join(f"%{output.name}" for output in graph.output)
    lines += [f"{inner}return{f' {results}' if results else ''}", f"{prefix}}}"]
    lines.extend(f"\n{_graph(found, '')}" for found in graphs)
    return "\n".join(lines)


def _header(graph: Any, prefix: str) -> list[str]:
    """Return the lines before the nodes, without the last bracket."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    names = {value.name for value in graph.input}
    required = [printable_value_info(v) for v in graph.input if v.name not in tensors]
    optional = [printable_value_info(v) for v in graph.input if v.name in tensors]
    constants = [printable_tensor_proto(t) for name, t in tensors.items() if name not in names]
    lines = [f"{prefix}graph {graph.name} ("]
    for title, shown in (
        ("", required),
        ("optional inputs with matching initializers", optional),
        ("initializers", constants),
    ):
        if title and shown:
            lines.append(f"{prefix}) {title} (")
        lines.extend(f"{prefix}{_INDENT}{text}" for text in shown)
    return lines


def _shown_attribute(attribute: Any) -> tuple[str, list[Any]]:
    value, graphs = _value(attribute)
    return f"{attribute.name} = {value}", graphs


def _value(attribute: Any) -> tuple[str, list[Any]]:
    """Return the value of an attribute as text, and the graphs in it."""
    if attribute.ref_attr_name:
        return f"@{attribute.ref_attr_name}", []
    if attribute.type == AttributeProto.UNDEFINED:
        return "<Unknown>", []
    value = _attributes.value_of(attribute)
    if attribute.type in {AttributeProto.TENSORS, AttributeProto.SPARSE_TENSORS}:
        return f"[{_item(value[0])}, ...]" if value else "[]", []
    if not isinstance(value, list):
        return _item(value), [value] if isinstance(value, GraphProto) else []
    items = cast("list[Any]", value)
    graphs = [item for item in items if isinstance(item, GraphProto)]
    inside = ", ".join(map(_item, items))
    spaced = attribute.type in {AttributeProto.GRAPHS, AttributeProto.TYPE_PROTOS}
    return f"[ {inside} ]" if spaced else f"[{inside}]", graphs


def _item(value: Any) -> str:
    match value:
        case bytes():
            return repr(value.decode("utf-8", errors="replace"))
        case float():
            return f"{value:.9g}"
        case int():
            return str(value)
        case _:
            pass
    name = value.DESCRIPTOR.name
    if name == "GraphProto":
        return f"<graph {value.name}>"
    return {
        "TensorProto": "<Tensor>",
        "SparseTensorProto": "<Sparse Tensor>",
    }.get(name) or f"<Type Proto {value}>"
