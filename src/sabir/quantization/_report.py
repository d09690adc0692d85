"""The report of a quantization: which nodes became integers, which stayed wide, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import counted

if TYPE_CHECKING:
    from sabir.ir import Model


@dataclass(frozen=True)
class NodeReport:
    """One node that has weights or could have been quantized.

    `to` is the element type that its weights, or without weights its operands, have now; it is empty where
    the node stays wide, for the `reason`. `error` is the root of the mean squared error of the weights,
    divided by the root of their mean square; None for a node without weights. `damage` is the error that this
    node alone does to the results, relative in the same way; None where no budget asked for it.

    `shift` is the mean error of output channels that bias correction has put into the bias: its root mean
    square, relative to that of the results. It is None where no bias was corrected; `uncorrected` says why
    one could not be. `equalized` is the largest factor by which equalization has scaled a channel, and None
    where it has scaled none.

    >>> NodeReport("graph/node[0] 'MatMul'", 'dense', 'MatMul', 'int8', error=0.004).is_quantized
    True
    """

    location: str
    name: str
    op: str
    to: str = ""
    reason: str = ""
    error: float | None = None
    damage: float | None = None
    shift: float | None = None
    uncorrected: str = ""
    equalized: float | None = None

    @property
    def is_quantized(self) -> bool:
        """Whether the node was quantized."""
        return bool(self.to)


@dataclass(frozen=True)
class Quantization:
    """A quantized model, with a report for each node in the order of the model.

    `opset` is the version of the default domain that the model was converted to, None where it had one that
    is new enough. `damage` is the relative error of the results, where a budget asked for it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }''')
    >>> found = quantize_and_report(model, weights_only=True, block=0)
    >>> [(report.op, report.to) for report in found.nodes], found.opset
    ([('MatMul', 'int8')], None)
    """

    model: Model
    nodes: tuple[NodeReport, ...] = ()
    opset: int | None = None
    damage: float | None = None

    def _repr_html_(self) -> str:
        from sabir.drawing import Number, titled_table  # ruff: ignore[import-outside-top-level]  for notebooks alone

        columns = ("node", "operator", "to", Number("error of weights"), Number("damage"), "reason")
        rows = (
            (n.name or n.location, n.op, n.to, Number(_shown(n.error)), Number(_shown(n.damage)), n.reason)
            for n in self.nodes
        )
        done = sum(n.is_quantized for n in self.nodes)
        damage = "" if self.damage is None else f", relative error of the results {self.damage:.3g}"
        title = f"{done:,} of {counted(len(self.nodes), 'node')} quantized{damage}"
        return titled_table(title, columns, rows)


def _shown(error: float | None) -> str:
    return "" if error is None else f"{error:.3g}"
