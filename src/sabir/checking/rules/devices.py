"""Devices: the device configurations of a model, and the sharding of its nodes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from sabir.base import Location, counted, quote
from sabir.checking._examples import X, Y, in_model
from sabir.checking._rule import Problem, Textproto, rule
from sabir.ir import SparseTensorType, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import Survey
    from sabir.ir import DeviceConfiguration, NodeDevice, Sharding, Value

_TWO = 'configuration { name: "two" num_devices: 2 }'
_SPEC = (
    'tensor_name: "x" device: [0, 1] sharded_dim { axis: 0 simple_sharding { dim_param: "N" num_shards: 2 } }'
)


def _laid_out(spec: str = _SPEC, *, configuration: str = _TWO, name: str = "two") -> Textproto:
    """Return an example with one node, and one sharding of it."""
    device = f'device_configurations {{ configuration_id: "{name}" sharding_spec {{ {spec} }} }}'
    node = f'node {{ op_type: "Relu" input: "x" output: "y" {device} }}'
    return in_model(f'graph {{ name: "g" {node} {X} {Y} }} {configuration}', ir_version=11)


_GOOD = (
    _laid_out(),
    _laid_out(
        'tensor_name: "x" device: 7 index_to_device_group_map { key: 7 value: [0, 1] } sharded_dim { axis: -1'
        " simple_sharding { num_shards: 1 } }",
        configuration='configuration { name: "two" num_devices: 2 device: ["a", "b"] }',
    ),
)


def _configured(survey: Survey) -> Iterator[tuple[Location, DeviceConfiguration]]:
    for index, configuration in enumerate(survey.model.devices):
        yield Location().at("configuration", index=index, name=configuration.name), configuration


def _shardings(survey: Survey) -> Iterator[tuple[Location, NodeDevice, Sharding]]:
    for where, device in survey.layouts:
        for index, sharding in enumerate(device.shardings):
            yield where.at("sharding", index=index, name=sharding.name), device, sharding


@rule(
    "DEV001",
    "The configuration_id of a node is the name of a configuration of the model.",
    source="onnx.proto",
    over="model",
    since=11,
    bad=_laid_out(name="three"),
    good=_GOOD,
)
def known_configuration(survey: Survey) -> Iterator[Problem]:
    """A node refers to a configuration of the model."""
    known = {c.name for c in survey.model.devices}
    for where, device in survey.layouts:
        if device.configuration not in known:
            yield Problem(
                f"the model has no configuration {quote(device.configuration)}",
                where,
                "correct the name, or add it",
            )


@rule(
    "DEV002",
    "A configuration that names its devices names num_devices of them.",
    source="onnx.proto",
    over="model",
    since=11,
    bad=_laid_out(configuration='configuration { name: "two" num_devices: 2 device: "a" }'),
    good=_GOOD,
)
def named_devices(survey: Survey) -> Iterator[Problem]:
    """A configuration names all of its devices, or none."""
    for where, configuration in _configured(survey):
        count = len(configuration.devices)
        if count and count != configuration.num_devices:
            names = f"the configuration names {counted(count, 'device')}"
            message = f"{names}, but num_devices is {configuration.num_devices}"
            yield Problem(message, where, "name all of them or none")


@rule(
    "DEV003",
    "The tensor_name of a sharding is the name of an input or output of its node.",
    source="onnx.proto",
    over="model",
    since=11,
    bad=(_laid_out('tensor_name: "ghost" device: [0, 1]'), _laid_out("device: [0, 1]")),
    good=_GOOD,
)
def own_tensors(survey: Survey) -> Iterator[Problem]:
    """A sharded tensor is an operand or a result of the node."""
    for where, _, sharding in _shardings(survey):
        if sharding.value is None:
            message = f"{quote(sharding.name)} is not an input or output of the node"
            yield Problem(message if sharding.name else "the sharding names no tensor", where)


@rule(
    "DEV004",
    "The axis of a sharding is in [-r, r-1], where r is the rank of the tensor.",
    source="onnx.proto",
    over="model",
    since=11,
    bad=(
        _laid_out(
            'tensor_name: "x" device: [0, 1] sharded_dim { axis: 1 simple_sharding { num_shards: 2 } }'
        ),
        _laid_out(
            'tensor_name: "x" device: [0, 1] sharded_dim { axis: -2 simple_sharding { num_shards: 2 } }'
        ),
    ),
    good=_GOOD,
)
def axes_in_range(survey: Survey) -> Iterator[Problem]:
    """A sharded axis exists, if the tensor's rank is declared."""
    for where, _, sharding in _shardings(survey):
        rank = _rank(sharding.value)
        for axis in sharding.axes if rank is not None else ():
            if rank is not None and not -rank <= axis.axis < rank:
                yield Problem(f"axis {axis.axis} is sharded, but the tensor has rank {rank}", where)


def _rank(value: Value | None) -> int | None:
    if value is None:
        return None
    if value.constant is not None:
        return len(value.constant.shape)
    shape = value.type.shape if isinstance(value.type, (TensorType, SparseTensorType)) else None
    return None if shape is None else len(shape)


