"""The layers that compute something else while a model is trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.ir import Node

STATISTICS = slice(3, 5)  # of the inputs of a BatchNormalization: its running mean and variance


def changes_in_training(node: Node) -> bool:
    """Return whether a node calls an operator that computes something else in training."""
    return node.domain in {"", "ai.onnx"} and node.op in {"BatchNormalization", "Dropout"}


__all__ = ["STATISTICS", "changes_in_training"]
