"""Operators on blocks of channels, replaced by their bodies before a model is scheduled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sabir.base import run_with_limits
from sabir.conversion import convert_in_place
from sabir.inference import Inference
from sabir.ir import TensorType, canonical_domain
from sabir.opsets.families.windows.blocked_channels import (
    BODY_OPSET,
    DOMAIN,
    ELEMENTWISE,
    RANK,
    admitted_sizes,
    emit_blocked,
    emit_unblocked,
    joins_channels,
)
from sabir.rewriting import InlineFunctions, Rewriter, apply_rules, one_size_of_blocks, run_passes
from sabir.schema import Unconvertible
from sabir.simplification import Simplify

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.base import Limits
    from sabir.ir import Model, Node, Type, Value
    from sabir.rewriting import DetachedBuilder
    from sabir.schema import Registry


def without_blocks(model: Model, registry: Registry, limits: Limits | None) -> Model:
    """Return a copy of a model without calls of the operators that store channels in blocks.

    The bodies restore the plain order around each call, and the restorations cancel between calls. So a
    model that onnxruntime optimised for blocks has the calls of the model that it was made from. All calls
    have blocks of one size. A call stays where inference refuses it, or its body needs types that are not
    known. Raises ConversionError for a model that operator set 18 cannot express, LimitError.
    """
    return run_with_limits(limits, _without_blocks, model, registry)


def _without_blocks(model: Model, registry: Registry) -> Model:
    copy = model.clone()
    if copy.functions:
        run_passes(copy, [InlineFunctions(registry, convert=partial(convert_in_place, registry=registry))])
    if copy.opsets.get("", BODY_OPSET) < BODY_OPSET:
        convert_in_place(copy, {"": BODY_OPSET}, registry)
    with one_size_of_blocks(copy, registry):
        inference = Inference(copy, registry=registry)
        inference.run()
        if len(admitted_sizes()) == 1:
            _unblock_between(copy, inference.types, registry)
        _write_out(copy, _valid_calls(copy, inference.types), registry)
    run_passes(copy, [Simplify(registry=registry)])
    return copy


def _valid_calls(model: Model, types: Mapping[Value, Type]) -> set[Node]:
    """Return the calls on blocks that inference, which found these types, does not refuse."""
    calls = (node for graph in model.graphs() for node in graph.all_nodes() if node.domain == DOMAIN)
    return {node for node in calls if all(v is None or v in types for v in node.outputs)}


def _unblock_between(model: Model, types: Mapping[Value, Type], registry: Registry) -> None:
    """Let calls of the standard that read blocked images alone read images without blocks.

    Their results are stored in blocks again, and these steps cancel with those of the calls around them.
    """
    rewriter, (size,) = Rewriter(model, registry=registry), admitted_sizes()
    stored: set[Value] = set()
    for graph in model.graphs():
        for node in list(graph.sorted_nodes()):
            if node.domain == DOMAIN:
                stored.update(v for v in node.outputs if v is not None and node.op != "ReorderOutput")
            elif _keeps_blocks(node, stored, types):
                stored.update(v for v in node.outputs if v is not None)
                rewriter.replace(node, partial(_plain, node, stored, types, size))


def _keeps_blocks(node: Node, stored: set[Value], types: Mapping[Value, Type]) -> bool:
    """Return whether a call of the standard computes a blocked image of blocked images."""
    images = [v for v in node.inputs if v is not None and v in stored]
    results = [v for v in node.outputs if v is not None]
    known = all(_channels(v, types) for v in (*images, *results))
    if canonical_domain(node.domain) or not images or len(results) != 1 or not known:
        return False
    axis = node.attributes.get("axis")
    if joins_channels(node.op, None if axis is None else axis.value):
        return len(images) == len(node.inputs)
    others = [types.get(v) for v in node.inputs if v is not None and v not in stored]
    return (
        node.op in ELEMENTWISE
        and all(types[v] == types[results[0]] for v in images)
        and all(isinstance(kind, TensorType) and kind.shape == () for kind in others)
    )


def _channels(value: Value, types: Mapping[Value, Type]) -> int:
    """Return the number of channels of an image, 0 where it is unknown."""
    kind = types.get(value)
    shape = kind.shape if isinstance(kind, TensorType) else None
    return shape[1] if shape is not None and len(shape) == RANK and isinstance(shape[1], int) else 0


def _plain(
    node: Node, stored: set[Value], types: Mapping[Value, Type], size: int, b: DetachedBuilder
) -> Value:
    """Build a call on images without blocks, and store its result in blocks."""
    inputs = [
        emit_unblocked(b, v, _channels(v, types), size) if v is not None and v in stored else v
        for v in node.inputs
    ]
    (result,) = (v for v in node.outputs if v is not None)
    attributes: dict[str, Any] = dict(node.attributes)
    y: Value = b.op(node.op, *inputs, **attributes)
    return emit_blocked(b, y, _channels(result, types), size)


def _write_out(model: Model, calls: set[Node], registry: Registry) -> None:
    """Replace calls by the bodies of their operators, where these can be written."""
    rewriter = Rewriter(model, registry=registry)

    def plain(node: Node) -> list[Node] | None:
        version = registry.find_version(DOMAIN, node.op, model.opset(DOMAIN)) if node in calls else None
        if version is None or version.find("body") is None:
            return None
        try:
            return rewriter.expand(node, version, "body")
        except Unconvertible:
            return None

    apply_rules(model, plain)
