"""The evaluator: a model, a graph, a function or a node run by Sabir's interpreter."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import sabir
from sabir.base import SabirError
from sabir.compat.onnx._declaring import declare
from sabir.compat.onnx.defs import _registering, onnx_opset_version
from sabir.compat.onnx.model_container import ModelContainer
from sabir.compat.onnx.onnx_ml_pb2 import (
    IR_VERSION,
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
)
from sabir.compat.onnx.reference._custom import as_operators
from sabir.compat.onnx.reference._logging import Log
from sabir.compat.onnx.reference.op_run import OpFunction, OpRun, OpRunExpand, RuntimeImplementationError
from sabir.compat.onnx.reference.ops import load_op
from sabir.compat.onnx.reference.shape_annotation_checker import check_graph_values
from sabir.evaluation import Runner
from sabir.inlining import inline
from sabir.serial import from_proto

if TYPE_CHECKING:
    from collections.abc import Sequence


class Subgraph(NamedTuple):
    """A graph attribute of a node: the message, and its nodes with the classes that compute them."""

    onnx_graph_: Any
    rt_nodes_: list[OpRun]


class ReferenceEvaluator:
    """Runs a model on numpy.

    `proto` is a ModelProto, GraphProto, FunctionProto, NodeProto, a ModelContainer, bytes, or a path.
    `opsets` are versions by domain for all but models; `functions` more functions, or evaluators of them;
    `new_ops` subclasses of `OpRun`. With `verbose` from 2 on `run` prints the nodes and values. Inputs may
    have other shapes than declared; `check_shape_annotations` compares the values of the main graph with what
    it declares.

    Raises TypeError for another object, NotImplementedError for an operator without an implementation.
    """

    def __init__(
        self,
        proto: Any,
        opsets: dict[str, int] | None = None,
        functions: Sequence[Any] | None = None,
        verbose: int = 0,
        new_ops: Sequence[type[OpRun]] | None = None,
        check_shape_annotations: bool = False,
    ) -> None:
        self._checks_shapes = check_shape_annotations
        folder, self.proto_ = _read(proto)
        self.verbose = verbose
        self.onnx_graph_ = self.proto_.graph if isinstance(self.proto_, ModelProto) else self.proto_
        self._model = _as_model(self.proto_, opsets)
        for item in functions or ():
            self._model.functions.append(item.proto_ if isinstance(item, ReferenceEvaluator) else item)
        self.functions_ = {(f.domain, f.name): f for f in self._model.functions}
        self.new_ops_ = _by_name(new_ops or ())
        self._attribute_runners: dict[bytes, Runner] = {}
        self._runner = self._bound(self._model, folder)
        self._untyped_runner: Runner | None = None

    # what the model has

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs."""
        return [value.name for value in self._model.graph.input]

    @property
    def input_types(self) -> list[Any]:
        """The TypeProtos of the inputs."""
        return [value.type for value in self._model.graph.input]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return [value.name for value in self._model.graph.output]

    @property
    def output_types(self) -> list[Any]:
        """The TypeProtos of the outputs."""
        return [value.type for value in self._model.graph.output]

    @property
    def opsets(self) -> dict[str, int]:
        """The versions of the operator sets by domain."""
        return {imported.domain: imported.version for imported in self._model.opset_import}

    @property
    def has_linked_attribute(self) -> bool:
        """Whether a node of a function takes an attribute from the call."""
        return any(a.ref_attr_name for node in self._model.graph.node for a in node.attribute)

    @property
    def rt_nodes_(self) -> list[OpRun]:
        """The nodes with the classes that compute them; a graph attribute has `rt_nodes_` too."""
        return [self._node(node) for node in self._model.graph.node]

    def _node(self, node: Any) -> OpRun:
        function = self.functions_.get((node.domain, node.op_type))
        if function is not None:
            others = [f for f in self.functions_.values() if f is not function]
            return OpFunction(node, {"verbose": self.verbose}, ReferenceEvaluator(function, functions=others))
        custom = self.new_ops_.get((node.domain, node.op_type))
        cls = load_op(node.domain, node.op_type, self.opsets.get(node.domain), custom)
        bound = cls(node, {"verbose": self.verbose})
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                inner = [self._node(inner) for inner in attribute.g.node]
                setattr(bound, attribute.name, Subgraph(attribute.g, inner))
        return bound

    def get_result_types(self, name: str, exc: bool = True) -> Any:
        """Return the declared TypeProto of a value; None, or with `exc` RuntimeError, where there is none."""
        graph = self._model.graph
        for value in (*graph.input, *graph.output, *graph.value_info):
            if value.name == name:
                return value.type
        if exc:
            raise RuntimeError(
                f"the model declares no type of {name!r}; call shape_inference.infer_shapes first"
            )
        return None

    # running

    def run(
        self,
        output_names: Sequence[str] | None,
        feed_inputs: dict[str, Any],
        attributes: dict[str, Any] | None = None,
        intermediate: bool = False,
        check_shape_annotations: bool | None = None,
    ) -> Any:
        """Return a list of the outputs (those of `output_names`) for arrays by the names of inputs.

        With `intermediate` a dictionary of all values. `attributes` are those of a function. Raises
        RuntimeError for a run that fails, TypeError for values of another type.
        """
        checks = self._checks_shapes if check_shape_annotations is None else check_shape_annotations
        names = list(output_names) if output_names is not None else self.output_names
        every = [n for node in self._model.graph.node for n in node.output if n]
        if intermediate or checks or self.verbose > 1:
            constants = [t.name for t in self._model.graph.initializer if t.name not in feed_inputs]
            wanted = list(dict.fromkeys([*every, *constants, *names]))
        else:
            wanted = names
        wanted = [name for name in wanted if name]
        feeds = {name: value for name, value in feed_inputs.items() if value is not None}
        if checks:
            check_graph_values(self._model.graph, feeds)
        runner = self._with_attributes(attributes)
        try:
            results = self._run_any(runner, feeds, wanted)
        except SabirError as error:
            cause = error.__cause__
            if isinstance(cause, (TypeError, ValueError, RuntimeError)):
                raise cause from error
            raise RuntimeError(str(error)) from error
        values = {**feeds, **results}
        if self.verbose > 1:
            Log(self.verbose).show(self._model.graph, values)
        if checks:
            check_graph_values(self._model.graph, values)
        if intermediate:
            return values
        return [values.get(name) for name in names]

    def _run_any(self, runner: Runner, feeds: dict[str, Any], wanted: list[str]) -> dict[str, Any]:
        """Run the model; feeds of other element types than declared have those that they have."""
        try:
            return runner.run(feeds, wanted)
        except sabir.FeedError:
            if runner is not self._runner or not set(feeds) <= set(self.input_names):
                raise
        if self._untyped_runner is None:
            model = ModelProto()
            model.CopyFrom(self._model)
            for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
                if value.type.HasField("tensor_type"):
                    value.ClearField("type")
            self._untyped_runner = self._bound(model, None)
        return self._untyped_runner.run(feeds, wanted)

    def _with_attributes(self, attributes: dict[str, Any] | None) -> Runner:
        return self._runner if not attributes else self._runner_for(attributes)

    def _runner_for(self, attributes: dict[str, Any]) -> Runner:
        """Return the runner of a function whose attributes have values."""
        from sabir.compat.onnx._attributes import make  # ruff: ignore[import-outside-top-level]  few functions have some

        if not isinstance(self.proto_, FunctionProto):
            raise RuntimeError("only a function has attributes; this is a model or a graph")
        call = _call_of(self.proto_)
        call.graph.node[0].attribute.extend(
            make(name, value, None, None) for name, value in attributes.items()
        )
        call.functions.extend(f for f in self._model.functions if f.name != self.proto_.name)
        key = call.SerializeToString()
        if key not in self._attribute_runners:
            self._attribute_runners[key] = self._bound(call, None)
        return self._attribute_runners[key]

    def _bound(self, message: Any, folder: str | None) -> Runner:
        model = from_proto(_without_shapes(message), folder=folder)
        registry = _registering.current()
        expanded = [name for (_, name), cls in self.new_ops_.items() if issubclass(cls, OpRunExpand)]
        if expanded:
            model = inline(model, operators=expanded, registry=registry)
        custom = {key: cls for key, cls in self.new_ops_.items() if not issubclass(cls, OpRunExpand)}
        if custom:
            registry = registry.with_operators(*as_operators(custom, message))
        try:
            return Runner(model, registry, newer_opsets=True)
        except sabir.SchemaError as error:
            raise RuntimeImplementationError(str(error)) from error


