"""Whole texts: a model or a function with its header, a graph or a node."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from sabir.base import SabirError, UnsupportedError, run_with_limits
from sabir.ir import Function, Graph, Model, Node
from sabir.proto import FunctionProto, ModelProto
from sabir.syntax._imports import list_imports
from sabir.syntax._spelled_names import SpelledNames
from sabir.syntax._words import INDENT, quoted
from sabir.syntax._write_graph import GraphWriter, common_empty
from sabir.syntax._write_notes import NoteFields, above, note_text, residue_fields
from sabir.syntax._write_tensors import pairs_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from sabir.base import Limits
    from sabir.ir import DeviceConfiguration, Residue, TrainingInfo, Value

Writable: TypeAlias = Model | Graph | Function | Node

LISTED_ELEMENTS = 16
"""How many elements of a tensor, or items of a list, `print(model)` shows at most."""

_CHUNK = 1 << 16  # characters; smaller chunks are put together


def text(model: Writable, *, elide: int | None = None, limits: Limits | None = None) -> str:
    """Return the text of a model, a graph, a function or a node; `parse` and its kin read it back.

    Standard syntax is used wherever it suffices, and notes elsewhere, which are comments to other readers
    where they are on separate lines. Missing and clashing names are made unique in the text alone. With
    `elide`, a tensor or list of more elements is written as their number, `{... 9,408 elements}`, and no
    reader accepts the text.

    Raises LimitError for graphs that are nested too deep, WireError for a constant made in memory whose data
    does not fit its type, TypeError for another object; external data is referred to, not read.

    >>> print(text(parse_node('y = Relu(x)')), end='')
    y = Relu (x)
    """
    return run_with_limits(limits, lambda: "".join(_chunks(model, elide)))


def write_text(
    model: Writable, stream: TextIO, *, elide: int | None = None, limits: Limits | None = None
) -> None:
    """Write what `text` returns to a text stream, in chunks: the whole text is never in memory.

    >>> import sys
    >>> write_text(parse_node('y = Relu(x)'), sys.stdout)
    y = Relu (x)
    """
    run_with_limits(limits, lambda: stream.writelines(text_chunks(model, elide=elide)))


def text_chunks(model: Writable, *, elide: int | None = None) -> Iterator[str]:
    """Yield what `text` returns in chunks of some 64 Ki characters; raises as `text`, when it comes to it.

    >>> len(list(text_chunks(parse_node('y = Relu(x)'))))
    1
    """
    waiting: list[str] = []
    size = 0
    for chunk in _chunks(model, elide):
        waiting.append(chunk)
        size += len(chunk)
        if size >= _CHUNK:
            yield "".join(waiting)
            waiting, size = [], 0
    yield "".join(waiting)


def listing(model: Writable) -> str:
    """Return what `print(model)` shows: the text, in which large tensors and long lists are elided.

    Of an object that has no text, it is the `repr` with the reason.

    >>> print(listing(parse_node('y = Relu(x)')), end='')
    y = Relu (x)
    """
    try:
        return text(model, elide=LISTED_ELEMENTS).removesuffix("\n")
    except SabirError as error:
        return f"{model!r} (it has no text: {error})"


def _chunks(model: Writable, elide: int | None) -> Iterator[str]:
    try:
        yield from _written(model, elide)
    except RecursionError:
        raise UnsupportedError("graphs or types are nested too deep for this Python to write") from None


def _written(model: Writable, elide: int | None) -> Iterator[str]:
    match model:
        case Model():
            return _model(model, elide)
        case Function():
            return _function(model, elide)
        case Graph():
            return _graph(model, elide)
        case Node():
            return _node(model, elide)
        case _:
            raise TypeError(
                f"a model, a graph, a function or a node has a text, and this is a {type(model).__name__}"
            )


def _graph(graph: Graph, elide: int | None) -> Iterator[str]:
    yield from GraphWriter(SpelledNames(graph), elide).graph(graph)
    yield "\n"


def _node(node: Node, elide: int | None) -> Iterator[str]:
    writer = GraphWriter(SpelledNames(node), elide)
    yield above(writer.node_note(node), "")
    yield from writer.node(node)
    yield "\n"


def _model(model: Model, elide: int | None) -> Iterator[str]:
    imports, residue = list_imports(model.opsets, model.residue, ModelProto)
    residue = _without_empty(residue, _MODEL_TEXTS)
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
        NoteFields(configuration=[_device(d) for d in model.devices], residue=residue_fields(residue))
    )
    names = SpelledNames(model.graph, outside=model.training_reads())
    yield above(note, "") + _header(entries)
    yield from GraphWriter(names, elide).graph(model.graph)
    yield "\n"
    separator = ""
    for training in model.training:
        yield separator
        yield from _training(training, names, elide)
        separator = "\n"
    for function in model.functions:
        yield separator
        yield from _function(function, elide)
        separator = "\n"


def _function(function: Function, elide: int | None) -> Iterator[str]:
    imports, residue = list_imports(function.opsets, function.residue, FunctionProto)
    residue = _without_empty(residue, _FUNCTION_TEXTS)
    entries = _texts(function.residue, domain=function.domain, overload=function.overload)
    entries.append(f"opset_import: {_opsets(imports)}")
    entries += _texts(function.residue, doc_string=function.doc)
    common = sorted(common_empty(function.graph))
    note = note_text(
        NoteFields(metadata_props=function.metadata, residue=residue_fields(residue), empty_in_nodes=common)
    )
    yield above(note, "") + _header(entries)
    yield from GraphWriter(SpelledNames(function.graph), elide).body(function)
    yield "\n"


def _training(training: TrainingInfo, names: SpelledNames, elide: int | None) -> Iterator[str]:
    """Yield one way to train a model: its graphs, and the state that their outputs update."""
    note = note_text(NoteFields(residue=residue_fields(training.residue)))
    yield f"{above(note, '')}@training {{"
    first = before = f"\n{INDENT}"
    for part in _training_parts(training, names, elide):
        yield before
        yield from part
        before = f",\n{INDENT}"
    yield "}\n" if before is first else "\n}\n"


def _training_parts(
    training: TrainingInfo, names: SpelledNames, elide: int | None
) -> Iterator[Iterable[str]]:
    writer = GraphWriter(names, elide)
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


def _texts(residue: Residue | None, **texts: str) -> list[str]:
    return [f"{key}: {quoted(value)}" for key, value in texts.items() if value or _is_empty(residue, key)]


def _is_empty(residue: Residue | None, field: str) -> bool:
    return residue is not None and field in residue.empty


def _header(entries: list[str]) -> str:
    listed = ",\n   ".join(entries)
    return f"<\n   {listed}\n>\n"


def _opsets(imports: list[tuple[str, int]]) -> str:
    return f"[{', '.join(f'{quoted(domain)} : {version}' for domain, version in imports)}]"
