"""Pad: elements added around a tensor, or removed from its ends."""

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Item, TensorType, Value
from sabir.loops import Expression, Lowering, Size
from sabir.opsets.families.indexing.move_gradients import moved_back, numbers_of
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes import contents, padding, padding_kernels
from sabir.opsets.families.shapes.axes import as_input, as_ints, ints
from sabir.opsets.families.shapes.padding import by_axis
from sabir.opsets.families.shapes.ranks import as_list, check_one, check_rank
from sabir.opsets.families.shapes.size_vectors import padded_along
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT8,
    FLOATS,
    INT4,
    NUMBERS,
    SMALL_TYPES,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    one_of,
    tensors,
)

pad = Operator(
    "Pad", summary="`data` with `pads` elements added before and after each axis, or removed if negative."
)

T = Constraint("T", FLOATS)
_PADS = "The elements to add before each axis, then after each; a negative number removes elements."
_MODE = "constant; edge: repeats the ends; reflect: mirrors at the ends; wrap: continues at the other end."
_MODES = ("constant", "reflect", "edge")

v1 = pad.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The padded tensor.", differentiable=True)],
    attributes=[
        Attribute("value", "float", "The padding of the mode constant.", default=0.0),
        Attribute("mode", "string", _MODE, default="constant", values=one_of(*_MODES)),
        Attribute("paddings", "ints", _PADS, required=True),
    ],
)
v2 = v1.evolve(
    2,
    "Renames `paddings` to `pads`, which may be negative.",
    drop=["paddings"],
    add=[Attribute("pads", "ints", _PADS, required=True)],
)
v11 = v2.evolve(
    11,
    "`pads` and the constant become inputs; admits all numbers.",
    inputs=[
        Input("data", T, "A tensor of any shape.", differentiable=True),
        Input("pads", "tensor(int64)", _PADS, differentiable=False),
        Input(
            "constant_value",
            T,
            "The padding of the mode constant: one element; 0, the empty string or False by default.",
            optional=True,
            differentiable=False,
        ),
    ],
    drop=["value", "pads"],
    widen={"T": NUMBERS},
)
v13 = v11.widen(13, T=CLASSIC | BFLOAT16)
Tind = Constraint("Tind", tensors("int32", "int64"))
v18 = v13.extend(
    18,
    "`axes` states the axes that `pads` applies to.",
    inputs=[
        Input(
            "axes",
            Tind,
            "The axes to pad, from the back if negative; all by default.",
            optional=True,
            differentiable=False,
        )
    ],
)
v19 = v18.restate(19, "Adds the mode wrap.", values={"mode": one_of(*_MODES, "wrap")})
v25 = v19.widen_stepwise({**SMALL_TYPES, 21: FLOAT8 | INT4}, "T")

# ---------------------------------------------------------------- types


@v1.infer
def infer_paddings(data: TensorType, /, *, paddings: Sequence[int], mode: str, value: float) -> TensorType:
    return padding.inferred(data, tuple(paddings), None, mode, value)


@v2.infer
def infer_attributes(data: TensorType, /, *, pads: Sequence[int], mode: str, value: float) -> TensorType:
    return padding.inferred(data, tuple(pads), None, mode, value)


@v11.infer
def infer(
    data: TensorType,
    pads: TensorType,
    constant: TensorType | None = None,
    axes: TensorType | None = None,
    /,
    *,
    mode: str,
) -> TensorType:
    check_rank("pads", pads, 1)
    check_rank("axes", axes, 1)
    _check_filling(constant)
    named = None if axes is None else contents.ints(axes.known)
    if axes is not None and named is None:
        return TensorType(data.element, None if data.shape is None else (None,) * len(data.shape))
    sizes = padding.known_pads(pads, data.rank if named is None else len(named))
    if sizes is None:
        return TensorType(data.element)
    return padding.inferred(data, sizes, named, mode, _filling(data, constant))


def _check_filling(constant: TensorType | Array | None) -> None:
    """Raise InferenceError for a constant that is not a scalar; an empty one counts as absent."""
    if constant is not None and constant.size != 0:
        check_one("constant_value", constant)


def _filling(data: TensorType, constant: TensorType | None) -> Item:
    if constant is None:
        return 0 if data.element.is_integer else None
    return constant.known[0] if constant.known else None


# ---------------------------------------------------------------- values


@v1.evaluate
def evaluate_paddings(data: Array, /, *, paddings: Sequence[int], mode: str, value: float) -> Array:
    return padding.with_pads(data, paddings, None, mode, value)


@v2.evaluate
def evaluate_attributes(data: Array, /, *, pads: Sequence[int], mode: str, value: float) -> Array:
    return padding.with_pads(data, pads, None, mode, value)