def _read(proto: Any) -> tuple[str | None, Any]:
    """Return the directory of external data, and the message of what an evaluator takes."""
    from sabir.compat import onnx  # ruff: ignore[import-outside-top-level]  the package imports this module

    if isinstance(proto, (str, os.PathLike)):
        return None, onnx.load(os.fspath(proto))
    if isinstance(proto, bytes):
        return None, onnx.load_from_string(proto)
    if isinstance(proto, ModelContainer):
        return None, proto.complete()
    if isinstance(proto, (ModelProto, GraphProto, FunctionProto, NodeProto)):
        return None, proto
    raise TypeError(
        f"an evaluator runs a model, a graph, a function, a node, bytes or the file at a path, and this is "
        f"of type {type(proto).__name__}"
    )


def _as_model(proto: Any, opsets: dict[str, int] | None) -> Any:
    model = ModelProto()
    if isinstance(proto, ModelProto):
        model.CopyFrom(proto)
        return model
    model.ir_version = IR_VERSION
    imports = dict(opsets or {"": onnx_opset_version()})
    if isinstance(proto, GraphProto):
        model.graph.CopyFrom(proto)
    elif isinstance(proto, NodeProto):
        model.graph.name = proto.op_type
        model.graph.node.append(proto)
        declare(model.graph.input, proto.input)
        declare(model.graph.output, proto.output)
        imports.setdefault(proto.domain, 1)
    else:
        imports = (
            {imported.domain: imported.version for imported in proto.opset_import} | imports
            if opsets
            else {imported.domain: imported.version for imported in proto.opset_import}
        )
        model.graph.name = proto.name
        declare(model.graph.input, proto.input)
        declare(model.graph.output, proto.output)
        model.graph.node.extend(proto.node)
    for domain, version in imports.items():
        model.opset_import.add(domain=domain, version=version)
    return model


