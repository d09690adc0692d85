"""Tables: matrices of which Gather reads rows become integers of 8 bits, with a scale for each row.

What is read is multiplied by its scales, `Mul (Cast (Gather (integers, i)), Gather (scales, i))`: a run reads
no other rows, on any runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import INT8
from sabir.quantization._codes import codes_of_channels
from sabir.quantization._report import NodeReport

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.quantization._codes import Codes
    from sabir.quantization._editing import Edit
    from sabir.quantization._weights import Table
    from sabir.rewriting import DetachedBuilder


def quantize_table(edit: Edit, table: Table) -> NodeReport:
    """Let a Gather read integers, and return its report; nodes with the same table share the integers."""
    codes, node = edit.codes(table, _rows), table.node

    def build(b: DetachedBuilder) -> Value:
        integers = b.Gather(edit.stored(b, table, "_quantized", codes.integers), table.indices)
        scales = b.Gather(edit.stored(b, table, "_scale", codes.scale[:, None]), table.indices)
        return b.Mul(b.Cast(integers, to=table.data.element.number), scales)

    report = NodeReport(str(table.location), node.name, node.op, INT8.name, error=codes.error)
    edit.replace(node, build)
    return report


def _rows(table: Table) -> Codes:
    return codes_of_channels(table.data.array(), 0, INT8)