@v11.evaluate
def evaluate(
    data: Array, pads: Array, constant: Array | None = None, axes: Array | None = None, /, *, mode: str
) -> Array:
    _check_filling(constant)
    named = None if axes is None else as_list("axes", axes)
    filling: object = "" if data.dtype == object else 0
    if constant is not None and constant.size:
        filling = constant.reshape(-1)[0]
    return padding.with_pads(data, as_list("pads", pads), named, mode, filling)


# ---------------------------------------------------------------- kernels


@v1.lower
def lower_paddings(
    data: Expression, /, *, paddings: Sequence[int], mode: str, value: float, call: Lowering
) -> Expression:
    return _lowered(data, paddings, None, mode, value, call=call)


@v2.lower
def lower_attributes(
    data: Expression, /, *, pads: Sequence[int], mode: str, value: float, call: Lowering
) -> Expression:
    return _lowered(data, pads, None, mode, value, call=call)


@v11.lower
def lower(
    data: Expression, pads: Expression, constant: Expression | None = None, axes: Expression | None = None, /,
    *, mode: str, call: Lowering,
) -> Expression:  # fmt: skip
    named = None if axes is None else kernels.integers_of(axes, "`axes`")
    filling: float = 0
    if constant is not None and constant.shape != (0,) and mode == "constant":
        filling = kernels.number_of(constant, "the constant")
    return _lowered(data, kernels.sizes_of(pads, "`pads`"), named, mode, filling, call=call)


def _lowered(
    data: Expression, pads: Sequence[Size], axes: Sequence[int] | None, mode: str, filling: float,
    *, call: Lowering,
) -> Expression:  # fmt: skip
    begin, end = by_axis(pads, axes, data.rank)
    if mode == "constant":
        return padding_kernels.filled(data, begin, end, filling, call.shape())
    return padding_kernels.repeated(data, begin, end, mode)


# ---------------------------------------------------------------- adapters


@v2.upgrade
def rename(b: Builder, data: Value, /, *, paddings: Sequence[int], mode: str, value: float) -> Value:
    return b.Pad(data, pads=ints("pads", paddings), mode=mode, value=float(value))


@v2.downgrade
def rename_back(b: Builder, data: Value, /, *, pads: Sequence[int], mode: str, value: float) -> Value:
    if any(p < 0 for p in pads):
        raise Unconvertible("Pad:1 cannot remove elements")
    return b.Pad(data, paddings=ints("paddings", pads), mode=mode, value=float(value))


@v11.upgrade
def attributes_become_inputs(
    b: Builder, data: Value, /, *, pads: Sequence[int], mode: str, value: float
) -> Value:
    more = [as_input(b, "pads", pads)]
    if value:
        if not isinstance(data.type, TensorType) or not data.type.element.number:
            raise Unconvertible("the constant has the element type of `data`, which is unknown")
        more.append(b.initializer("constant", np.array(value, data.type.element.dtype)))
    return b.Pad(data, *more, mode=mode)


@v11.downgrade
def inputs_become_attributes(
    b: Builder, data: Value, pads: Value, constant: Value | None = None, /, *, mode: str
) -> Value:
    if not isinstance(data.type, TensorType) or not data.type.element.is_float:
        raise Unconvertible("Pad:2 admits floating-point tensors only")
    numbers = () if constant is None or mode != "constant" else _float_of(constant)
    return b.Pad(
        data, pads=ints("pads", as_ints("pads", pads)), mode=mode, value=float(numbers[0]) if numbers else 0.0
    )


def _float_of(constant: Value) -> Sequence[float]:
    known = constant.type.known if isinstance(constant.type, TensorType) else None
    numbers = [k for k in known or () if isinstance(k, (int, float))]
    if not numbers or np.not_equal(np.float32(numbers[0]), numbers[0]):
        raise Unconvertible("the constant must be known, and a float32, to become an attribute")
    return numbers


@v18.downgrade
def pads_for_every_axis(
    b: Builder,
    data: Value,
    pads: Value,
    constant: Value | None = None,
    axes: Value | None = None,
    /,
    *,
    mode: str,
) -> Value:
    if axes is not None:
        rank = data.type.rank if isinstance(data.type, TensorType) else None
        if rank is None:
            raise Unconvertible("`axes` of a tensor of unknown rank")
        begin, end = by_axis(as_ints("pads", pads), as_ints("axes", axes), rank)
        pads = as_input(b, "pads", [*begin, *end])
    return b.Pad(data, pads, constant, mode=mode)


