"""Subclasses of OpRun as operators of a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from sabir.compat.onnx import helper
from sabir.compat.onnx.defs import _registering
from sabir.compat.onnx.onnx_ml_pb2 import AttributeProto
from sabir.compat.onnx.reference.op_run import RuntimeImplementationError
from sabir.elements import ELEMENTS
from sabir.ir import SparseTensor, Tensor, Type
from sabir.schema import Attribute, Constraint, Input, Operator, Output
from sabir.serial import to_proto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sabir.compat.onnx.reference.op_run import OpRun

_TENSORS = tuple(f"tensor({e.name})" for e in ELEMENTS)
_ANY = Constraint(
    "T",
    [k for t in _TENSORS for k in (t, f"seq({t})", f"optional({t})", f"optional(seq({t}))", f"sparse_{t}")],
)


def as_operators(classes: Mapping[tuple[str, str], type[OpRun]], model: Any) -> list[Operator]:
    """Return operators that run classes, with the attributes that the calls in a model have."""
    return [_operator(key, cls, model) for key, cls in classes.items()]


def _operator(key: tuple[str, str], cls: type[OpRun], model: Any) -> Operator:
    domain, name = key
    known = _registering.current().find(domain, name)
    kinds = {a.name: a.type for node in _calls(model, key) for a in node.attribute}
    if {AttributeProto.GRAPH, AttributeProto.GRAPHS} & set(kinds.values()):
        raise RuntimeImplementationError(f"the class of {name} cannot have a graph as an attribute")
    attributes = [Attribute(n, _type_name(kind)) for n, kind in kinds.items()]
    operator = Operator(name, domain, summary=cls.__doc__ or "")
    since = known.versions[0].since if known else 1
    version = operator.first(
        since,
        inputs=[Input("inputs", _ANY, optional=True, variadic=True, minimum=0, heterogeneous=True)],
        outputs=[Output("outputs", _ANY, variadic=True, heterogeneous=True)],
        attributes=attributes,
    )
    version.evaluate(_evaluation(key, cls))
    version.infer(_unknown)
    return operator


def _unknown(*_: Any, call: Any, **__: Any) -> tuple[None, ...]:
    """Infer nothing: only the class knows."""
    return (None,) * len(call.outputs)


def _evaluation(key: tuple[str, str], cls: type[OpRun]) -> Callable[..., Any]:
    domain, name = key

    def evaluate(*inputs: Any, call: Any, **attributes: Any) -> tuple[Any, ...]:
        given = {n: _as_attribute(v) for n, v in attributes.items() if v is not None}
        node = helper.make_node(
            name,
            ["" if value is None else f"x{place}" for place, value in enumerate(inputs)],
            [f"y{place}" for place in range(len(call.outputs))],
            domain=domain,
            **given,
        )
        return tuple(map(_as_value, cls(node, {"verbose": 0}).run(*inputs)))

    return evaluate


def _as_attribute(value: Any) -> Any:
    """Return the value of an attribute as `make_node` takes it: tensors and types as messages."""
    return to_proto(value) if isinstance(value, (Tensor, SparseTensor, *get_args(Type))) else value


def _as_value(result: Any) -> Any:
    return np.asarray(result) if np.isscalar(result) else result


def _calls(model: Any, key: tuple[str, str]) -> Iterator[Any]:
    waiting = [model.graph, *model.functions]
    while waiting:
        for node in waiting.pop().node:
            if (node.domain, node.op_type) == key:
                yield node
            waiting.extend(a.g for a in node.attribute if a.type == AttributeProto.GRAPH)


def _type_name(kind: int) -> Any:
    name = AttributeProto.AttributeType.Name(kind)
    return {"TYPE_PROTO": "type", "TYPE_PROTOS": "types"}.get(name, name.lower())
