"""Functions that make messages and read them: nodes, graphs, models, tensors, types, attributes."""

from __future__ import annotations

import numbers
from itertools import starmap
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.message import Message

import sabir
from sabir.compat.onnx import _attributes, _tensors
from sabir.compat.onnx._mapping import TENSOR_TYPE_MAP
from sabir.compat.onnx._printing import (
    printable_attribute,
    printable_dim,
    printable_graph,
    printable_node,
    printable_tensor_proto,
    printable_type,
    printable_value_info,
)
from sabir.compat.onnx.onnx_ml_pb2 import (
    IR_VERSION,
    AttributeProto,
    FunctionProto,
    GraphProto,
    MapProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
    OptionalProto,
    SequenceProto,
    SparseTensorProto,
    TensorProto,
    TrainingInfoProto,
    TypeProto,
    ValueInfoProto,
)
from sabir.elements import find_element

if TYPE_CHECKING:
    from collections.abc import KeysView, Sequence

    import numpy as np

Shape: TypeAlias = "Sequence[str | int | None] | None"
VersionRowType: TypeAlias = tuple[str, int, int, int] | tuple[str, int, int, int, int]
VersionTableType: TypeAlias = list[VersionRowType]
VersionMapType: TypeAlias = dict[tuple[str, int], int]
AssignmentBindingType: TypeAlias = list[tuple[str, str]]

_DEFAULT_DOMAIN = "ai.onnx"
_OLDEST_IR = 3
_NEWEST_OPSET = max(release.opsets[""] for release in sabir.releases())


# versions


def _version_table() -> VersionTableType:
    """Return name, IR version, and opsets of ai.onnx, ai.onnx.ml and ai.onnx.training of each release."""
    rows: VersionTableType = []
    for release in sabir.releases():
        base = (release.name, release.ir_version, release.opsets[""], release.opsets["ai.onnx.ml"])
        training = release.opsets.get("ai.onnx.training")
        rows.append(base if training is None else (*base, training))
    return rows


VERSION_TABLE: VersionTableType = _version_table()


def _ir_versions(table: VersionTableType) -> VersionMapType:
    """Return the IR version of the first release that had each version of each domain."""
    found: VersionMapType = {}
    for _, ir_version, opset, ml, *training in table:
        found.setdefault((_DEFAULT_DOMAIN, opset), ir_version)
        found.setdefault(("ai.onnx.preview", opset), ir_version)
        found.setdefault(("ai.onnx.ml", ml), ir_version)
        for version in training:
            found.setdefault(("ai.onnx.training", version), ir_version)
            found.setdefault(("ai.onnx.preview.training", version), ir_version)
    return found


OP_SET_ID_VERSION_MAP: VersionMapType = _ir_versions(VERSION_TABLE)


def find_min_ir_version_for(opsetidlist: Sequence[Any], ignore_unknown: bool = False) -> int:
    """Return the oldest IR version that models with these opset imports may have, at least 3.

    Raises ValueError for a version or a domain that no release has, unless `ignore_unknown`.
    """
    newest = _OLDEST_IR
    for imported in opsetidlist:
        key = (imported.domain or _DEFAULT_DOMAIN, imported.version)
        found = OP_SET_ID_VERSION_MAP.get(key)
        if found is None and not ignore_unknown:
            raise ValueError(
                f"no release of ONNX has version {key[1]} of the domain {key[0]!r}; pass ignore_unknown=True "
                "to leave it out"
            )
        newest = max(newest, found or _OLDEST_IR)
    return newest


def make_opsetid(domain: str, version: int) -> Any:
    """Return an OperatorSetIdProto: the import of a version of a domain."""
    return OperatorSetIdProto(domain=domain, version=version)


make_operatorsetid = make_opsetid


# nodes, graphs, models


def make_node(
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str | None = None,
    doc_string: str | None = None,
    domain: str | None = None,
    overload: str | None = None,
    **kwargs: Any,
) -> Any:
    """Return a NodeProto; the keywords are its attributes, as of `make_attribute`; None is no attribute."""
    given = {key: kwargs[key] for key in sorted(kwargs) if kwargs[key] is not None}
    return NodeProto(  # a field that is None stays unset
        op_type=op_type,
        domain=domain,
        overload=overload,
        name=name or None,
        input=inputs,
        output=outputs,
        attribute=starmap(make_attribute, given.items()),
        doc_string=doc_string or None,
    )