@v18.gradient
def gradient(
    g: Gradient,
    data: Value,
    pads: Value,
    constant: Value | None = None,
    axes: Value | None = None,
    /,
    *,
    mode: str,
) -> tuple[Value, None, Value | None, None]:
    """Remove the padding; an element that a mode repeats gets the gradients of all copies."""

    def padded_as(x: Value, pads: Value, number: Value | None = None, **attributes: str) -> Value:
        if axes is None:
            return g.Pad(x, pads, number, **attributes)
        before, after = g.Split(pads, axis=0, num_outputs=2, outputs=2)
        return padded_along(g, x, axes, before, after, number, **attributes)

    if mode != "constant":
        places = padded_as(numbers_of(g, data), pads, mode=mode)
        return moved_back(g, data, places), None, None if constant is None else g.zeros(constant), None
    removed = padded_as(g.dy, g.Neg(pads))
    if constant is None:
        return removed, None, None, None
    padding = padded_as(g.zeros(data), pads, Numbers.like(g, data)(1))
    total = g.ReduceSum(g.Mul(g.dy, padding), keepdims=0)
    return removed, None, g.Expand(total, g.sizes(constant)), None


@pad.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1, 2, 3], [4, 5, 6]], f)
    cases: list[tuple[str, list[int], list[list[float]]]] = [  # mode, pads, result
        ("constant", [0, 2, 1, 0], [[0, 0, 1, 2, 3], [0, 0, 4, 5, 6], [0, 0, 0, 0, 0]]),
        ("reflect", [1, 2, 0, 1], [[6, 5, 4, 5, 6, 5], [3, 2, 1, 2, 3, 2], [6, 5, 4, 5, 6, 5]]),
        ("edge", [0, 1, 1, 2], [[1, 1, 2, 3, 3, 3], [4, 4, 5, 6, 6, 6], [4, 4, 5, 6, 6, 6]]),
    ]  # fmt: skip
    cut: list[tuple[str, list[int], list[list[float]]]] = [
        ("constant", [-1, 1, 0, -1], [[0, 4, 5]]), ("edge", [0, -1, 0, 2], [[2, 3, 3, 3], [5, 6, 6, 6]]),
        ("reflect", [0, 1, 0, -1], [[2, 1, 2], [5, 4, 5]]), ("constant", [0, -4, 0, 2], [[0], [0]]),
    ]  # fmt: skip
    wraps: list[tuple[str, list[int], list[list[float]]]] = [
        ("wrap", [0, 2, 0, 4], [[2, 3, 1, 2, 3, 1, 2, 3, 1], [5, 6, 4, 5, 6, 4, 5, 6, 4]]),
        ("wrap", [1, 0, 0, 0], [[4, 5, 6], [1, 2, 3], [4, 5, 6]]),
        ("wrap", [0, -1, 0, 2], [[2, 3, 2, 3], [5, 6, 5, 6]]),
    ]  # fmt: skip
    for mode, pads, result in cases:
        yield Example(1, x, paddings=pads, mode=mode, expect=[np.array(result, f)])
    for mode, pads, result in cases + cut:
        yield Example(2, x, pads=pads, mode=mode, expect=[np.array(result, f)])
        for opset in (11, 13, 18, 19, 21, 23, 24, 25):
            yield Example(opset, x, np.array(pads), mode=mode, expect=[np.array(result, f)])
    for mode, pads, result in wraps:
        yield Example(19, x, np.array(pads), mode=mode, expect=[np.array(result, f)])
    far = [3, 2, 1, 2, 3, 2, 1, 2, 3, 2]
    yield Example(19, x[0], [4, 3], mode="reflect", expect=[far[2:] + far[2:4]])
    yield Example(19, x[:, :1], [0, 1, 0, 2], mode="reflect", expect=[np.repeat(x[:, :1], 4, axis=1)])
    yield from _examples_of_fillings(x)


def _examples_of_fillings(x: Array) -> Iterator[Example]:
    nine = [[1, 2, 3, 9], [4, 5, 6, 9]]
    yield Example(1, x, value=9.0, paddings=[0, 0, 0, 1], expect=[nine])
    yield Example(2, x, value=9.0, pads=[0, 0, 0, 1], expect=[nine])
    for opset in (11, 18):
        yield Example(opset, x, [0, 0, 0, 1], 9, expect=[nine])
    yield Example(18, x, [0, 1], 9, [-1], expect=[nine])
    yield Example(18, x, [0, 1], None, np.array([1], np.int32), mode="edge", expect=[x[:, [0, 1, 2, 2]]])
    for kind in (np.int8, bool, ml_dtypes.bfloat16, ml_dtypes.int4, ml_dtypes.float8_e5m2, np.complex64):
        one = np.array([1], np.int8).astype(kind)
        ends = np.array([0, 1, 0, 0], np.int8).astype(kind)
        yield Example(21, one, [1, 2], expect=[ends])
        yield Example(21, one, [1, 0], one, mode="reflect", expect=[np.concatenate([one, one])])
    words = ["a"]
    yield Example(13, words, [1, 0], expect=[["", "a"]])
    yield Example(13, words, [0, 1], ["b"], expect=[["a", "b"]])
    yield Example(13, 4, np.zeros(0, np.int64), expect=[4])
    yield Example(13, np.zeros((0, 1)), [1, 0, 1, 0], 7, expect=[np.full((2, 1), 7.0)])
