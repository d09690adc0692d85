"""Whole texts: a model or a function with its header, a graph or a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import UnsupportedError, run_within
from sabir.ir import Function, Graph, Model
from sabir.proto import FunctionProto, ModelProto
from sabir.syntax._imports import list_imports
from sabir.syntax._names import Names
from sabir.syntax._words import quoted
from sabir.syntax._write_graph import GraphWriter, common_empty
from sabir.syntax._write_notes import Fields, above, note_text, residue_fields
from sabir.syntax._write_tensors import pairs_text

if TYPE_CHECKING:
    from sabir.base import Limits
    from sabir.ir import DeviceConfiguration, Node, Residue, TrainingInfo, Value

_STEP = "   "


def text(model: Model | Graph | Function | Node, *, limits: Limits | None = None) -> str:
    """Return the text of a model, a graph, a function or a node; `parse` and its kin read it back.

    Everything that the standard syntax has words for is written in those words, the rest in notes, which
    are comments to other readers where they stand in lines of their own. Missing and clashing names are made
    unique in the text alone. Raises LimitError for graphs that are nested too deep, and WireError for a
    constant made in memory whose data does not fit its type; data in other files is referred to, not read.
    """
    try:
        return run_within(limits, _written, model)
    except RecursionError:
        raise UnsupportedError("graphs or types are nested too deep for this Python to write") from None


def _written(model: Model | Graph | Function | Node) -> str:
    if isinstance(model, Model):
        return _model(model)
    if isinstance(model, Function):
        return _function(model)
    writer = GraphWriter(Names(model))
    if isinstance(model, Graph):
        return writer.graph(model) + "\n"
    return above(writer.node_note(model), "") + writer.node(model) + "\n"


def _model(model: Model) -> str:
    imports, residue = list_imports(model.opsets, model.residue, ModelProto)
    residue = _told_in_header(residue, _MODEL_TEXTS)
    entries = [f"ir_version: {model.ir_version}", f"opset_import: {_opsets(imports)}"]
    entries += _texts(
        model.residue,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
    )
    if model.version or _is_empty(model.residue, "model_version"):
        entries.append(f"model_version: {model.version}")
    entries += _texts(model.residue, doc_string=model.doc)
    if model.metadata:
        entries.append(f"metadata_props: {pairs_text(model.metadata)}")
    note = note_text(
        Fields(configuration=[_device(d) for d in model.devices], residue=residue_fields(residue))
    )
    names = Names(model.graph, outside=model.training_reads())
    parts = [above(note, "") + _header(entries) + GraphWriter(names).graph(model.graph)]
    parts += [_training(training, names) for training in model.training]
    parts += map(_function, model.functions)
    return "\n".join(parts).rstrip("\n") + "\n"


def _function(function: Function) -> str:
    imports, residue = list_imports(function.opsets, function.residue, FunctionProto)
    residue = _told_in_header(residue, _FUNCTION_TEXTS)
    entries = _texts(function.residue, domain=function.domain, overload=function.overload)
    entries.append(f"opset_import: {_opsets(imports)}")
    entries += _texts(function.residue, doc_string=function.doc)
    common = sorted(common_empty(function.graph))
    note = note_text(
        Fields(metadata_props=function.metadata, residue=residue_fields(residue), empty_in_nodes=common)
    )
    return above(note, "") + _header(entries) + GraphWriter(Names(function.graph)).body(function) + "\n"


def _training(training: TrainingInfo, names: Names) -> str:
    """Return one way to train a model: its graphs, and what their outputs become."""
    writer = GraphWriter(names)
    parts: list[str] = []
    for key, graph in (("initialization", training.initialization), ("algorithm", training.algorithm)):
        if graph is not None:
            names.add(graph)
            parts.append(f"{key}: {writer.graph(graph, _STEP)}")
    for key, pairs in (
        ("initialization_binding", training.initialization_binding),
        ("update_binding", training.update_binding),
    ):
        if pairs:
            parts.append(f"{key}: {_bindings(pairs, names)}")
    told = f",\n{_STEP}".join(parts)
    note = note_text(Fields(residue=residue_fields(training.residue)))
    return (
        f"{above(note, '')}@training {{\n{_STEP}{told}\n}}\n"
        if told
        else f"{above(note, '')}@training {{}}\n"
    )


def _bindings(pairs: list[tuple[Value, Value]], names: Names) -> str:
    return pairs_text([(names.label(key), names.label(value)) for key, value in pairs])


def _device(device: DeviceConfiguration) -> Fields:
    return Fields(name=device.name, num_devices=device.num_devices, device=device.devices, wire=device.wire)


# headers

_MODEL_TEXTS = frozenset({"producer_name", "producer_version", "domain", "doc_string", "model_version"})
_FUNCTION_TEXTS = frozenset({"domain", "overload", "doc_string"})


def _told_in_header(residue: Residue | None, keys: frozenset[str]) -> Residue | None:
    """Return a residue without the empty fields that a header shows."""
    if residue is None:
        return None
    return residue._replace(empty=tuple(f for f in residue.empty if f not in keys))


def _texts(residue: Residue | None, **texts: str) -> list[str]:
    return [f"{key}: {quoted(value)}" for key, value in texts.items() if value or _is_empty(residue, key)]


def _is_empty(residue: Residue | None, field: str) -> bool:
    return residue is not None and field in residue.empty


def _header(entries: list[str]) -> str:
    listed = ",\n   ".join(entries)
    return f"<\n   {listed}\n>\n"


def _opsets(imports: list[tuple[str, int]]) -> str:
    return f"[{', '.join(f'{quoted(domain)} : {version}' for domain, version in imports)}]"