@rule(
    "DEV005",
    "A configuration has a name, by which nodes refer to it.",
    source="onnx.proto",
    over="model",
    since=11,
    bad=(
        _laid_out(configuration=f"{_TWO} configuration {{ num_devices: 2 }}"),
        _laid_out(configuration=f"{_TWO} {_TWO}"),
    ),
    good=_GOOD,
)
def named_configurations(survey: Survey) -> Iterator[Problem]:
    """Each configuration has a name, and no two have the same."""
    counts = Counter(c.name for c in survey.model.devices)
    for where, configuration in _configured(survey):
        if not configuration.name:
            yield Problem("the configuration has no name", where, "name it, or drop it")
        elif counts.pop(configuration.name, 1) > 1:
            yield Problem(
                f"several configurations are named {quote(configuration.name)}", where, "rename them"
            )


@rule(
    "DEV006",
    "A device of a sharding is a device of the configuration, or the number of a group of its devices.",
    source="onnx.proto",
    over="model",
    since=11,
    bad=(
        _laid_out('tensor_name: "x" device: [0, 2]'),
        _laid_out('tensor_name: "x" device: 7 index_to_device_group_map { key: 7 value: [0, 2] }'),
    ),
    good=_GOOD,
)
def devices_in_range(survey: Survey) -> Iterator[Problem]:
    """A device index is in 0 to num_devices - 1, or is a key of the map of device groups."""
    counts = {c.name: c.num_devices for c in survey.model.devices}
    for where, device, sharding in _shardings(survey):
        count = counts.get(device.configuration)
        groups = dict(sharding.groups)
        members = [d for _, group in sharding.groups for d in group]
        used = [*(d for d in sharding.devices if d not in groups), *members]
        odd = [d for d in used if count is not None and not 0 <= d < count]
        if odd:
            yield Problem(
                f"device {odd[0]} does not exist: the configuration has {counted(count or 0, 'device')}",
                where,
                "the first device is 0",
            )


@rule(
    "DEV007",
    "A sharded axis states the number of its shards.",
    source="onnx.proto",
    over="model",
    since=11,
    bad=(
        _laid_out(
            'tensor_name: "x" device: [0, 1] sharded_dim { axis: 0 simple_sharding { dim_param: "N" } }'
        ),
        _laid_out(
            'tensor_name: "x" device: [0, 1] sharded_dim { axis: 0 simple_sharding { num_shards: -2 } }'
        ),
    ),
    good=_GOOD,
)
def shards_count(survey: Survey) -> Iterator[Problem]:
    """The number of shards is 1 or more."""
    for where, _, sharding in _shardings(survey):
        odd = [shards for axis in sharding.axes for _, shards in axis.pieces if shards < 1]
        if odd:
            yield Problem(f"an axis is split into {odd[0]} shards", where, "use 1 for no split")


@rule(
    "DEV008",
    "A configuration states the number of its devices.",
    source="onnx.proto",
    over="model",
    since=11,
    bad=(
        _laid_out('tensor_name: "x"', configuration='configuration { name: "two" }'),
        _laid_out('tensor_name: "x"', configuration='configuration { name: "two" num_devices: -2 }'),
    ),
    good=_GOOD,
)
def devices_count(survey: Survey) -> Iterator[Problem]:
    """A configuration has at least one device."""
    for where, configuration in _configured(survey):
        if configuration.num_devices < 1:
            yield Problem(
                f"num_devices is {configuration.num_devices}", where, "a configuration has at least 1 device"
            )


@rule(
    "DEV009",
    "The layout of a node states once for each axis of a tensor how it is sharded.",
    source="practice",
    over="model",
    since=11,
    severity="warning",
    note="the text defines one entry, not several",
    bad=(
        _laid_out(f"{_SPEC} sharded_dim {{ axis: -1 simple_sharding {{ num_shards: 1 }} }}"),
        _laid_out(f"{_SPEC} }} sharding_spec {{ {_SPEC}"),
        _laid_out(
            'tensor_name: "x" device: 7 index_to_device_group_map { key: 7 value: 0 }'
            " index_to_device_group_map { key: 7 value: 1 }"
        ),
    ),
    good=_GOOD,
)
def sharded_once(survey: Survey) -> Iterator[Problem]:
    """A layout lists each tensor once, and a sharding each axis and group once."""
    for where, device in survey.layouts:
        yield from _grouped_twice(where, device)
        names = Counter(s.name for s in device.shardings)
        for sharding in device.shardings:
            if names.pop(sharding.name, 1) > 1:
                yield Problem(
                    f"{quote(sharding.name)} is sharded twice in one layout", where, "keep one of them"
                )
            rank = _rank(sharding.value)
            axes = Counter(a.axis % rank if rank else a.axis for a in sharding.axes)
            for axis, count in axes.items():
                if count > 1:
                    yield Problem(
                        f"axis {axis} of {quote(sharding.name)} is sharded {count} times",
                        where,
                        "keep one of them",
                    )


def _grouped_twice(where: Location, device: NodeDevice) -> Iterator[Problem]:
    for index, sharding in enumerate(device.shardings):
        for key, count in Counter(key for key, _ in sharding.groups).items():
            if count > 1:
                at = where.at("sharding", index=index, name=sharding.name)
                yield Problem(
                    f"the map has {count} entries for the device group {key}", at, "keep one of them"
                )
