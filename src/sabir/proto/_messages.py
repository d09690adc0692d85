"""The message classes, in a separate pool, so that the `onnx` package can be imported in the same process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

from sabir.proto._descriptors import file_descriptor
from sabir.proto._schema import PACKAGE

if TYPE_CHECKING:
    from sabir.proto._types import MessageClass

# types-protobuf knows neither classes created at run time nor every method of the pool
_POOL: Any = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(file_descriptor())


def _message(name: str) -> MessageClass:
    descriptor = _POOL.FindMessageTypeByName(f"{PACKAGE}.{name}")
    cls: MessageClass = message_factory.GetMessageClass(descriptor)
    for inner in descriptor.nested_types:
        if not hasattr(cls, inner.name):  # only protobuf's C part sets these
            setattr(cls, inner.name, message_factory.GetMessageClass(inner))
    return cls


def _enum(name: str) -> enum_type_wrapper.EnumTypeWrapper:
    return enum_type_wrapper.EnumTypeWrapper(_POOL.FindEnumTypeByName(f"{PACKAGE}.{name}"))


ModelProto = _message("ModelProto")
GraphProto = _message("GraphProto")
NodeProto = _message("NodeProto")
AttributeProto = _message("AttributeProto")
FunctionProto = _message("FunctionProto")
ValueInfoProto = _message("ValueInfoProto")
TensorProto = _message("TensorProto")
SparseTensorProto = _message("SparseTensorProto")
TensorShapeProto = _message("TensorShapeProto")
TypeProto = _message("TypeProto")
OperatorSetIdProto = _message("OperatorSetIdProto")
StringStringEntryProto = _message("StringStringEntryProto")
TensorAnnotation = _message("TensorAnnotation")
TrainingInfoProto = _message("TrainingInfoProto")
DeviceConfigurationProto = _message("DeviceConfigurationProto")
NodeDeviceConfigurationProto = _message("NodeDeviceConfigurationProto")
ShardingSpecProto = _message("ShardingSpecProto")
ShardedDimProto = _message("ShardedDimProto")
SimpleShardedDimProto = _message("SimpleShardedDimProto")
IntIntListEntryProto = _message("IntIntListEntryProto")
SequenceProto = _message("SequenceProto")
MapProto = _message("MapProto")
OptionalProto = _message("OptionalProto")
OperatorProto = _message("OperatorProto")
OperatorSetProto = _message("OperatorSetProto")

Version = _enum("Version")
OperatorStatus = _enum("OperatorStatus")
