"""A model whose large tensors stay in memory as arrays, outside of the message."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sabir.compat.onnx import checker, helper
from sabir.compat.onnx.external_data_helper import (
    ExternalDataInfo,
    all_tensors,
    bodies,
    uses_external_data,
)
from sabir.compat.onnx.numpy_helper import to_array, tobytes_little_endian
from sabir.compat.onnx.onnx_ml_pb2 import ModelProto, TensorProto
from sabir.files import absolute

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np


def make_large_tensor_proto(location: str, tensor_name: str, tensor_type: int, shape: tuple[int, ...]) -> Any:
    """Return a TensorProto without data: that of the array at `location`, which begins with `#`."""
    tensor = TensorProto(name=tensor_name, data_type=tensor_type, data_location=TensorProto.EXTERNAL)
    tensor.dims.extend(shape)
    tensor.external_data.add(key="location", value=location)
    return tensor


def make_large_model(
    graph: Any, large_initializers: dict[str, np.ndarray[Any, Any]] | None = None, **kwargs: Any
) -> ModelContainer:
    """Return a container of a model of `graph`; the arrays are by location, the keywords of `make_model`."""
    container = ModelContainer()
    container.model_proto = helper.make_model(graph, **kwargs)
    if large_initializers:
        container.set_large_initializers(large_initializers)
        container.check_large_initializers()
    return container


class ModelContainer:
    """A ModelProto, and the arrays of its large tensors by location.

    `container["#location"]` returns an array; raises ValueError for an unknown one.
    """

    def __init__(self) -> None:
        self.model_proto_: Any = None
        self.large_initializers: dict[str, np.ndarray[Any, Any]] = {}

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        found = self.large_initializers.get(name)
        if found is None:
            raise ValueError(f"the container has no array {name!r}; it has {sorted(self.large_initializers)}")
        return found

    @property
    def model_proto(self) -> Any:
        """The message; raises RuntimeError before there is one."""
        model = self.model_proto_
        if model is None:
            raise RuntimeError("the container has no model; assign one to `model_proto`, or call `load`")
        return model

    @model_proto.setter
    def model_proto(self, model_proto: Any) -> None:
        self.model_proto_ = model_proto

    def check_model(self) -> None:
        """Check the message without the arrays, as `checker.check_model` does, with the data in place."""
        checker.check_model(self.complete())

    def complete(self) -> Any:
        """Return a copy of the message with all data in it; raises ValueError above 2 GiB."""
        model = ModelProto()
        model.CopyFrom(self.model_proto)
        for tensor in all_tensors(model):
            if uses_external_data(tensor) and self.is_in_memory_external_initializer(_location(tensor)):
                tensor.raw_data = tobytes_little_endian(self[_location(tensor)])
                tensor.data_location = TensorProto.DEFAULT
                del tensor.external_data[:]
        return model

    def enumerate_graph_protos(self) -> Iterator[Any]:
        """Every graph of the model: the main one and those within it."""
        return (body for body in bodies(self.model_proto) if hasattr(body, "initializer"))

    def is_in_memory_external_initializer(self, name: str) -> bool:
        """Whether a location is that of an array and not of a file."""
        return name.startswith("#")

    def set_large_initializers(self, large_initializers: dict[str, np.ndarray[Any, Any]]) -> None:
        """Replace the arrays; raises ValueError for a location that does not begin with `#`."""
        for location in large_initializers:
            if not self.is_in_memory_external_initializer(location):
                raise ValueError(
                    f"the location {location!r} is that of a file; one of an array in memory begins with '#'"
                )
        self.large_initializers = large_initializers

    def check_large_initializers(self) -> None:
        """Raise RuntimeError for a tensor of the message whose array is missing."""
        for tensor in all_tensors(self.model_proto):
            if not uses_external_data(tensor):
                continue
            location = _location(tensor)
            if not location:
                raise RuntimeError(
                    f"the tensor {tensor.name!r} has no location; call make_large_tensor_proto"
                )
            if location not in self.large_initializers:
                raise RuntimeError(
                    f"the tensor {tensor.name!r} has the location {location!r}, and the container has no "
                    "array there; call set_large_initializers"
                )

    def save(self, file_path: str, all_tensors_to_one_file: bool = False) -> Any:
        """Write the model and its arrays, to one file or to one each; return the message that was written."""
        from sabir.compat import onnx  # ruff: ignore[import-outside-top-level]  the package imports this module

        model = ModelProto()
        model.CopyFrom(self.model_proto)
        folder = Path(file_path).parent
        shared = f"{Path(file_path).name}.weight"
        if self.large_initializers and all_tensors_to_one_file:
            folder.joinpath(shared).write_bytes(b"")
        place = 0
        for number, tensor in enumerate(all_tensors(model)):
            location = _location(tensor) if uses_external_data(tensor) else ""
            if not self.is_in_memory_external_initializer(location):
                continue
            data = tobytes_little_endian(self[location])
            name = shared if all_tensors_to_one_file else f"{Path(file_path).name}.{number}.weight"
            if all_tensors_to_one_file:
                with folder.joinpath(name).open("ab") as file:
                    file.write(data)
            else:
                folder.joinpath(name).write_bytes(data)
            _locate(tensor, name, place if all_tensors_to_one_file else 0, len(data))
            place += len(data)
        onnx.save_model(model, file_path)
        return model

    def load(self, file_path: str, load_large_initializers: bool = True) -> None:
        """Read a model; external data becomes arrays unless `load_large_initializers` is False."""
        from sabir.compat import onnx  # ruff: ignore[import-outside-top-level]  the package imports this module

        self.model_proto_ = onnx.load_model(file_path, load_external_data=False)
        self.large_initializers = {}
        if not load_large_initializers:
            return
        folder = str(absolute(Path(file_path)).parent)
        for number, tensor in enumerate(all_tensors(self.model_proto_)):
            if uses_external_data(tensor):
                location = f"#t{number}"
                self.large_initializers[location] = to_array(tensor, folder)
                del tensor.external_data[:]
                tensor.external_data.add(key="location", value=location)


def _location(tensor: Any) -> str:
    return ExternalDataInfo(tensor).location


def _locate(tensor: Any, name: str, offset: int, length: int) -> None:
    del tensor.external_data[:]
    for key, value in (("location", name), ("offset", str(offset)), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)


__all__ = ["ModelContainer", "make_large_model", "make_large_tensor_proto"]
