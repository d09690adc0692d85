"""Device configurations of models and nodes (IR 11 and later)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sabir.ir._dims import Dim
    from sabir.ir._value import Value


class DeviceConfiguration(NamedTuple):
    """A named set of devices that a model was partitioned for."""

    name: str
    num_devices: int
    devices: tuple[str, ...] = ()
    wire: bytes = b""


class ShardedAxis(NamedTuple):
    """One axis, cut into `pieces`: pairs of a length (or None) and a number of shards."""

    axis: int
    pieces: tuple[tuple[Dim, int], ...] = ()


class Sharding(NamedTuple):
    """How an operand or result is distributed over devices; `value` is None when it names neither."""

    value: Value | None
    name: str
    devices: tuple[int, ...] = ()
    groups: tuple[tuple[int, tuple[int, ...]], ...] = ()
    axes: tuple[ShardedAxis, ...] = ()


class NodeDevice(NamedTuple):
    """The distribution of a node in one device configuration; `wire` is the message in the file."""

    configuration: str
    shardings: tuple[Sharding, ...] = ()
    pipeline_stage: int | None = None
    wire: bytes = b""
