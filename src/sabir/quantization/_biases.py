"""Where the bias of a product with constant weights is, so that it can be changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import FLOAT
from sabir.ir import Node, canonical_domain
from sabir.quantization._weights import attribute, only_use
from sabir.rewriting import constant_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from sabir.ir import Array, Tensor, Value
    from sabir.quantization._editing import Edit
    from sabir.quantization._weights import Weighted

BIAS = 2  # the input of Gemm and Conv


@dataclass(frozen=True)
class Bias:
    """The constant that is added to the sums of a product: input `slot` of `node`.

    `data` is None where Conv or Gemm has no bias yet. The node multiplies the input by `factor`, `beta` of
    Gemm.
    """

    node: Node
    slot: int
    data: Tensor | None
    factor: float = 1.0

    @property
    def stem(self) -> str:
        """The beginning of names of what replaces the bias."""
        value = self.node.inputs[self.slot] if self.slot < len(self.node.inputs) else None
        return "bias" if value is None else value.name or "bias"

    def plus(self, shift: Array) -> Array:
        """Return the bias that shifts each output channel by a number, as float32."""
        before = np.zeros(1, np.float32) if self.data is None else self.data.array()
        return np.asarray(before + shift / self.factor, np.float32)

    def store(self, edit: Edit, data: Array) -> None:
        """Let the node read other data; other nodes that read the same bias keep theirs."""
        edit.set_constant(self.node, self.slot, self.stem, data)


def bias_of(weighted: Weighted, state: Collection[Value]) -> Bias | str:
    """Return the bias of a product, or the reason why it has none that can change.

    That of MatMul is the constant operand of the one Add that reads its result.
    """
    node = weighted.node
    if node.op == "MatMul":
        return _added(node, state)
    factor = attribute(node, "beta", 1.0) if node.op == "Gemm" else 1.0
    if not factor:
        return "it multiplies its bias by 0"
    value = node.inputs[BIAS] if len(node.inputs) > BIAS else None
    if value is None:
        return Bias(node, BIAS, None, factor)
    return _constant(Bias(node, BIAS, constant_of(value, state), factor))


def _added(node: Node, state: Collection[Value]) -> Bias | str:
    use = only_use(node)
    reader = None if use is None else use.user
    if use is None or not isinstance(reader, Node) or reader.op != "Add" or canonical_domain(reader.domain):
        return "no Add that is its only reader gives it a bias"
    slot = 1 - use.slot
    value = reader.inputs[slot]
    return _constant(Bias(reader, slot, None if value is None else constant_of(value, state)))


def _constant(bias: Bias) -> Bias | str:
    if bias.data is None:
        return "its bias is no constant"
    if bias.data.element is not FLOAT:
        return f"its bias is {bias.data.element}"
    return bias
