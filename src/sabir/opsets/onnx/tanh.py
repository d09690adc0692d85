"""Tanh: the hyperbolic tangent, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import declare_first
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, Example, Operator

tanh = Operator("Tanh", summary="The hyperbolic tangent of each element.")

v1 = declare_first(tanh, "The input's shape; every value between -1 and 1.", names=("input", "output"))
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v13 = v6.widen(13, T=BFLOAT16)

v1.infer(same_as_first)
v1.lower(kernels.elementwise("tanh"))
v1.evaluate(through_float32(np.tanh))


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Mul(g.dy, g.Sub(1, g.Mul(g.y(), g.y())))


@tanh.examples
def examples() -> Iterator[Example]:
    # tanh(ln 2) = (4 - 1) / (4 + 1), tanh(ln 3) = (9 - 1) / (9 + 1)
    x = np.array([np.log(2), -np.log(3), 0, np.inf, -np.inf, np.nan])
    y = np.array([0.6, -0.8, 0, 1, -1, np.nan])
    for opset in (1, 6, 13):
        yield Example(opset, x, expect=[y], tolerance=1e-15)
        yield Example(opset, x.astype(np.float32), expect=[y.astype(np.float32)], tolerance=2e-7)
        yield Example(opset, x.astype(np.float16), expect=[y.astype(np.float16)], tolerance=1e-3)
        yield Example(opset, 0.0, expect=[0])
        yield Example(opset, np.zeros((0, 2), np.float32), expect=[np.zeros((0, 2), np.float32)])
    half = ml_dtypes.bfloat16
    yield Example(13, x.astype(half), expect=[y.astype(half)], tolerance=1e-2)
