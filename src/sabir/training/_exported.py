"""What exporters of PyTorch write about a model: which values were parameters, and what each node read.

The exporter of `torch.export` (dynamo) writes it into the metadata of values and nodes; that of TorchScript
into the names of nodes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sabir.ir import Node

if TYPE_CHECKING:
    from sabir.ir import Model, Value

_KIND = "pkg.torch.export.graph_signature.InputSpec.kind"
_ORIGINAL = "pkg.torch.onnx.original_node_name"
_SCOPES = "pkg.torch.onnx.name_scopes"
_CLASSES = "pkg.torch.onnx.class_hierarchy"
_FX = "pkg.torch.onnx.fx_node"
_RULES = "pkg.onnxscript.rewriter.rule_name"

_QUOTED = re.compile(r"'([^']*)'")
_PARAMETER = re.compile(r"%(p_\w+)")
_MOVED = frozenset({
    "_to_copy", "_unsafe_view", "alias", "clone", "detach", "permute", "reshape", "squeeze", "t", "to",
    "transpose", "unsqueeze", "view",
})  # fmt: skip
_CALL_NUMBER = re.compile(r"_\d+$")


def kind_of(value: Value) -> str | None:
    """Return what a value was in PyTorch: PARAMETER, BUFFER or CONSTANT_TENSOR; None if unknown."""
    return (value.metadata or {}).get(_KIND)


def module_of(node: Node) -> str | None:
    """Return the path of the module that a node was traced in, such as `blocks.0.norm`, None if unknown."""
    scopes = _QUOTED.findall((node.metadata or {}).get(_SCOPES, ""))
    if scopes:
        return scopes[-2] if len(scopes) > 1 else ""
    path, separator, _ = node.name.strip("/").rpartition("/")
    return path.replace("/", ".") if separator else None


def classes_of(node: Node) -> list[str]:
    """Return the classes of the modules that a node was traced in, from outside to inside."""
    return _QUOTED.findall((node.metadata or {}).get(_CLASSES, ""))


def parameters_read(node: Node) -> list[str]:
    """Return the parameters that the traced call of a node read, as `p_` and the name with underscores."""
    return _PARAMETER.findall(_arguments(node))


def original_name(value: Value) -> str:
    """Return the name of a value in the traced graph: `p_`, `b_` or `c_` and its name with underscores."""
    return (value.metadata or {}).get(_ORIGINAL) or f"p_{mangled(value.name)}"


def mangled(name: str) -> str:
    """Return a name as the traced graph writes it."""
    return re.sub(r"\W", "_", name).lower()


def name_of(parameter: str, node: Node, part: str) -> str:
    """Return the name of a parameter that a node read: by its module, if the traced graph agrees."""
    name = f"{module_of(node)}.{part}"
    return name if f"p_{mangled(name)}" == parameter else parameter.removeprefix("p_")


def removed_bias(node: Node) -> str | None:
    """Return the bias that the traced call of a node read, if the optimizer removed it as it was zero."""
    if "RemoveOptionalBias" not in (node.metadata or {}).get(_RULES, "") or is_batch_norm(node):
        return None
    read = [name for name in parameters_read(node) if name.endswith("bias")]
    return name_of(read[0], node, "bias") if len(read) == 1 else None


def is_batch_norm(node: Node) -> bool:
    """Return whether a node was traced in a module of a class such as BatchNorm2d."""
    return any("BatchNorm" in name.rpartition(".")[2] for name in classes_of(node))


def is_folded(value: Value) -> bool:
    """Return whether an initializer is what a call of the traced graph computed, by what its readers read.

    What only moves the elements of a parameter is as good as the parameter.
    """
    if kind_of(value) is not None or _CALL_NUMBER.sub("", value.name) in _MOVED:
        return False
    name = re.compile(rf"%{re.escape(value.name)}\b")
    readers = [user for user, _ in value.uses if isinstance(user, Node)]
    return any(name.search(_arguments(node)) for node in readers)


def same_module(one: str, other: str) -> bool:
    """Return whether two paths are those of calls of one module: TorchScript numbers the calls."""
    return _CALL_NUMBER.sub("", one) == _CALL_NUMBER.sub("", other)


def advice(model: Model) -> str:
    """Return the call of its exporter that writes a model as it is trained."""
    dynamo = "torch.onnx.export(model.train(), ..., dynamo=True, optimize=False)"
    script = (
        "torch.onnx.export(model.train(), ..., dynamo=False, training=torch.onnx.TrainingMode.TRAINING, "
        "do_constant_folding=False)"
    )
    return dynamo if _is_dynamo(model) else script


def _arguments(node: Node) -> str:
    """Return the arguments of the traced call of a node, as it is written."""
    return (node.metadata or {}).get(_FX, "").partition("args = ")[2]


def _is_dynamo(model: Model) -> bool:
    return any(_SCOPES in (node.metadata or {}) or _FX in (node.metadata or {}) for node in model.graph)


__all__ = [
    "advice",
    "classes_of",
    "is_batch_norm",
    "is_folded",
    "kind_of",
    "mangled",
    "module_of",
    "name_of",
    "original_name",
    "parameters_read",
    "removed_bias",
    "same_module",
]
