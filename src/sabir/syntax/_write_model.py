"""Whole texts: a model or a function with its header, a graph or a node."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from sabir.base import SabirError, UnsupportedError, run_with_limits
from sabir.ir import Function, Graph, Model, Node
from sabir.proto import FunctionProto, ModelProto
from sabir.syntax._detail import Detail, metadata_entries
from sabir.syntax._imports import list_imports
from sabir.syntax._spelled_names import SpelledNames
from sabir.syntax._words import INDENT, elision, quoted
from sabir.syntax._write_graph import GraphWriter, common_empty
from sabir.syntax._write_notes import NoteFields, above, beside, note_text, residue_fields
from sabir.syntax._write_tensors import pairs_text, quoted_or_cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from sabir.base import Limits
    from sabir.ir import DeviceConfiguration, Residue, TrainingInfo, Value

Writable: TypeAlias = Model | Graph | Function | Node

LISTED_ELEMENTS = 16
"""How many elements of a tensor, or items of a list, `print(model)` shows at most."""

_CHUNK = 1 << 16  # characters; smaller chunks are put together


def text(
    model: Writable,
    *,
    elide: int | None = None,
    metadata: bool | None = None,
    limits: Limits | None = None,
) -> str:
    """Return the text of a model, a graph, a function or a node; `parse` and its kin read it back.

    Standard syntax is used wherever it suffices, and notes elsewhere, which are comments to other readers
    where they are on separate lines. Missing and clashing names are made unique in the text alone. With
    `elide`, a tensor or list of more elements is written as their number, `{... 9,408 elements}`, a long text
    is cut, the metadata of graphs, functions, nodes, values and tensors is left out, and no reader accepts
    the text. `metadata` decides alone about metadata and long texts: True writes all, False leaves the
    metadata out.

    Raises LimitError for graphs that are nested too deep, WireError for a constant made in memory whose data
    does not fit its type, TypeError for another object; external data is referred to, not read.

    >>> print(text(parse_node('y = Relu(x)')), end='')
    y = Relu (x)
    """
    return run_with_limits(limits, lambda: "".join(_chunks(model, Detail.asked(elide, metadata=metadata))))


def write_text(
    model: Writable,
    stream: TextIO,
    *,
    elide: int | None = None,
    metadata: bool | None = None,
    limits: Limits | None = None,
) -> None:
    """Write what `text` returns to a text stream, in chunks: the whole text is never in memory.

    >>> import sys
    >>> write_text(parse_node('y = Relu(x)'), sys.stdout)
    y = Relu (x)
    """
    run_with_limits(limits, lambda: stream.writelines(text_chunks(model, elide=elide, metadata=metadata)))


def text_chunks(model: Writable, *, elide: int | None = None, metadata: bool | None = None) -> Iterator[str]:
    """Yield what `text` returns in chunks of some 64 Ki characters; raises as `text`, when it comes to it.

    >>> len(list(text_chunks(parse_node('y = Relu(x)'))))
    1
    """
    waiting: list[str] = []
    size = 0
    for chunk in _chunks(model, Detail.asked(elide, metadata=metadata)):
        waiting.append(chunk)
        size += len(chunk)
        if size >= _CHUNK:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)


def listing(model: Writable) -> str:
    """Return what `print(model)` shows: the text without large tensors, long lists and texts, and metadata.

    Of an object that has no text, it is the `repr` with the reason.

    >>> print(listing(parse_node('y = Relu(x)')), end='')
    y = Relu (x)
    """
    try:
        return text(model, elide=LISTED_ELEMENTS).removesuffix("\n")
    except SabirError as error:
        return f"{model!r} (it has no text: {error})"


def _left_out(graphs: Iterable[Graph], detail: Detail) -> str:
    """Return a line about the metadata that a listing leaves out, which no reader accepts."""
    if detail.metadata or detail.elements is None:
        return ""
    return above(_left_out_note(metadata_entries(graphs)), "")


def _left_out_note(count: int) -> str:
    return f"@{{{elision(count, 'entries of metadata')}}}" if count else ""


def _chunks(model: Writable, detail: Detail) -> Iterator[str]:
    try:
        yield from _written(model, detail)
    except RecursionError:
        raise UnsupportedError("graphs or types are nested too deep for this Python to write") from None


def _written(model: Writable, detail: Detail) -> Iterator[str]:
    match model:
        case Model():
            return _model(model, detail)
        case Function():
            return _function(model, detail)
        case Graph():
            return _graph(model, detail)
        case Node():
            return _node(model, detail)
        case _:
            raise TypeError(
                f"a model, a graph, a function or a node has a text, and this is a {type(model).__name__}"
            )


def _graph(graph: Graph, detail: Detail) -> Iterator[str]:
    yield _left_out([graph], detail)
    yield from GraphWriter(SpelledNames(graph), detail).graph(graph)
    yield "\n"


def _node(node: Node, detail: Detail) -> Iterator[str]:
    writer = GraphWriter(SpelledNames(node), detail)
    if not detail.metadata and detail.elements is not None:
        yield beside(_left_out_note(len(node.metadata or ()) + metadata_entries(node.graphs)))
    yield above(writer.node_note(node), "")
    yield from writer.node(node)
    yield "\n"


def _model(model: Model, detail: Detail) -> Iterator[str]:
    imports, residue = list_imports(model.opsets, model.residue, ModelProto)
    residue = _without_empty(residue, _MODEL_TEXTS)
    entries = [f"ir_version: {model.ir_version}", f"opset_import: {_opsets(imports)}"]
    entries += _texts(
        model.residue,
        detail,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
    )
    if model.version or _is_empty(model.residue, "model_version"):
        entries.append(f"model_version: {model.version}")
    entries += _texts(model.residue, detail, doc_string=model.doc)
    if model.metadata:
        entries.append(f"metadata_props: {pairs_text(model.metadata, detail)}")
    note = note_text(
        NoteFields(configuration=[_device(d) for d in model.devices], residue=residue_fields(residue))
    )
    names = SpelledNames(model.graph, outside=model.training_reads())
    yield _left_out(model.graphs(), detail)
    yield above(note, "") + _header(entries)
    yield from GraphWriter(names, detail).graph(model.graph)
    yield "\n"
    separator = ""
    for training in model.training:
        yield separator
        yield from _training(training, names, detail)
        separator = "\n"
    for function in model.functions:
        yield separator
        yield from _function_text(function, detail)
        separator = "\n"


def _function(function: Function, detail: Detail) -> Iterator[str]:
    yield _left_out([function.graph], detail)
    yield from _function_text(function, detail)


def _function_text(function: Function, detail: Detail) -> Iterator[str]:
    imports, residue = list_imports(function.opsets, function.residue, FunctionProto)
    residue = _without_empty(residue, _FUNCTION_TEXTS)
    entries = _texts(function.residue, detail, domain=function.domain, overload=function.overload)
    entries.append(f"opset_import: {_opsets(imports)}")
    entries += _texts(function.residue, detail, doc_string=function.doc)
    common = sorted(common_empty(function.graph))
    note = note_text(
        NoteFields(
            metadata_props=detail.entries(function.metadata),
            residue=residue_fields(residue),
            empty_in_nodes=common,
        )
    )
    yield above(note, "") + _header(entries)
    yield from GraphWriter(SpelledNames(function.graph), detail).body(function)
    yield "\n"


def _training(training: TrainingInfo, names: SpelledNames, detail: Detail) -> Iterator[str]:
    """Yield one way to train a model: its graphs, and the state that their outputs update."""
    note = note_text(NoteFields(residue=residue_fields(training.residue)))
    yield f"{above(note, '')}@training {{"
    first = before = f"\n{INDENT}"
    for part in _training_parts(training, names, detail):
        yield before
        yield from part
        before = f",\n{INDENT}"
    yield "}\n" if before is first else "\n}\n"


def _training_parts(training: TrainingInfo, names: SpelledNames, detail: Detail) -> Iterator[Iterable[str]]:
    writer = GraphWriter(names, detail)
    for key, graph in (("initialization", training.initialization), ("algorithm", training.algorithm)):
        if graph is not None:
            names.add(graph)
            yield chain((f"{key}: ",), writer.graph(graph, INDENT))
    for key, pairs in (
        ("initialization_binding", training.initialization_binding),
        ("update_binding", training.update_binding),
    ):
        if pairs:
            yield (f"{key}: {_bindings(pairs, names)}",)


def _bindings(pairs: list[tuple[Value, Value]], names: SpelledNames) -> str:
    return pairs_text([(names.label(key), names.label(value)) for key, value in pairs])


def _device(device: DeviceConfiguration) -> NoteFields:
    return NoteFields(
        name=device.name, num_devices=device.num_devices, device=device.devices, wire=device.wire
    )


# headers

_MODEL_TEXTS = frozenset({"producer_name", "producer_version", "domain", "doc_string", "model_version"})
_FUNCTION_TEXTS = frozenset({"domain", "overload", "doc_string"})


def _without_empty(residue: Residue | None, keys: frozenset[str]) -> Residue | None:
    """Return a residue without the empty fields that a header shows."""
    if residue is None:
        return None
    return residue._replace(empty=tuple(f for f in residue.empty if f not in keys))


def _texts(residue: Residue | None, detail: Detail, **texts: str) -> list[str]:
    return [
        f"{key}: {quoted_or_cut(value, detail)}"
        for key, value in texts.items()
        if value or _is_empty(residue, key)
    ]


def _is_empty(residue: Residue | None, field: str) -> bool:
    return residue is not None and field in residue.empty


def _header(entries: list[str]) -> str:
    listed = ",\n   ".join(entries)
    return f"<\n   {listed}\n>\n"


def _opsets(imports: list[tuple[str, int]]) -> str:
    return f"[{', '.join(f'{quoted(domain)} : {version}' for domain, version in imports)}]"