def make_graph(
    nodes: Sequence[Any],
    name: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    initializer: Sequence[Any] | None = None,
    doc_string: str | None = None,
    value_info: Sequence[Any] | None = None,
    sparse_initializer: Sequence[Any] | None = None,
) -> Any:
    """Return a GraphProto of copies of the messages."""
    return GraphProto(
        name=name,
        input=inputs,
        output=outputs,
        node=nodes,
        initializer=initializer,
        sparse_initializer=sparse_initializer,
        value_info=value_info,
        doc_string=doc_string or None,
    )


def make_function(
    domain: str,
    fname: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[Any],
    opset_imports: Sequence[Any],
    attributes: Sequence[str] | None = None,
    attribute_protos: Sequence[Any] | None = None,
    doc_string: str | None = None,
    overload: str | None = None,
    value_info: Sequence[Any] | None = None,
) -> Any:
    """Return a FunctionProto of copies of the messages."""
    return FunctionProto(
        name=fname,
        domain=domain,
        overload=overload,
        opset_import=opset_imports,
        input=inputs,
        output=outputs,
        attribute=attributes,
        attribute_proto=attribute_protos,
        node=nodes,
        value_info=value_info,
        doc_string=doc_string or None,
    )


def make_model(graph: Any, **kwargs: Any) -> Any:
    """Return a ModelProto with the newest IR version.

    `opset_imports` are its imports, by default the newest version of the default domain; `functions` its
    functions; every other keyword is a field of ModelProto.
    """
    model = ModelProto()
    model.ir_version = IR_VERSION
    model.graph.CopyFrom(graph)
    imports = kwargs.pop("opset_imports", None)
    if imports is None:
        model.opset_import.add().version = _NEWEST_OPSET
    else:
        model.opset_import.extend(imports)
    model.functions.extend(kwargs.pop("functions", None) or ())
    for name, value in kwargs.items():
        setattr(model, name, value)
    return model


def make_model_gen_version(graph: Any, **kwargs: Any) -> Any:
    """Return what `make_model` does, with the oldest IR version that the imports may have."""
    if "opset_imports" in kwargs:
        kwargs["ir_version"] = find_min_ir_version_for(kwargs["opset_imports"])
    return make_model(graph, **kwargs)


def make_training_info(
    algorithm: Any,
    algorithm_bindings: AssignmentBindingType,
    initialization: Any | None,
    initialization_bindings: AssignmentBindingType | None,
) -> Any:
    """Return a TrainingInfoProto; a binding is a pair of an initializer's name and an output's name."""
    training = TrainingInfoProto()
    training.algorithm.CopyFrom(algorithm)
    for key, value in algorithm_bindings:
        training.update_binding.add(key=key, value=value)
    if initialization is not None:
        training.initialization.CopyFrom(initialization)
    for key, value in initialization_bindings or ():
        training.initialization_binding.add(key=key, value=value)
    return training


def set_metadata_props(proto: Any, dict_value: dict[str, str]) -> None:
    """Replace the metadata of a message by a dictionary."""
    del proto.metadata_props[:]
    for key, value in dict_value.items():
        proto.metadata_props.add(key=key, value=value)


def set_model_props(model: Any, dict_value: dict[str, str]) -> None:
    """Replace the metadata of a model by a dictionary."""
    set_metadata_props(model, dict_value)


def strip_doc_string(proto: Message) -> None:
    """Remove all doc strings of a message and of the messages in it."""
    message: Any = proto
    if not isinstance(message, Message):
        raise TypeError(f"doc strings are those of a message, and this is a {type(proto).__name__}")
    for field, value in proto.ListFields():
        if field.name == "doc_string":
            proto.ClearField("doc_string")
        elif field.type == field.TYPE_MESSAGE:
            for inner in [value] if isinstance(value, Message) else value:
                strip_doc_string(inner)


# tensors


