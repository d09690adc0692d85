# ruff: file-ignore[banned-api] - onnx's own descriptors are the oracle
from pathlib import Path

import onnx
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto
from onnx import onnx_data_pb2, onnx_ml_pb2, onnx_operators_ml_pb2

from sabir import proto
from sabir.proto import AttributeProto, ModelProto, TensorProto, TensorShapeProto, TypeProto

_PEERS = (onnx_ml_pb2, onnx_data_pb2, onnx_operators_ml_pb2)
_MESSAGES = {n: d for m in _PEERS for n, d in m.DESCRIPTOR.message_types_by_name.items()}
_ENUMS = {n: d for m in _PEERS for n, d in m.DESCRIPTOR.enum_types_by_name.items()}


def _enum_facts(enum):
    return None if enum is None else (enum.full_name, {v.name: v.number for v in enum.values})


def _field_facts(field):
    return {
        "name": field.name,
        "full name": field.full_name,
        "json name": field.json_name,
        "type": field.type,
        "repeated": field.is_repeated,
        "required": field.is_required,
        "packed": field.is_packed,
        "presence": field.has_presence,
        "oneof": field.containing_oneof and field.containing_oneof.name,
        "message": field.message_type and field.message_type.full_name,
        "enum": _enum_facts(field.enum_type),
        "default": field.default_value,
    }


def _message_facts(message):
    return {
        "fields": {f.number: _field_facts(f) for f in message.fields},
        "oneofs": [(o.name, sorted(f.number for f in o.fields)) for o in message.oneofs],
        "enums": {e.name: _enum_facts(e) for e in message.enum_types},
        "nested": {m.name: _message_facts(m) for m in message.nested_types},
    }


def _reserved(message):
    own = _as_proto(message)
    numbers = {n for r in own.reserved_range for n in range(r.start, r.end)}
    return numbers, set(own.reserved_name)


def _as_proto(message):
    copy = DescriptorProto()
    message.CopyToProto(copy)
    return copy


@pytest.mark.parametrize("name", sorted(_MESSAGES))
def test_every_message_is_declared_as_onnx_does(name):
    ours = getattr(proto, name).DESCRIPTOR
    assert _message_facts(ours) == _message_facts(_MESSAGES[name])
    assert _reserved(ours) == _reserved(_MESSAGES[name])


@pytest.mark.parametrize("name", sorted(_ENUMS))
def test_every_enum_is_declared_as_onnx_does(name):
    assert _enum_facts(getattr(proto, name).DESCRIPTOR) == _enum_facts(_ENUMS[name])


def test_no_message_is_declared_that_onnx_lacks():
    ours = {n for n in proto.__all__ if hasattr(getattr(proto, n), "FromString")}
    assert ours == set(_MESSAGES)


def test_both_packages_live_in_one_process():
    assert ModelProto is not onnx.ModelProto
    model = ModelProto.FromString(onnx.ModelProto(ir_version=3).SerializeToString())
    assert model.ir_version == 3


def test_presence_is_kept_as_in_proto2():
    attribute = AttributeProto(i=0)
    assert attribute.HasField("i")
    assert not attribute.HasField("f")
    assert attribute.SerializeToString() == b"\x18\x00"


def test_nested_messages_and_enums_are_attributes():
    shape = TensorShapeProto(dim=[TensorShapeProto.Dimension(dim_value=3)])
    value = TypeProto(tensor_type=TypeProto.Tensor(elem_type=TensorProto.FLOAT, shape=shape))
    assert value.WhichOneof("value") == "tensor_type"
    assert (AttributeProto.TYPE_PROTOS, TensorProto.FLOAT6E3M2, TensorProto.EXTERNAL) == (14, 28, 1)
    assert TensorProto.DataType.Name(16) == "BFLOAT16"
    assert proto.Version.Value("IR_VERSION") == 14


def test_only_the_marked_fields_are_written_packed():
    assert TensorProto(float_data=[0, 0]).SerializeToString() == b"\x22\x08" + bytes(8)
    assert TensorProto(dims=[1, 2]).SerializeToString() == b"\x08\x01\x08\x02"


@pytest.mark.parametrize(
    ("cls", "data", "field", "expected"),
    [
        (AttributeProto, b"\x42\x03\x01\x02\x03", "ints", [1, 2, 3]),
        (AttributeProto, b"\x3a\x08" + bytes(8), "floats", [0.0, 0.0]),
        (TensorProto, b"\x0a\x02\x02\x03", "dims", [2, 3]),
        (TensorProto, b"\x38\x05\x38\x06", "int64_data", [5, 6]),
        (TensorProto, b"\x25" + bytes(4) + b"\x25" + bytes(4), "float_data", [0.0, 0.0]),
    ],
)
def test_packed_and_unpacked_are_both_read(cls, data, field, expected):
    assert list(getattr(proto.read_message(cls, data), field)) == expected


def test_every_onnx_file_of_the_wheel_is_written_back_as_onnx_writes_it():
    files = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").rglob("*.onnx"))
    assert len(files) > 100
    for file in files:
        data = file.read_bytes()
        assert (
            ModelProto.FromString(data).SerializeToString() == onnx.load_from_string(data).SerializeToString()
        )
