"""Weights alone as integers: the products are computed in the float type of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import INT4, INT8, UINT4, UINT8
from sabir.quantization._codes import codes_of_blocks, codes_of_channels
from sabir.quantization._editing import Edit
from sabir.quantization._tables import quantize_table
from sabir.quantization._weights import LEAST, Table, Weighted, weighted_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Model
    from sabir.quantization._codes import Codes
    from sabir.quantization._exclusion import Exclusion
    from sabir.quantization._report import NodeReport
    from sabir.schema import Registry

OPSET = 21  # DequantizeLinear has blocks and integers of 4 bits from here on
_TYPES = {(4, True): INT4, (4, False): UINT4, (8, True): INT8, (8, False): UINT8}


def quantize_weights(
    model: Model, bits: int, block: int, excluded: Exclusion, registry: Registry, *, symmetric: bool
) -> tuple[Model, tuple[NodeReport, ...]]:
    """Change a model: weights become integers of 4 or 8 bits with scales, and DequantizeLinear reads them.

    Each scale is for `block` weights along the axis that is summed, or with 0 for an output channel.
    """
    to = _TYPES[bits, symmetric]
    edit = Edit(model, registry)

    def compute(weighted: Weighted) -> Codes:
        array = weighted.array()
        if block:
            return codes_of_blocks(array, weighted.summed, block, to)
        return codes_of_channels(array, weighted.channel, to)

    def reports() -> Iterator[NodeReport]:
        for found in list(weighted_nodes(model, excluded)):
            if isinstance(found, Table):
                yield quantize_table(edit, found)
            elif not isinstance(found, Weighted):
                yield found.report()
            elif block and found.data.shape[found.summed] < LEAST:
                size = found.data.shape[found.summed]
                yield found.wide(
                    f"a block would have {size} weights, and saves little with fewer than {LEAST}"
                )
            else:
                yield found.quantized(to.name, edit.dequantize_weights(found, compute).error)

    done = tuple(reports())
    return edit.finish(), done
