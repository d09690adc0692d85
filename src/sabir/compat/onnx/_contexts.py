"""What checks and inferences of parts take: the versions around a message, and the types around a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.compat.onnx import _attributes
from sabir.compat.onnx._errors import InferenceError
from sabir.compat.onnx._tensors import make
from sabir.compat.onnx.onnx_ml_pb2 import IR_VERSION, AttributeProto, TensorShapeProto, TypeProto
from sabir.serial import from_proto, to_proto

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class CheckerContext:
    """The IR version and the opset imports of the model to which a message belongs."""

    def __init__(self) -> None:
        self.ir_version: int = IR_VERSION
        self.opset_imports: dict[str, int] = {}


class LexicalScopeContext:
    """The names that are visible around a message; a part may capture any name, so nothing reads it."""


class InferenceContext:
    """One call, for a function that infers types: it reads inputs and attributes, and sets outputs."""

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
        return _natural(index) < len(self._types) and self._types[index] is not None

    def has_output(self, index: int) -> bool:
        """Whether there is an output at a place."""
        return _natural(index) < len(self._outputs)

    def get_input_type(self, index: int) -> Any:
        """Return the TypeProto of an input, None for an unknown one; raises RuntimeError past the last."""
        found = self._types[self._place(index, len(self._types))]
        return None if found is None else to_proto(found)

    def get_output_type(self, index: int) -> Any:
        """Return the TypeProto that was set for an output, an empty one before."""
        found = self._outputs[self._place(index, len(self._outputs))]
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
        if callable(value):  # inference passes a graph as what infers it
            return AttributeProto(name=name, type=AttributeProto.GRAPH)
        return None if value is None else _attributes.make(name, value, None, None)

    def get_graph_attribute_inferencer(self, name: str) -> GraphInferencer:
        """Return what infers the types of a graph attribute; raises InferenceError where there is none."""
        value: Any = self._attributes.get(name)
        if not callable(value):
            raise InferenceError(f"{self._name} has no graph {name!r}")
        graph: Any = value
        return GraphInferencer(graph)

    def get_input_data(self, index: int) -> Any:
        """Return the TensorProto of an input whose elements are known, None for another one."""
        known = self._known(index)
        if known is None or any(not isinstance(item, (int, float, bool)) for item in known.items):
            return None
        kind = self._types[index]
        return make("", kind.element.number, known.shape, list(known.items), raw=False)

    def get_input_sparse_data(self, index: int) -> Any:
        """Return None: Sabir knows contents in dense form, as `get_input_data` returns them."""
        self._place(index, len(self._types))

    def get_symbolic_input(self, index: int) -> Any:
        """Return the known elements of a 1-D input as a TensorShapeProto, None for another one."""
        known = self._known(index)
        if known is None or len(known.shape) != 1:
            return None
        shape = TensorShapeProto()
        for item in known.items:
            if isinstance(item, int):
                shape.dim.add(dim_value=item)
            elif item is None:
                shape.dim.add()
            else:
                shape.dim.add(dim_param=str(item))
        return shape

    def _known(self, index: int) -> Any:
        kind = self._types[self._place(index, len(self._types))]
        return getattr(kind, "known", None)

    def _place(self, index: int, count: int) -> int:
        if _natural(index) >= count:
            raise RuntimeError(f"{self._name} has {count} of them, and none at {index}")
        return index

    def results(self) -> tuple[Any, ...]:
        """Return the types that were set, as Sabir's."""
        return tuple(None if proto is None else from_proto(proto) for proto in self._outputs)


class GraphInferencer:
    """Infers the types of a graph that is an attribute of a call."""

    def __init__(self, graph: Callable[..., tuple[Any, ...]]) -> None:
        self._graph = graph

    def do_inferencing(self, input_types: Sequence[Any], input_data: Sequence[Any] = ()) -> list[Any]:
        """Return the TypeProtos of the outputs for inputs of these types; `input_data` is not passed on."""
        results = self._graph(*(None if kind is None else from_proto(kind) for kind in input_types))
        return [TypeProto() if kind is None else to_proto(kind) for kind in results]


def _natural(index: int) -> int:
    if index < 0:
        raise TypeError(f"a place is a number from 0 on, and not {index}")
    return index
