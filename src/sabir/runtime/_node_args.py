"""Inputs and outputs as `get_inputs()` and `get_outputs()` of onnxruntime describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import Expr, OptionalType, TensorType

if TYPE_CHECKING:
    from sabir.evaluation import ModelPort


class NodeArg(NamedTuple):
    """An input or output in onnxruntime's terms.

    `type` is a type string, such as `tensor(float)`. `shape` has an int for a fixed dimension, a str for a
    variable and None for an unknown one; it is empty for a scalar, an unknown rank, and what is no tensor.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> sabir.Session(model).get_inputs()[0]
    NodeArg(name='x', type='tensor(float)', shape=['N'])
    """

    name: str
    type: str
    shape: list[int | str | None]


def node_arg(port: ModelPort) -> NodeArg:
    """Return an input or output of a model in onnxruntime's terms."""
    kind = port.type.item if isinstance(port.type, OptionalType) else port.type
    shape = kind.shape or () if isinstance(kind, TensorType) else ()
    dims = [str(d) if isinstance(d, Expr) else None if d is None or d < 0 else d for d in shape]
    return NodeArg(port.name, "" if port.type is None else port.type.signature, dims)
