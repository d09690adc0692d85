"""What a run asks of the limits before and after a node, without the arrays."""

import numpy as np

import sabir
from sabir import Builder
from sabir.base import budget
from sabir.evaluation._sizes import OutputSizes
from sabir.opsets import STANDARD
from sabir.schema import Call, Scope

F = np.float32


def of(shape, kind=F):
    """An array of any shape that takes no memory."""
    return np.broadcast_to(np.zeros((), kind), shape)


def step(op, *inputs, results, opset=21, **attributes):
    """Ask what a run asks before a node and after it; `results` are the shapes of what it gives."""
    b = Builder(opset)
    b.output(b.op(op, *(None if x is None else b.input(f"i{k}", x.dtype, x.shape) for k, x in enumerate(inputs)),
                  **attributes))  # fmt: skip
    node, scope = next(iter(b.graph)), Scope.of(sabir.Model(b.graph, b.opsets, 10), STANDARD)
    version, values = scope.callee(node), {name: a.value for name, a in node.attributes.items()}
    OutputSizes(version, values, Call((True,), version.since)).check(inputs, budget().unchecked_elements)
    for shape in results:
        budget().allocate(of(shape).nbytes)