def make_tensor(name: str, data_type: int, dims: Sequence[int], vals: Any, raw: bool = False) -> Any:
    """Return a TensorProto of numbers, strings or an array in the field of its element type.

    With `raw`, `vals` are the bytes of `raw_data`. Raises ValueError for a number of values that is not that
    of the shape, KeyError for an unknown element type, TypeError for an undefined one, and for raw strings.
    """
    return _tensors.make(name, data_type, dims, vals, raw=raw)


def make_sparse_tensor(values: Any, indices: Any, dims: Sequence[int]) -> Any:
    """Return a SparseTensorProto of the tensors of its values and of their places."""
    sparse = SparseTensorProto(dims=dims)
    sparse.values.CopyFrom(values)
    sparse.indices.CopyFrom(indices)
    return sparse


_SEQUENCE_FIELDS = {
    SequenceProto.TENSOR: "tensor_values",
    SequenceProto.SPARSE_TENSOR: "sparse_tensor_values",
    SequenceProto.SEQUENCE: "sequence_values",
    SequenceProto.MAP: "map_values",
    SequenceProto.OPTIONAL: "optional_values",
}
_OPTIONAL_FIELDS = {
    OptionalProto.TENSOR: "tensor_value",
    OptionalProto.SPARSE_TENSOR: "sparse_tensor_value",
    OptionalProto.SEQUENCE: "sequence_value",
    OptionalProto.MAP: "map_value",
    OptionalProto.OPTIONAL: "optional_value",
}
_INTEGER_KEYS = frozenset({
    TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64,
    TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64,
})  # fmt: skip


def make_sequence(name: str, elem_type: int, values: Sequence[Any]) -> Any:
    """Return a SequenceProto of messages; raises TypeError for an unknown `elem_type`."""
    sequence = SequenceProto(name=name, elem_type=elem_type)
    if elem_type == SequenceProto.UNDEFINED:
        return sequence
    field = _SEQUENCE_FIELDS.get(elem_type)
    if field is None:
        raise TypeError(f"a sequence has no elements of type {elem_type}; take one of SequenceProto.DataType")
    getattr(sequence, field).extend(values)
    return sequence


def make_map(name: str, key_type: int, keys: list[Any], values: Any) -> Any:
    """Return a MapProto of integer or text keys to the elements of a SequenceProto."""
    result = MapProto(name=name, key_type=key_type)
    if key_type == TensorProto.STRING:
        result.string_keys.extend(_tensors.encoded(key) for key in keys)
    elif key_type in _INTEGER_KEYS:
        result.keys.extend(keys)
    result.values.CopyFrom(values)
    return result


def make_optional(name: str, elem_type: int, value: Message | None) -> Any:
    """Return an OptionalProto of a message, or an empty one of `elem_type` UNDEFINED."""
    optional = OptionalProto(name=name, elem_type=elem_type)
    if elem_type == OptionalProto.UNDEFINED:
        return optional
    field = _OPTIONAL_FIELDS.get(elem_type)
    if field is None:
        raise TypeError(f"an optional has no element of type {elem_type}; take one of OptionalProto.DataType")
    if value is None:
        raise TypeError("an optional with an element type has a value; for an empty one take UNDEFINED")
    getattr(optional, field).CopyFrom(value)
    return optional


# attributes


def make_attribute(key: str, value: Any, doc_string: str | None = None, attr_type: int | None = None) -> Any:
    """Return an AttributeProto of a number, text, a message, or an iterable of one of these.

    `attr_type` is the type of an empty iterable, and confirms that of another value. Raises ValueError where
    the type does not follow from the value, TypeError for other values and for a contradicting `attr_type`.
    """
    return _attributes.make(key, value, doc_string, attr_type)


def make_attribute_ref(
    name: str, attr_type: int, doc_string: str | None = None, *, ref_attr_name: str | None = None
) -> Any:
    """Return an AttributeProto with the value of an attribute of the enclosing function.

    Raises ValueError for an empty name.
    """
    target = name if ref_attr_name is None else ref_attr_name
    if not target:
        raise ValueError("a reference names an attribute of the function, and this name is empty")
    attribute = AttributeProto(name=name, type=attr_type, ref_attr_name=target)
    if doc_string:
        attribute.doc_string = doc_string
    return attribute


