"""Operators as Python classes: those of Sabir, and those that a program defines for the evaluator."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from sabir.base import SabirError
from sabir.compat.onnx import _attributes, helper
from sabir.compat.onnx._declaring import declare
from sabir.compat.onnx.defs import _registering, onnx_opset_version
from sabir.compat.onnx.numpy_helper import to_array
from sabir.compat.onnx.onnx_ml_pb2 import AttributeProto, ModelProto
from sabir.ir import least_ir_of_imports
from sabir.serial import from_proto

if TYPE_CHECKING:
    from sabir.evaluation import Runner


class RuntimeTypeError(RuntimeError):
    """A value of a type that an operator does not take or give."""


class RuntimeContextError(RuntimeError):
    """A subgraph that needs values of the graph around it."""


class RuntimeImplementationError(NotImplementedError):
    """An operator without an implementation."""


class SparseTensor:
    """A sparse tensor: its `values`, their `indices`, and the dense `shape`."""

    def __init__(
        self, values: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], shape: tuple[int, ...]
    ) -> None:
        self.values, self.indices, self.shape = values, indices, shape

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        return self.values.dtype


def to_sparse_tensor(att: Any) -> SparseTensor:
    """Return the sparse tensor of an AttributeProto."""
    sparse = att.sparse_tensor
    return SparseTensor(to_array(sparse.values), to_array(sparse.indices), tuple(sparse.dims))


class OpRun(abc.ABC):
    """One node and what computes it.

    A program defines an operator by a subclass with the name of the operator, its domain as `op_domain`, and
    a method `_run(self, *inputs)` that returns a tuple of arrays. The attributes of the node are attributes
    of the object: tensors as arrays, text as str, graphs as messages.
    """

    op_domain: ClassVar[str] = ""

    def __init__(self, onnx_node: Any, run_params: dict[str, Any] | None = None, schema: Any = None) -> None:
        self.onnx_node = onnx_node
        self.run_params = run_params or {}
        self._schema = schema
        self.has_linked_attribute = any(attribute.ref_attr_name for attribute in onnx_node.attribute)
        for attribute in onnx_node.attribute:
            if not attribute.ref_attr_name:
                setattr(self, attribute.name, _python_value(attribute))

    @property
    def input(self) -> Any:
        """The names of the inputs."""
        return self.onnx_node.input

    @property
    def output(self) -> Any:
        """The names of the outputs."""
        return self.onnx_node.output

    @property
    def op_type(self) -> str:
        """The name of the operator."""
        return self.onnx_node.op_type

    @property
    def domain(self) -> str:
        """The domain of the operator."""
        return self.onnx_node.domain

    def need_context(self) -> bool:
        """Whether the operator asks for the values around it; the evaluator passes all that it captures."""
        return False

    @abc.abstractmethod
    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """Return the outputs, a tuple, for the inputs."""

    def run(
        self, *args: Any, linked_attributes: dict[str, Any] | None = None, context: Any = None
    ) -> tuple[Any, ...]:
        """Return the outputs for the inputs.

        Raises TypeError for a result that is no tuple, and for outputs that are no value, ValueError for no
        output.
        """
        result = self._run(*args, **(linked_attributes or {}))
        return _checked(type(self).__name__, result)

    @classmethod
    def infer_name(cls) -> tuple[str, int]:
        """Return the operator's name and version: `Clip_11` is version 11 of Clip."""
        name, _, version = cls.__name__.rpartition("_")
        return (name, int(version)) if name and version.isdigit() else (cls.__name__, onnx_opset_version())

    @classmethod
    def make_node(cls, n_inputs: int | None = None, n_outputs: int | None = None, **kwargs: Any) -> Any:
        """Return a NodeProto that calls the operator, with inputs `x0` … and outputs `y0` …."""
        name, _ = cls.infer_name()
        inputs = [f"x{place}" for place in range(1 if n_inputs is None else n_inputs)]
        outputs = [f"y{place}" for place in range(1 if n_outputs is None else n_outputs)]
        return helper.make_node(name, inputs, outputs, domain=cls.op_domain, **kwargs)

    @classmethod
    def create(
        cls, n_inputs: int | None = None, n_outputs: int | None = None, verbose: int = 0, **kwargs: Any
    ) -> OpRun:
        """Return the operator with attributes, ready to run."""
        node = cls.make_node(n_inputs, n_outputs, **kwargs)
        return cls(node, {"verbose": verbose, "log": _silent})

    @classmethod
    def eval(cls, *args: Any, n_outputs: int | None = None, verbose: int = 0, **kwargs: Any) -> Any:
        """Return the output for inputs, a tuple where there are several."""
        results = cls.create(len(args), n_outputs, verbose, **kwargs).run(*args)
        return results[0] if len(results) == 1 else results

    def __str__(self) -> str:
        inner = ", ".join(f"{a.name}" for a in self.onnx_node.attribute)
        return f"{type(self).__name__}(op_type={self.op_type}, attributes=[{inner}])"


