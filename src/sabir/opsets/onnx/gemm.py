"""Gemm: a scaled matrix product plus a scaled matrix."""
# ruff: file-ignore[invalid-argument-name]  transA and transB are the standard's names

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value
from sabir.loops import INTEGERS, Expression
from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS
from sabir.opsets.families.products import scaled_products
from sabir.opsets.typing import Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

gemm = Operator(
    "Gemm", summary="`alpha * A' @ B' + beta * C`; A' and B' are A and B, transposed if `transA`, `transB`."
)

T = Constraint("T", FLOATS)

A = Input("A", T, "Shape (M, K), or (K, M) with `transA`.", differentiable=True)
B = Input("B", T, "Shape (K, N), or (N, K) with `transB`.", differentiable=True)
C = Input("C", T, "The summand, of a shape that broadcasts to (M, N).", differentiable=True)

v1 = gemm.first(
    1,
    inputs=[A, B, C],
    outputs=[Output("Y", T, "Shape (M, N).", differentiable=True)],
    attributes=[
        Attribute("beta", "float", "The factor of C; with 0, C is not read.", default=1.0),
        Attribute("broadcast", "int", "0: C must have the shape (M, N).", default=0),
        Attribute("transB", "int", "1: B is transposed first.", default=0),
        Attribute("alpha", "float", "The factor of the product.", default=1.0),
        Attribute("transA", "int", "1: A is transposed first.", default=0),
    ],
)
v6 = v1.restate(6, "The output may no longer overwrite C.")
v7 = v6.evolve(7, "C always broadcasts as in numpy, to the output's shape only.", drop=["broadcast"])
v9 = v7.widen(9, T=LARGE_INTEGERS)
v11 = v9.evolve(11, "C is optional.", inputs=[A, B, replace(C, optional=True)], widen={"T": LARGE_INTEGERS})
v13 = v11.widen(13, T=BFLOAT16)


v1.infer(scaled_products.infer)
v1.evaluate(scaled_products.evaluate)


@v1.lower
def lower(
    a: Expression,
    b: Expression,
    c: Expression | None = None,
    /,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
) -> Expression:
    if a.element in INTEGERS and not (alpha.is_integer() and beta.is_integer()):
        kind, added = a.element, None if c is None else loops.cast(c, "double")
        wide = loops.cast(a, "double"), loops.cast(b, "double"), added
        return loops.cast(lower(*wide, alpha=alpha, beta=beta, transA=transA, transB=transB), kind)
    y = loops.contract(loops.permute(a, (1, 0)) if transA else a, loops.permute(b, (1, 0)) if transB else b)
    if alpha != 1:
        y = loops.apply("mul", y, alpha)
    if c is None or beta == 0:
        return y
    loops.expand(c, y.shape)  # it may not broadcast the product
    return loops.apply("add", y, c if beta == 1 else loops.apply("mul", c, beta))


@v7.upgrade
def without_broadcast(b: Builder, a: Value, w: Value, c: Value, /, *, broadcast: int, **rest: Any) -> Value:
    return b.Gemm(a, w, c, **rest)


@v7.downgrade
def with_broadcast(b: Builder, a: Value, w: Value, c: Value, /, **attributes: Any) -> Value:
    return b.Gemm(a, w, c, broadcast=1, **attributes)


@v11.upgrade
def unchanged(b: Builder, a: Value, w: Value, c: Value, /, **attributes: Any) -> Value:
    return b.Gemm(a, w, c, **attributes)


@v11.downgrade
def with_zero(b: Builder, a: Value, w: Value, c: Value | None = None, /, **attributes: Any) -> Value:
    """Replace an absent C by a zero."""
    if c is None:
        known = [v.type.element for v in (a, w) if isinstance(v.type, TensorType) and v.type.element.number]
        if not known:
            raise Unconvertible("the element type is unknown, and Gemm:9 needs a C of that type")
        c = b.initializer("zero", np.zeros((), known[0].dtype))
    return b.Gemm(a, w, c, **attributes)


@v13.gradient
def gradient(
    g: Gradient,
    a: Value,
    b: Value,
    c: Value | None = None,
    /,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
) -> tuple[Value | None, ...]:
    dy = g.dy
    if transA:
        da = g.Gemm(b, dy, alpha=alpha, transA=transB, transB=1)
    else:
        da = g.Gemm(dy, b, alpha=alpha, transB=1 - transB)
    if transB:
        db = g.Gemm(dy, a, alpha=alpha, transA=1, transB=transA)
    else:
        db = g.Gemm(a, dy, alpha=alpha, transA=1 - transA)
    if c is None:
        return da, db, None
    dc = g.fit(dy, c)
    return da, db, dc if beta == 1 else g.Mul(dc, beta)


@gemm.examples
def examples() -> Iterator[Example]:
    a = np.array([[1, 2], [3, 4], [0, -1]], np.float32)
    b = np.array([[1, 2], [-1, 0.5]], np.float32)
    ab = np.array([[-1, 3], [-1, 8], [1, -0.5]], np.float32)  # by hand
    c = np.arange(6, dtype=np.float32).reshape(3, 2)
    for opset in (1, 6, 7, 9, 11, 13):
        yield Example(opset, a, b, c, expect=[ab + c])
        yield Example(opset, a.T, b.T, c, transA=1, transB=1, alpha=0.5, beta=2.0, expect=[ab / 2 + 2 * c])
    for opset in (1, 6):
        yield Example(opset, a, b, c[0], broadcast=1, expect=[ab + c[0]])
    for addend in (3, c[0], c[:, :1], c[:1]):
        yield Example(7, a, b, addend, beta=-1.0, expect=[ab - addend])
    for opset in (11, 13):
        yield Example(opset, a, b, expect=[ab])
        yield Example(opset, a, b, None, alpha=2.0, expect=[2 * ab])
    yield Example(13, a, b, np.full((3, 2), np.nan, np.float32), beta=0.0, expect=[ab])
    yield Example(7, np.zeros((2, 0)), np.zeros((0, 3)), np.ones(3), expect=[np.ones((2, 3))])
    for kind in (np.float16, ml_dtypes.bfloat16):
        yield Example(13, a.astype(kind), b.astype(kind), c.astype(kind), expect=[(ab + c).astype(kind)])
    top = np.array([[2**31]], np.uint32)
    yield Example(9, top, [[3]], 7, expect=[top + 7])
    yield Example(9, -top.astype(np.int64), top.astype(np.int64), [1], beta=-2.0, expect=[[[-(2**62) - 2]]])
    yield Example(11, np.array([[3]], np.int32), [[5]], alpha=0.5, expect=[[[7]]])
