"""Whole texts: a model or a function with its header, a graph or a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Function, Graph, Model
from sabir.text._names import Names
from sabir.text._words import quoted
from sabir.text._write_graph import GraphWriter
from sabir.text._write_tensors import pairs_text

if TYPE_CHECKING:
    from sabir.ir import Node


def text(model: Model | Graph | Function | Node) -> str:
    """Return the text of a model, a graph, a function or a node; `parse` and its kin read it back.

    Everything that `onnx.parser` has words for is written in those words. Missing and clashing names are
    made unique in the text alone. Raises WireError for a constant whose data does not fit its type and
    shape; data in other files is referred to, not read.
    """
    if isinstance(model, Model):
        return _model(model)
    if isinstance(model, Function):
        return _function(model)
    if isinstance(model, Graph):
        return GraphWriter(Names(model)).graph(model) + "\n"
    return GraphWriter(Names(model)).node(model) + "\n"


def _model(model: Model) -> str:
    entries = [f"ir_version: {model.ir_version}", f"opset_import: {_opsets(model.opsets)}"]
    texts = {
        "producer_name": model.producer_name,
        "producer_version": model.producer_version,
        "domain": model.domain,
    }
    entries += [f"{key}: {quoted(value)}" for key, value in texts.items() if value]
    if model.version:
        entries.append(f"model_version: {model.version}")
    if model.doc:
        entries.append(f"doc_string: {quoted(model.doc)}")
    if model.metadata:
        entries.append(f"metadata_props: {pairs_text(model.metadata)}")
    graph = GraphWriter(Names(model.graph)).graph(model.graph)
    return "\n".join([_header(entries) + graph, *map(_function, model.functions)]).rstrip("\n") + "\n"


def _function(function: Function) -> str:
    entries = [f"domain: {quoted(function.domain)}"]
    if function.overload:
        entries.append(f"overload: {quoted(function.overload)}")
    entries.append(f"opset_import: {_opsets(function.opsets)}")
    if function.doc:
        entries.append(f"doc_string: {quoted(function.doc)}")
    return _header(entries) + GraphWriter(Names(function.graph)).body(function) + "\n"


def _header(entries: list[str]) -> str:
    listed = ",\n   ".join(entries)
    return f"<\n   {listed}\n>\n"


def _opsets(opsets: dict[str, int]) -> str:
    return f"[{', '.join(f'{quoted(domain)} : {version}' for domain, version in opsets.items())}]"