class OpRunExpand(OpRun):
    """An operator that the evaluator replaces by its body: a subclass only names it."""

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeImplementationError(f"{self.op_type} is replaced by its body and never run")


class StandardOp(OpRun):
    """An operator that Sabir's interpreter computes; its subclasses are those that `ops.load_op` makes."""

    version: ClassVar[int] = 0

    def __init__(self, onnx_node: Any, run_params: dict[str, Any] | None = None, schema: Any = None) -> None:
        known = _registering.current().find_version(onnx_node.domain, onnx_node.op_type, self.version)
        for formal in known.attributes if known else ():
            setattr(self, formal.name, formal.default)
        super().__init__(onnx_node, run_params, schema)
        self._runners: dict[tuple[str, ...], Runner] = {}  # by the names of the inputs that have values

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        pairs = zip(self.onnx_node.input, args, strict=False)
        inputs = tuple(name if value is not None else "" for name, value in pairs)
        if inputs not in self._runners:
            self._runners[inputs] = _runner_of(self.onnx_node, inputs, type(self).version)
        feeds = {name: value for name, value in zip(inputs, args, strict=True) if name}
        try:
            return tuple(self._runners[inputs].run(feeds).values())
        except SabirError as error:
            raise TypeError(f"Issues with operator {self.op_type}: {error}") from error


class OpFunction(OpRun):
    """A call of a function, which the evaluator `impl_` runs."""

    def __init__(self, onnx_node: Any, run_params: dict[str, Any] | None, impl: Any) -> None:
        super().__init__(onnx_node, run_params)
        self.impl_ = impl

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        attributes = {a.name: _attributes.value_of(a) for a in self.onnx_node.attribute}
        feeds = dict(zip(self.impl_.input_names, args, strict=False))
        return tuple(self.impl_.run(None, feeds, attributes={**attributes, **kwargs}))


def _runner_of(node: Any, inputs: tuple[str, ...], version: int) -> Runner:
    from sabir.evaluation import Runner  # ruff: ignore[import-outside-top-level]  few programs run one operator

    domain = node.domain
    imports = {"": onnx_opset_version(), domain: version or onnx_opset_version()}
    model = ModelProto(
        ir_version=least_ir_of_imports({k: v for k, v in imports.items() if not k or k.startswith("ai.onnx")})
    )
    for name, number in imports.items():
        model.opset_import.add(domain=name, version=number)
    model.graph.name = node.op_type
    declare(model.graph.input, inputs)
    declare(model.graph.output, node.output)
    model.graph.node.append(node)
    del model.graph.node[0].input[:]
    model.graph.node[0].input.extend(inputs)
    return Runner(from_proto(model), _registering.current())


def _checked(name: str, result: Any) -> tuple[Any, ...]:
    if not isinstance(result, tuple):
        raise TypeError(
            f"`_run` of {name} returned an object of type {type(result).__name__}; return a tuple of outputs"
        )
    if not result:
        raise ValueError(f"`_run` of {name} returned an empty tuple; return a value for each output")
    values = cast("tuple[Any, ...]", result)
    for place, value in enumerate(values):
        if not isinstance(value, (np.ndarray, np.generic, list, dict, SparseTensor)) and value is not None:
            raise TypeError(
                f"output {place} of `_run` of {name} has the type {type(value).__name__}; return an array, a "
                "list, a dictionary or None"
            )
    return values


def _python_value(attribute: Any) -> Any:
    """Return the value of an AttributeProto as operators use it."""
    if attribute.type == AttributeProto.TENSOR:
        return to_array(attribute.t)
    if attribute.type == AttributeProto.TENSORS:
        return [to_array(tensor) for tensor in attribute.tensors]
    if attribute.type == AttributeProto.SPARSE_TENSOR:
        return to_sparse_tensor(attribute)
    value = _attributes.value_of(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return [item.decode("utf-8") if isinstance(item, bytes) else item for item in items]
    return value


def _silent(*_: Any) -> None:
    """Take a message of a program that nobody wants to read."""


__all__ = [
    "OpFunction",
    "OpRun",
    "OpRunExpand",
    "RuntimeContextError",
    "RuntimeImplementationError",
    "RuntimeTypeError",
    "SparseTensor",
    "StandardOp",
    "to_sparse_tensor",
]
