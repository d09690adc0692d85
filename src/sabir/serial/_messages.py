"""Model objects to and from protobuf messages: of Sabir's classes, or of those of the `onnx` package.

Both packages have a class for each message of the standard, and neither accepts the other's objects. A
message crosses as bytes, so nothing here imports `onnx`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.message import DecodeError, EncodeError

from sabir.base import UnsupportedError, WireError, run_with_limits
from sabir.files import absolute
from sabir.ir import (
    Attribute,
    Function,
    Graph,
    MapType,
    Model,
    NameScope,
    Node,
    OpaqueType,
    OperatorSet,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    Tensor,
    TensorType,
    Type,
)
from sabir.proto import (
    AttributeProto,
    Bulk,
    BulkWriter,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetProto,
    SparseTensorProto,
    TensorProto,
    TypeProto,
    read_message,
)
from sabir.serial._encoding import Encoded, always
from sabir.serial._external import Folder
from sabir.serial._graph_reader import GraphReader
from sabir.serial._loading import loads, path_of
from sabir.serial._nesting import reporting_depth
from sabir.serial._reader import read_function, read_operator_set_message
from sabir.serial._tensors import TensorWriter
from sabir.serial._types import TypeReader, write_type
from sabir.serial._writer import ModelWriter

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from sabir.base import Limits

Item: TypeAlias = Model | OperatorSet | Graph | Function | Node | Attribute | Tensor | SparseTensor | Type

_LARGEST_MESSAGE = 2**31 - 1
_ITEMS: tuple[type, ...] = (
    Model, OperatorSet, Graph, Function, Node, Attribute, Tensor, SparseTensor,
    TensorType, SparseTensorType, SequenceType, OptionalType, MapType, OpaqueType,
)  # fmt: skip


def to_proto(item: Item, kind: Any = None, *, limits: Limits | None = None) -> Any:
    """Return a model, or a part of one, as a protobuf message.

    A Model becomes a `ModelProto`, an OperatorSet an `OperatorSetProto`, a Graph a `GraphProto`, a Function a
    `FunctionProto`, a Node a `NodeProto`, an Attribute an `AttributeProto`, a Tensor a `TensorProto`, a
    SparseTensor a `SparseTensorProto` and a type a `TypeProto`. `kind` is the class of the message, by
    default Sabir's: `to_proto(model, onnx.ModelProto)` returns a message of the `onnx` package.

    All tensor data is copied into the message; while that happens it is in memory twice. External data stays
    in its files, and the message refers to them. A graph, a node or an attribute alone keeps the names of the
    values that it captures.

    Raises TypeError for another object, and for a `kind` that is the class of another message; WireError for
    what no message can contain, such as more than 2 GiB.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> sabir.to_proto(model).graph.node[0].op_type
    'Relu'
    """
    return run_with_limits(limits, _to_proto, item, kind)


def from_proto(
    message: Any, *, folder: str | os.PathLike[str] | None = None, limits: Limits | None = None
) -> Any:
    """Return the model, or the part of one, in a protobuf message of Sabir's classes or of `onnx`.

    The messages are those that `to_proto` returns; the result has the type that it takes. All data is copied,
    so later changes to the message have no effect. `folder` contains the external data, if there is any.

    Raises TypeError for an object that is not a message, UnsupportedError for another message, WireError for
    one that is no valid model, or that protobuf cannot serialise as it has more than 2 GiB, and LimitError as
    `load` does.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> message = sabir.to_proto(model)
    >>> sabir.from_proto(message).graph[0].op
    'Relu'
    """
    return run_with_limits(limits, _from_proto, message, folder)


# to messages


def _to_proto(item: Item, kind: Any) -> Any:
    if not isinstance(item, _ITEMS):
        raise TypeError(
            "a model, graph, function, node, attribute, tensor or type becomes a message, and this is a "
            f"{type(item).__name__}"
        )
    bulk = BulkWriter()
    with reporting_depth():
        message = _message(item, TensorWriter(bulk, keeps_external=always))
    wanted: Any = message.__class__ if kind is None else kind
    name = message.DESCRIPTOR.full_name
    if _full_name(wanted) != name:
        found = _full_name(wanted) or repr(wanted)
        raise TypeError(f"a {type(item).__name__} becomes an {name}, and `kind` is {found}")
    encoded = Encoded(bulk.chunks(message), bulk.size)
    if bulk.size > _LARGEST_MESSAGE:
        raise WireError(
            f"an {name} has at most 2 GiB, and this one has {bulk.size:,} bytes; {_KEEP_EXTERNAL}"
        )
    try:
        return wanted.FromString(encoded.joined())
    except (DecodeError, MemoryError) as error:
        problem = "not enough memory" if isinstance(error, MemoryError) else "graphs or types nested too deep"
        raise WireError(f"the {name} cannot be built: {problem}") from error


_KEEP_EXTERNAL = "keep its data in external files"


def _message(item: Item, tensors: TensorWriter) -> Any:
    writer = ModelWriter(tensors)
    match item:
        case Model():
            return writer.model(item)
        case OperatorSet():
            return writer.operator_set(item)
        case Graph():
            return writer.graph(item)
        case Function():
            return writer.function(item)
        case Node():
            return writer.node(item)
        case Attribute():
            return _filled(AttributeProto(), lambda proto: writer.attribute(item, proto))
        case Tensor():
            return _filled(TensorProto(), lambda proto: tensors(item, proto))
        case SparseTensor():
            return _filled(SparseTensorProto(), lambda proto: writer.sparse(item, proto))
        case _:
            return write_type(item)


def _filled(proto: Any, fill: Callable[[Any], None]) -> Any:
    fill(proto)
    return proto


# from messages


def _read_graph(reader: GraphReader, proto: Any) -> Graph:
    return reader.graph(proto, NameScope())


def _read_function(reader: GraphReader, proto: Any) -> Function:
    return read_function(proto, reader)


def _read_node(reader: GraphReader, proto: Any) -> Node:
    return reader.node(proto, NameScope())


def _read_type(_: GraphReader, proto: Any) -> Type | None:
    return TypeReader().read(proto)


# our class of each message, and what reads it
_READERS: dict[str, tuple[Any, Callable[[GraphReader, Any], Any]]] = {
    "GraphProto": (GraphProto, _read_graph),
    "FunctionProto": (FunctionProto, _read_function),
    "NodeProto": (NodeProto, _read_node),
    "AttributeProto": (AttributeProto, GraphReader.attribute),
    "TensorProto": (TensorProto, GraphReader.tensor),
    "SparseTensorProto": (SparseTensorProto, GraphReader.sparse),
    "TypeProto": (TypeProto, _read_type),
}
_PACKAGE = f"{ModelProto.DESCRIPTOR.file.package}."


def _from_proto(message: Any, folder: str | os.PathLike[str] | None) -> Any:
    name = _full_name(message)
    if name is None or isinstance(message, type):
        raise TypeError(
            f"from_proto takes a protobuf message, not {message!r:.100}; `load` takes a path, `loads` bytes"
        )
    if name == ModelProto.DESCRIPTOR.full_name:
        return loads(_serialised(message, name), format="protobuf", folder=folder)
    place = Folder(None if folder is None else absolute(path_of(folder)))
    if name == OperatorSetProto.DESCRIPTOR.full_name:
        set_message = read_message(OperatorSetProto, _serialised(message, name))
        return read_operator_set_message(set_message, Bulk(), place)
    known = _READERS.get(name.removeprefix(_PACKAGE)) if name.startswith(_PACKAGE) else None
    if known is None:
        readable = ", ".join(["ModelProto", "OperatorSetProto", *_READERS])
        raise UnsupportedError(f"from_proto cannot read an {name} alone; it reads {readable}")
    message_class, read = known
    proto = read_message(message_class, _serialised(message, name))
    return read(GraphReader(proto, Bulk(), place), proto)


def _serialised(message: Any, name: str) -> bytes:
    try:
        return message.SerializeToString()
    except (EncodeError, ValueError, MemoryError) as error:
        raise WireError(f"protobuf cannot serialise this {name}: {error}; {_KEEP_EXTERNAL}") from error


def _full_name(message: Any) -> str | None:
    """Return the full name of a message or a message class; None for another object."""
    return getattr(getattr(message, "DESCRIPTOR", None), "full_name", None)
