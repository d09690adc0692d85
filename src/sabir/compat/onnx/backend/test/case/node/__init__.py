"""Cases of one node: the examples of Sabir's operators, and those that a program adds by `expect`."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.compat.onnx import defs, helper
from sabir.compat.onnx.backend.test.case._examples import ATOL, RTOL, node_cases
from sabir.compat.onnx.backend.test.case.test_case import TestCase
from sabir.compat.onnx.onnx_ml_pb2 import TensorProto
from sabir.reference import type_of_value
from sabir.serial import to_proto

if TYPE_CHECKING:
    from collections.abc import Sequence

_added: dict[str, TestCase] = {}


def expect(
    node_op: Any,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    name: str,
    **kwargs: Any,
) -> None:
    """Add a case: a node, and the arrays of those of its inputs and outputs that are present.

    `input_type_protos` and `output_type_protos` have types where the values do not determine them, or None;
    further options are those of `helper.make_model_gen_version`. Without `opset_imports` the model has the
    version of the operator's newest schema. Raises ValueError for a name that another case has.
    """
    if name in _added:
        raise ValueError(f"another case has the name {name!r}; give this one its own")
    node = deepcopy(node_op)
    graph = helper.make_graph(
        [node],
        name,
        _ports(node.input, inputs, kwargs.pop("input_type_protos", None)),
        _ports(node.output, outputs, kwargs.pop("output_type_protos", None)),
    )
    kwargs.setdefault("producer_name", "backend-test")
    if "opset_imports" not in kwargs:
        since = defs.get_schema(node.op_type, domain=node.domain).since_version
        kwargs["opset_imports"] = [helper.make_opsetid(node.domain, since)]
    _added[name] = TestCase(
        name=name,
        model_name=name,
        url=None,
        model_dir=None,
        model=helper.make_model_gen_version(graph, **kwargs),
        data_sets=[(inputs, outputs)],
        kind="node",
        rtol=RTOL,
        atol=ATOL,
    )


def collect_testcases(op_type: str | None = None) -> list[TestCase]:
    """Return the cases of all operators, or of those with the name `op_type`."""
    added = [c for c in _added.values() if op_type in {None, c.model.graph.node[0].op_type}]
    return node_cases(op_type) + added


def _ports(names: Sequence[str], values: Sequence[Any], types: Sequence[Any] | None) -> list[Any]:
    """Return the declarations of the present inputs or outputs of a node."""
    present = [name for name in names if name]
    if len(present) != len(values):
        raise ValueError(
            f"the node has the values {present}, and {len(values)} arrays are given; give one for each"
        )
    declared = list(types or [])
    declared += [None] * (len(present) - len(declared))
    return [
        helper.make_value_info(name, kind if kind is not None else _type_of(value))
        for name, value, kind in zip(present, values, declared, strict=True)
    ]


def _type_of(value: Any) -> Any:
    if isinstance(value, TensorProto):
        return helper.make_tensor_type_proto(value.data_type, value.dims)
    if isinstance(value, list):  # items of a sequence may have different shapes
        first: Any = cast("list[Any]", value)[0]
        kind = helper.np_dtype_to_tensor_dtype(np.asarray(first).dtype)
        return helper.make_sequence_type_proto(helper.make_tensor_type_proto(kind, None))
    return to_proto(type_of_value(value))


__all__ = ["collect_testcases", "expect"]
