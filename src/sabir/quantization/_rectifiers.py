"""Rectifiers: operators that limit their operand, which rounding to integers may do anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import canonical_domain
from sabir.rewriting import constant_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from sabir.ir import Node, Value
    from sabir.quantization._ranges import Quantized


def limits(node: Node, state: Collection[Value]) -> tuple[float, float] | None:
    """Return the least and the largest result of Relu and Clip; None for limits that a run decides.

    >>> limits(sabir.ir.Node('Relu'), ())
    (0.0, inf)
    """
    if canonical_domain(node.domain):
        return None
    if node.op == "Relu":
        return 0.0, np.inf
    if node.op != "Clip":
        return None
    found = [-np.inf, np.inf]
    for side, value in enumerate(node.inputs[1:3]):
        if value is not None:
            data = constant_of(value, state)
            if data is None:
                return None
            found[side] = float(data.array())
    return found[0], found[1]


def is_implied(node: Node, parameters: Quantized, state: Collection[Value]) -> bool:
    """Return whether integers of a result are the same without the rectifier that computes it.

    They are if both limits become the least and the largest integer: rounding is monotonic, and clips.
    """
    found = limits(node, state)
    if found is None:
        return False
    kind = np.iinfo(parameters.zero.dtype)
    least, most = (np.rint(np.float32(limit) / parameters.scale) + int(parameters.zero) for limit in found)
    return bool(least <= kind.min and most >= kind.max)
