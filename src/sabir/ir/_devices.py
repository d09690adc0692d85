"""Where a node may run: the multi-device facts of IR 11 and later."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sabir.ir._dims import Dim
    from sabir.ir._value import Value


class DeviceConfiguration(NamedTuple):
    """A named set of devices that a model was laid out for."""

    name: str
    num_devices: int
    devices: tuple[str, ...] = ()
    wire: bytes = b""


class ShardedAxis(NamedTuple):
    """One axis, cut into `pieces`: pairs of a length (or None) and a number of shards."""

    axis: int
    pieces: tuple[tuple[Dim, int], ...] = ()


class Sharding(NamedTuple):
    """How one input or output of a node is spread over devices; `value` is None when it names neither."""

    value: Value | None
    name: str
    devices: tuple[int, ...] = ()
    groups: tuple[tuple[int, tuple[int, ...]], ...] = ()
    axes: tuple[ShardedAxis, ...] = ()


class NodeDevice(NamedTuple):
    """The layout of a node under one device configuration; `wire` is the message as the file had it."""

    configuration: str
    shardings: tuple[Sharding, ...] = ()
    pipeline_stage: int | None = None
    wire: bytes = b""