def _call_of(function: Any) -> Any:
    """Return a model that calls a function."""
    model = ModelProto(ir_version=IR_VERSION)
    model.opset_import.extend(function.opset_import)
    if function.domain not in {imported.domain for imported in function.opset_import}:
        model.opset_import.add(domain=function.domain, version=1)
    model.graph.name = function.name
    declare(model.graph.input, function.input)
    declare(model.graph.output, function.output)
    node = model.graph.node.add(op_type=function.name, domain=function.domain, overload=function.overload)
    node.input.extend(function.input)
    node.output.extend(function.output)
    model.functions.append(function)
    return model


def _without_shapes(message: Any) -> Any:
    """Return a copy of a model whose inputs and outputs have no declared shapes, so that any is accepted."""
    copy = ModelProto()
    copy.CopyFrom(message)
    for value in (*copy.graph.input, *copy.graph.output, *copy.graph.value_info):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    return copy


def _by_name(classes: Sequence[Any]) -> dict[tuple[str, str], type[OpRun]]:
    found: dict[tuple[str, str], type[OpRun]] = {}
    for cls in classes:
        if not hasattr(cls, "op_domain"):
            raise AttributeError(
                f"{cls!r} in new_ops has no `op_domain`; set it to the domain of the operator"
            )
        if not issubclass(cls, OpRun):
            raise TypeError(f"{cls!r} in new_ops is not a subclass of OpRun; derive it from OpRun")
        found[cls.op_domain, cls.__name__] = cls
    return found


__all__ = ["ReferenceEvaluator"]
