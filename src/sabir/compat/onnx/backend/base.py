"""The interface that an engine of ONNX models has: Backend prepares a model, BackendRep runs it."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

from sabir.compat.onnx import checker
from sabir.compat.onnx.defs import onnx_opset_version
from sabir.compat.onnx.onnx_ml_pb2 import IR_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence


class DeviceType:
    """The kinds of devices, by number."""

    CPU = 0
    CUDA = 1


class Device:
    """A device by its name, such as `CUDA:1`: its `type` and its `device_id`.

    Raises AttributeError for an unknown kind, ValueError for a number that is none.
    """

    def __init__(self, device: str) -> None:
        kind, _, number = device.partition(":")
        self.type: int = getattr(DeviceType, kind)
        self.device_id = int(number) if number else 0


def namedtupledict(typename: str, field_names: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """Return a named tuple class whose items are also found by the names of fields."""
    renamed = kwargs.pop("rename", True)
    fields = {name: place for place, name in enumerate(field_names)}
    make: Any = collections.namedtuple  # ruff: ignore[collections-named-tuple]  the fields are known at run time
    base: Any = make(typename, field_names, *args, rename=renamed, **kwargs)
    plain: Any = base.__getitem__

    def get(self: Any, key: Any) -> Any:
        return plain(self, fields[key] if isinstance(key, str) else key)

    base.__getitem__ = get
    return base


class BackendRep:
    """A prepared model."""

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the outputs; a subclass overrides it. This one returns (None,)."""
        return (None,)


class Backend:
    """An engine; a subclass overrides `prepare`, `run_model` and `run_node`."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether the engine can run a model."""
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> BackendRep | None:
        """Return the prepared model; this one checks it and returns None."""
        checker.check_model(model)
        return None

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepare a model and run it once."""
        prepared = cls.prepare(model, device, **kwargs)
        if prepared is None:
            raise RuntimeError(f"{cls.__name__}.prepare returned no model")
        return prepared.run(inputs)

    @classmethod
    def run_node(
        cls, node: Any, inputs: Any, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[Any, ...] | None:
        """Run one node; this one checks it with the version `opset_version` and returns None."""
        context = checker.C.CheckerContext()
        context.ir_version = IR_VERSION
        context.opset_imports = {"": kwargs.get("opset_version", onnx_opset_version())}
        checker.check_node(node, context)
        return None

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the engine runs models on a device."""
        return True


__all__ = ["Backend", "BackendRep", "Device", "DeviceType", "namedtupledict"]
