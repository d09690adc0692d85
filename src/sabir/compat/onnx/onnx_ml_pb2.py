"""The message classes and the values of their enums: those that Sabir reads and writes files with."""

from __future__ import annotations

import copyreg
from typing import Any

from sabir.proto import (
    AttributeProto,
    DeviceConfigurationProto,
    FunctionProto,
    GraphProto,
    IntIntListEntryProto,
    MapProto,
    ModelProto,
    NodeDeviceConfigurationProto,
    NodeProto,
    OperatorProto,
    OperatorSetIdProto,
    OperatorSetProto,
    OperatorStatus,
    OptionalProto,
    SequenceProto,
    ShardedDimProto,
    ShardingSpecProto,
    SimpleShardedDimProto,
    SparseTensorProto,
    StringStringEntryProto,
    TensorAnnotation,
    TensorProto,
    TensorShapeProto,
    TrainingInfoProto,
    TypeProto,
    ValueInfoProto,
    Version,
)

IR_VERSION_2017_10_10 = 1
IR_VERSION_2017_10_30 = 2
IR_VERSION_2017_11_3 = 3
IR_VERSION_2019_1_22 = 4
IR_VERSION_2019_3_18 = 5
IR_VERSION_2019_9_19 = 6
IR_VERSION_2020_5_8 = 7
IR_VERSION_2021_7_30 = 8
IR_VERSION_2023_5_5 = 9
IR_VERSION_2024_3_25 = 10
IR_VERSION_2025_05_12 = 11
IR_VERSION_2025_08_26 = 12
IR_VERSION_2025_11_06 = 13
IR_VERSION = 14
EXPERIMENTAL = 0
STABLE = 1
DESCRIPTOR: Any = ModelProto.DESCRIPTOR.file

_CLASSES: dict[str, Any] = {}


def _rebuild(full_name: str, data: bytes) -> Any:
    return _CLASSES[full_name].FromString(data)


def _reduce(message: Any) -> tuple[Any, ...]:
    return _rebuild, (message.DESCRIPTOR.full_name, message.SerializePartialToString())


def _make_picklable(cls: Any) -> None:
    """Let the messages of a class and of those within it be pickled, as protobuf does for its own pool."""
    descriptor = cls.DESCRIPTOR
    _CLASSES[descriptor.full_name] = cls
    cls.__module__ = __name__
    cls.__qualname__ = descriptor.full_name.removeprefix(f"{descriptor.file.package}.")
    copyreg.pickle(cls, _reduce)
    for inner in descriptor.nested_types:
        _make_picklable(getattr(cls, inner.name))


for _name, _item in list(globals().items()):
    if hasattr(_item, "DESCRIPTOR") and hasattr(_item, "FromString"):
        _make_picklable(_item)

__all__ = [
    "DESCRIPTOR",
    "EXPERIMENTAL",
    "IR_VERSION",
    "IR_VERSION_2017_10_10",
    "IR_VERSION_2017_10_30",
    "IR_VERSION_2017_11_3",
    "IR_VERSION_2019_1_22",
    "IR_VERSION_2019_3_18",
    "IR_VERSION_2019_9_19",
    "IR_VERSION_2020_5_8",
    "IR_VERSION_2021_7_30",
    "IR_VERSION_2023_5_5",
    "IR_VERSION_2024_3_25",
    "IR_VERSION_2025_05_12",
    "IR_VERSION_2025_08_26",
    "IR_VERSION_2025_11_06",
    "STABLE",
    "AttributeProto",
    "DeviceConfigurationProto",
    "FunctionProto",
    "GraphProto",
    "IntIntListEntryProto",
    "MapProto",
    "ModelProto",
    "NodeDeviceConfigurationProto",
    "NodeProto",
    "OperatorProto",
    "OperatorSetIdProto",
    "OperatorSetProto",
    "OperatorStatus",
    "OptionalProto",
    "SequenceProto",
    "ShardedDimProto",
    "ShardingSpecProto",
    "SimpleShardedDimProto",
    "SparseTensorProto",
    "StringStringEntryProto",
    "TensorAnnotation",
    "TensorProto",
    "TensorShapeProto",
    "TrainingInfoProto",
    "TypeProto",
    "ValueInfoProto",
    "Version",
]
