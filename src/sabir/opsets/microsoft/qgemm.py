"""QGemm: the product of quantized matrices plus an integer matrix, as quantized numbers or as floats."""
# ruff: file-ignore[invalid-argument-name]  transA and transB are the operator's names

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.elements import FLOAT, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.products.gemm_shapes import gemm_shape
from sabir.opsets.families.quantization import quantization, scaled
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.quantization.quantized_products import integer_product
from sabir.opsets.families.shapes.ranks import check_broadcast, hold
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

qgemm = Operator(
    "QGemm",
    domain="com.microsoft",
    summary="`((A' - a_zero_point) @ (B' - b_zero_point) + C) * (alpha * a_scale * b_scale)`, quantized if "
    "there is a `y_zero_point`; A' and B' are A and B, transposed if `transA`, `transB`.",
    body_opset=18,
)

T = Constraint("T", tensors("float"))
TA = Constraint("TA", tensors("int8", "uint8"))
TB = Constraint("TB", tensors("int8", "uint8"))
TC = Constraint("TC", tensors("int32"))
TYZ = Constraint("TYZ", tensors("int8", "uint8"))
TY = Constraint("TY", tensors("float", "int8", "uint8"))

v1 = qgemm.first(
    1,
    inputs=[
        Input("A", TA, "Shape (M, K), or (K, M) with `transA`."),
        *scaled.parameters("a_scale", "a_zero_point", TA, "A", optional=False, scale_type=T),
        Input("B", TB, "Shape (K, N), or (N, K) with `transB`."),
        Input("b_scale", T, "The scale of `B`: a scalar or (N)."),
        Input("b_zero_point", TB, "The number in `B` that represents 0: a scalar or (N)."),
        Input(
            "C",
            TC,
            "The summand, of a shape that broadcasts to (M, N), in units of `alpha * a_scale * b_scale`.",
            optional=True,
        ),
        Input("y_scale", T, "The scale of `Y`, a scalar; not used without a zero point.", optional=True),
        Input(
            "y_zero_point",
            TYZ,
            "The number in `Y` that represents 0, a scalar; without it `Y` is float.",
            optional=True,
        ),
    ],
    outputs=[Output("Y", TY, "Shape (M, N).")],
    attributes=[
        Attribute("transA", "int", "1: A is transposed first.", default=0),
        Attribute("transB", "int", "1: B is transposed first.", default=0),
        Attribute("alpha", "float", "The factor of the product.", default=1.0),
    ],
)


@v1.infer
def infer(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    a: TensorType, a_scale: TensorType, a_zero: TensorType, b: TensorType, b_scale: TensorType,
    b_zero: TensorType, c: TensorType | None = None, y_scale: TensorType | None = None,
    y_zero: TensorType | None = None, /, *, transA: int, transB: int, **_: Any,
) -> TensorType:  # fmt: skip
    scaled.check(A=(a_scale, a_zero), Y=(y_scale, y_zero))
    shape = gemm_shape(a, b, c, transposed=(transA, transB))
    for name, parameter in (("b_scale", b_scale), ("b_zero_point", b_zero)):
        quantization.check_filters(name, parameter, shape[1])
    check_broadcast("C", c, shape)
    return TensorType(FLOAT if y_zero is None else y_zero.element, shape)


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    a: Array, a_scale: Array, a_zero: Array, b: Array, b_scale: Array, b_zero: Array, c: Array | None = None,
    y_scale: Array | None = None, y_zero: Array | None = None, /, *, transA: int, transB: int, alpha: float,
) -> Array:  # fmt: skip
    hold(
        infer, a, a_scale, a_zero, b, b_scale, b_zero, c, y_scale, y_zero,
        transA=transA, transB=transB, alpha=alpha,
    )  # fmt: skip
    y = integer_product(a.T if transA else a, b.T if transB else b, a_zero, _columns(b_zero))
    wide = (y if c is None else y + c).astype(np.float32)
    scale = np.float32(alpha) * a_scale.reshape(()) * _columns(b_scale)
    if y_zero is None:
        return wide * scale
    factor = scale if y_scale is None else scale / y_scale.reshape(())
    return quantization.requantized(wide, factor, y_zero.reshape(()), element(y_zero.dtype))