def get_attribute_value(attr: Any) -> Any:
    """Return the value of an AttributeProto: text as bytes, lists as lists, tensors as messages.

    Raises ValueError for a reference and for an undefined type.
    """
    return _attributes.value_of(attr)


def get_node_attr_value(node: Any, attr_name: str) -> Any:
    """Return the value of an attribute of a node; raises ValueError unless exactly one has the name."""
    found = [attribute for attribute in node.attribute if attribute.name == attr_name]
    if len(found) != 1:
        raise ValueError(
            f"the {node.op_type} node {node.name!r} has {len(found)} attributes {attr_name!r}, and not one; "
            f"its attributes are {[attribute.name for attribute in node.attribute]}"
        )
    return get_attribute_value(found[0])


_attr_type_to_str = _attributes.type_name  # the name by which programs know it


# types and values


def make_empty_tensor_value_info(name: str) -> Any:
    """Return a ValueInfoProto with a name alone."""
    return ValueInfoProto(name=name)


def make_tensor_type_proto(elem_type: int, shape: Shape, shape_denotation: list[str] | None = None) -> Any:
    """Return the TypeProto of tensors; a dimension is a number, a name or None.

    A shape of None has an unknown rank. Raises ValueError for other dimensions.
    """
    kind = TypeProto()
    _fill_tensor_type(kind.tensor_type, elem_type, shape, shape_denotation)
    return kind


def make_sparse_tensor_type_proto(
    elem_type: int, shape: Shape, shape_denotation: list[str] | None = None
) -> Any:
    """Return the TypeProto of sparse tensors, as `make_tensor_type_proto` does."""
    kind = TypeProto()
    _fill_tensor_type(kind.sparse_tensor_type, elem_type, shape, shape_denotation)
    return kind


def make_sequence_type_proto(inner_type_proto: Any) -> Any:
    """Return the TypeProto of sequences of a type."""
    kind = TypeProto()
    kind.sequence_type.elem_type.CopyFrom(inner_type_proto)
    return kind


def make_optional_type_proto(inner_type_proto: Any) -> Any:
    """Return the TypeProto of optionals of a type."""
    kind = TypeProto()
    kind.optional_type.elem_type.CopyFrom(inner_type_proto)
    return kind


def make_map_type_proto(key_type: int, value_type: Any) -> Any:
    """Return the TypeProto of maps from an element type to a type."""
    kind = TypeProto()
    kind.map_type.key_type = key_type
    kind.map_type.value_type.CopyFrom(value_type)
    return kind


def make_value_info(name: str, type_proto: Any, doc_string: str = "") -> Any:
    """Return the ValueInfoProto of a value of a type; a type of None stays unset."""
    value = ValueInfoProto(name=name)
    if type_proto is not None:
        value.type.CopyFrom(type_proto)
    if doc_string:
        value.doc_string = doc_string
    return value


def make_tensor_value_info(
    name: str, elem_type: int, shape: Shape, doc_string: str = "", shape_denotation: list[str] | None = None
) -> Any:
    """Return the ValueInfoProto of a tensor, as `make_tensor_type_proto` takes its type."""
    return make_value_info(name, make_tensor_type_proto(elem_type, shape, shape_denotation), doc_string)


def make_sparse_tensor_value_info(
    name: str, elem_type: int, shape: Shape, doc_string: str = "", shape_denotation: list[str] | None = None
) -> Any:
    """Return the ValueInfoProto of a sparse tensor."""
    return make_value_info(
        name, make_sparse_tensor_type_proto(elem_type, shape, shape_denotation), doc_string
    )


def make_tensor_sequence_value_info(
    name: str,
    elem_type: int,
    shape: Shape,
    doc_string: str = "",
    elem_shape_denotation: list[str] | None = None,
) -> Any:
    """Return the ValueInfoProto of a sequence of tensors."""
    inner = make_tensor_type_proto(elem_type, shape, elem_shape_denotation)
    return make_value_info(name, make_sequence_type_proto(inner), doc_string)


