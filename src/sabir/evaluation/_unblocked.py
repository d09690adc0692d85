"""Operators on blocks of channels, replaced by their bodies before a model is scheduled."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sabir.base import run_with_limits
from sabir.conversion import convert_in_place
from sabir.inference import Inference
from sabir.opsets.families.windows.blocked_channels import BODY_OPSET, DOMAIN
from sabir.rewrite import InlineFunctions, Rewriter, apply_rules, one_size_of_blocks, run_passes
from sabir.schema import Unconvertible
from sabir.simplification import Simplify

if TYPE_CHECKING:
    from sabir.base import Limits
    from sabir.ir import Model, Node
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
        _write_out(copy, _valid_calls(copy, registry), registry)
    run_passes(copy, [Simplify(registry=registry)])
    return copy


def _valid_calls(model: Model, registry: Registry) -> set[Node]:
    """Return the calls on blocks that inference does not refuse."""
    inference = Inference(model, registry=registry)
    inference.run()
    calls = (node for graph in model.graphs() for node in graph.all_nodes() if node.domain == DOMAIN)
    return {node for node in calls if all(v is None or v in inference.types for v in node.outputs)}


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