def _columns(parameter: Array) -> Array:
    """Return a parameter of one element, or of one for each column, that broadcasts to the product."""
    return parameter.reshape(()) if parameter.size == 1 else parameter


@v1.lower
def lower(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    a: Expression, a_scale: Expression, a_zero: Expression, b: Expression, b_scale: Expression,
    b_zero: Expression, c: Expression | None = None, y_scale: Expression | None = None,
    y_zero: Expression | None = None, /, *, transA: int, transB: int, alpha: float,
) -> Expression:  # fmt: skip
    left, right = loops.permute(a, (1, 0)) if transA else a, loops.permute(b, (1, 0)) if transB else b
    kernels.check_exact(left.shape[-1:])
    y = kernels.multiplied(left, right, a_zero, b_zero)
    if c is not None:
        loops.expand(c, y.shape)  # it may not broadcast the product
        y = loops.apply("add", y, c)
    scale = loops.apply("mul", kernels.only(a_scale), alpha) if alpha != 1 else kernels.only(a_scale)
    factor = loops.apply("mul", scale, kernels.columns(b_scale))
    if y_zero is None:
        return loops.apply("mul", loops.cast(y, "float"), factor)
    if y_scale is not None:
        factor = loops.apply("div", factor, kernels.only(y_scale))
    return kernels.requantized(y, factor, y_zero)


@v1.body
def body(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    b: Builder, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
    c: Value | None = None, y_scale: Value | None = None, y_zero: Value | None = None, /, *, transA: int,
    transB: int, alpha: float,
) -> Value:  # fmt: skip
    left, right = b.Transpose(x, perm=[1, 0]) if transA else x, b.Transpose(w, perm=[1, 0]) if transB else w
    y = b.MatMulInteger(left, right, graphs.single(b, x_zero), graphs.columns(b, w_zero))
    wide = b.Cast(y if c is None else b.Add(y, c), to=FLOAT.number)
    scale = Numbers(b, FLOAT).op("Mul", graphs.single(b, x_scale), alpha) if alpha != 1 else x_scale
    factor = b.Mul(graphs.single(b, scale), graphs.columns(b, w_scale))
    if y_zero is None:
        return b.Mul(wide, factor)
    if y_scale is not None:
        factor = b.Div(factor, graphs.single(b, y_scale))
    return graphs.requantized(b, wide, factor, y_zero)


v1.absent("gradient", "the operands and most results are integers, which have no gradients")


@qgemm.examples
def examples() -> Iterator[Example]:
    f, u, s = np.float32, np.uint8, np.int8
    a, b, c = np.array([[3, 5], [1, 0]]), np.array([[1, 2, 3], [4, 6, 5]]), np.array([8, -8, 1], np.int32)
    # by hand: a - 1 is [[2, 4], [0, -1]], b - 1 is [[0, 1, 2], [3, 5, 4]]
    y = np.array([[12, 22, 20], [-3, -5, -4]])
    for left, right in ((u, u), (u, s), (s, s)):
        one = a.astype(left), f(0.5), left(1)
        other = b.astype(right), f(0.5), right(1)
        quarters = np.rint((y + c) / 4) + 10
        yield Example(1, *one, *other, c, f(1), left(10), expect=[quarters.astype(left)])
        yield Example(1, *one, *other, expect=[(y / 4).astype(f)])
        flipped = (one[0].T, *one[1:], other[0].T, np.array([0.5, 1, 0.1], f), np.array([1, 2, 0], right))
        attributes: dict[str, Any] = {"transA": 1, "transB": 1, "alpha": 0.7}
        yield Example(1, *flipped, c.reshape(1, 3), f(0.25), left(3), **attributes)
        yield Example(1, *flipped, np.array([[5], [9]], np.int32), **attributes)
        yield Example(1, *one, *other, np.int32(5), f(1), None)
        yield Example(1, *one, *other, None, None, left(100), alpha=2.0)
        yield Example(1, one[0][:0], *one[1:], *other, c, f(1), left(1), expect=[np.zeros((0, 3), left)])
    every = np.arange(256, dtype=u).reshape(256, 1), f(1), u(0), np.array([[1]], s), f(1), s(0), None
    ties = np.rint(np.arange(256) / 2).reshape(256, 1)  # ties are rounded before the zero point is added
    yield Example(1, *every, f(2), u(1), expect=[(ties + 1).astype(u)])
