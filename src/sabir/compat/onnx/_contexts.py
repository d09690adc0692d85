"""What checks and inferences of parts take: the versions around a message, and the types around a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.compat.onnx import _attributes
from sabir.compat.onnx._tensors import number_of
from sabir.compat.onnx.onnx_ml_pb2 import IR_VERSION, TensorProto, TypeProto
from sabir.serial import from_proto, to_proto

if TYPE_CHECKING:
    from collections.abc import Sequence


class CheckerContext:
    """The IR version and the opset imports of the model to which a message belongs."""

    def __init__(self) -> None:
        self.ir_version: int = IR_VERSION
        self.opset_imports: dict[str, int] = {}


class LexicalScopeContext:
    """The names that are visible around a message; Sabir reads none from it, as a part may capture any name."""


class InferenceContext:
    """One call, for a function that infers types: types of inputs, attributes, and the types of outputs to set."""

    def __init__(self, name: str, types: Sequence[Any], attributes: dict[str, Any], outputs: int) -> None:
        self._name = name
        self._types = types
        self._attributes = attributes
        self._outputs: list[Any] = [None] * outputs

    def get_display_name(self) -> str:
        """Return the operator's name."""
        return self._name

    def get_num_inputs(self) -> int:
        """Return the number of inputs of the call."""
        return len(self._types)

    def get_num_outputs(self) -> int:
        """Return the number of formal outputs."""
        return len(self._outputs)

    def has_input(self, index: int) -> bool:
        """Whether the call has an input at a place."""
        return index < len(self._types) and self._types[index] is not None

    def has_output(self, index: int) -> bool:
        """Whether there is an output at a place."""
        return index < len(self._outputs)

    def get_input_type(self, index: int) -> Any:
        """Return the TypeProto of an input, None for an unknown one."""
        found = self._types[index]
        return None if found is None else to_proto(found)

    def get_output_type(self, index: int) -> Any:
        """Return the TypeProto that was set for an output, an empty one before."""
        found = self._outputs[index]
        return TypeProto() if found is None else found

    def set_output_type(self, index: int, proto: Any) -> bool:
        """Set the TypeProto of an output; return whether there is such an output."""
        if not self.has_output(index):
            return False
        copy = TypeProto()
        copy.CopyFrom(proto)
        self._outputs[index] = copy
        return True

    def get_attribute(self, name: str) -> Any:
        """Return an AttributeProto of the call, or the default; None for an absent one."""
        value = self._attributes.get(name)
        return None if value is None else _attributes.make(name, value, None, None)

    def get_input_data(self, index: int) -> Any:
        """Return the TensorProto of an input whose elements are known, None for another one."""
        known = getattr(self._types[index], "known", None) if self.has_input(index) else None
        if known is None:
            return None
        import numpy as np  # ruff: ignore[import-outside-top-level]  few inferences read data

        array = np.asarray(known)
        tensor = TensorProto(dims=array.shape, data_type=number_of(array.dtype))
        tensor.raw_data = array.tobytes()
        return tensor

    def results(self) -> tuple[Any, ...]:
        """Return the types that were set, as Sabir's."""
        return tuple(None if proto is None else from_proto(proto) for proto in self._outputs)