def _fill_tensor_type(kind: Any, elem_type: int, shape: Shape, denotation: list[str] | None) -> None:
    kind.elem_type = elem_type
    if shape is None:
        return
    kind.shape.SetInParent()  # a scalar has a shape without dimensions
    if denotation and len(denotation) != len(shape):
        raise ValueError(
            f"there are {len(denotation)} denotations for {len(shape)} dimensions; give one for each"
        )
    for place, size in enumerate(shape):
        dim = kind.shape.dim.add()
        if isinstance(size, numbers.Integral):
            dim.dim_value = int(size)
        elif isinstance(size, str):
            dim.dim_param = size
        elif size is not None:
            raise ValueError(f"dimension {place} is {size!r}; give a number, a name or None")
        if denotation:
            dim.denotation = denotation[place]


# element types


def tensor_dtype_to_np_dtype(tensor_dtype: int) -> np.dtype[Any]:
    """Return the numpy dtype of the arrays of an element type; raises KeyError for an unknown one."""
    return TENSOR_TYPE_MAP[tensor_dtype].np_dtype


def tensor_dtype_to_storage_tensor_dtype(tensor_dtype: int) -> int:
    """Return the element type of the field that has the values; raises KeyError for an unknown one."""
    return TENSOR_TYPE_MAP[tensor_dtype].storage_dtype


def tensor_dtype_to_string(tensor_dtype: int) -> str:
    """Return the name of an element type, as `TensorProto.FLOAT`; raises KeyError for an unknown one."""
    return TENSOR_TYPE_MAP[tensor_dtype].name


def tensor_dtype_to_field(tensor_dtype: int) -> str:
    """Return the name of the field that has the values; raises KeyError for an unknown type."""
    found = find_element(tensor_dtype)
    if found is None:
        raise KeyError(tensor_dtype)
    return found.field


def np_dtype_to_tensor_dtype(np_dtype: np.dtype[Any]) -> int:
    """Return the element type of arrays of a numpy dtype; raises ValueError where there is none."""
    return _tensors.number_of(np_dtype)


def get_all_tensor_dtypes() -> KeysView[int]:
    """Return all element types."""
    return TENSOR_TYPE_MAP.keys()


def _sanitize_str(s: str | bytes) -> str:  # pyright: ignore[reportUnusedFunction]  programs import it
    """Return text for a line: decoded, and cut after 64 characters."""
    text = s.decode("utf-8", errors="ignore") if isinstance(s, bytes) else s
    longest = 64
    return text if len(text) <= longest else f"{text[:longest]}...<+len={len(text) - longest}>"


__all__ = [
    "OP_SET_ID_VERSION_MAP",
    "VERSION_TABLE",
    "AssignmentBindingType",
    "VersionMapType",
    "VersionRowType",
    "VersionTableType",
    "find_min_ir_version_for",
    "get_all_tensor_dtypes",
    "get_attribute_value",
    "get_node_attr_value",
    "make_attribute",
    "make_attribute_ref",
    "make_empty_tensor_value_info",
    "make_function",
    "make_graph",
    "make_map",
    "make_map_type_proto",
    "make_model",
    "make_model_gen_version",
    "make_node",
    "make_operatorsetid",
    "make_opsetid",
    "make_optional",
    "make_optional_type_proto",
    "make_sequence",
    "make_sequence_type_proto",
    "make_sparse_tensor",
    "make_sparse_tensor_type_proto",
    "make_sparse_tensor_value_info",
    "make_tensor",
    "make_tensor_sequence_value_info",
    "make_tensor_type_proto",
    "make_tensor_value_info",
    "make_training_info",
    "make_value_info",
    "np_dtype_to_tensor_dtype",
    "printable_attribute",
    "printable_dim",
    "printable_graph",
    "printable_node",
    "printable_tensor_proto",
    "printable_type",
    "printable_value_info",
    "set_metadata_props",
    "set_model_props",
    "strip_doc_string",
    "tensor_dtype_to_field",
    "tensor_dtype_to_np_dtype",
    "tensor_dtype_to_storage_tensor_dtype",
    "tensor_dtype_to_string",
]
