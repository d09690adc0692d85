"""Cast: the same elements in another element type."""

import itertools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import ElementType, element
from sabir.ir import Builder, Item, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers import casting
from sabir.opsets.families.numbers import casting_kernels as kernels
from sabir.opsets.families.shapes import contents
from sabir.opsets.typing import Array, BehaviourFunction, Gradient
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOAT6,
    INT2,
    NUMBERS,
    STRING,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    Version,
    element_types,
)

cast = Operator("Cast", summary="The elements of `input` converted to the element type `to`.")

T1 = Constraint("T1", NUMBERS, BOOL)
T2 = Constraint("T2", NUMBERS, BOOL)

_TO = element_types("T2")

v1 = cast.first(
    1,
    inputs=[Input("input", T1, "A tensor of any shape.", differentiable=True)],
    outputs=[
        Output("output", T2, "The input's shape; integers wrap, floats are truncated.", differentiable=True)
    ],
    attributes=[
        Attribute("to", "string", "The name of the element type, e.g. `FLOAT`.", required=True, values=_TO)
    ],
)
v6 = v1.evolve(
    6,
    "`to` is a number of TensorProto.DataType instead of its name.",
    add=[Attribute("to", "int", "A number of TensorProto.DataType.", required=True, values=_TO)],
)
v9 = v6.widen(9, T1=STRING, T2=STRING)
v13 = v9.widen(13, T1=BFLOAT16, T2=BFLOAT16)
v24 = casting.admit_small_types(v13)
v28 = v24.widen_stepwise({25: INT2, 28: FLOAT6}, "T1", "T2")


@v1.infer
def infer(x: TensorType, /, *, to: int | str) -> TensorType:
    target = element(to)
    result = TensorType(target, x.shape)
    if x.known is None or contents.is_numeric(x.known):
        return result  # the engine evaluates plain numbers itself

    def how(item: Item) -> Item:
        return casting.item_as(item, target)

    return contents.computed(result, how, x)


def _admits(version: Version, target: ElementType) -> bool:
    return f"tensor({target})" in version.outputs[0].allowed


@v1.evaluate
def evaluate(x: Array, /, *, to: int | str, saturate: int = 1, round_mode: str = "up") -> Array:
    return casting.converted(x, element(to), saturate=bool(saturate), round_mode=round_mode)


@v1.lower
def lower(x: Expression, /, *, to: int | str, saturate: int = 1, round_mode: str = "up") -> Expression:
    return kernels.converted(x, element(to).name, saturate=saturate != 0, round_mode=round_mode)


@v6.upgrade
def name_to_number(b: Builder, x: Value, /, *, to: str) -> Value:
    return b.Cast(x, to=element(to).number)


@v6.downgrade
def number_to_name(b: Builder, x: Value, /, *, to: int) -> Value:
    return b.Cast(x, to=element(to).name.upper())


def _narrower(older: Version) -> BehaviourFunction:
    """Return the downgrade, which checks `to` too; the options that `older` lacks are for types it lacks."""

    def downgrade(b: Builder, x: Value, /, *, to: int, **options: Any) -> Value:
        signature = x.type.signature if isinstance(x.type, TensorType) else None
        if signature not in older.inputs[0].allowed or not _admits(older, element(to)):
            raise Unconvertible(f"{older} does not convert {signature or 'an unknown type'} to {element(to)}")
        known = {a.name for a in older.attributes}
        return b.Cast(x, to=to, **{k: v for k, v in options.items() if k in known})

    return downgrade


for _older, _newer in itertools.pairwise(cast.versions[1:]):
    _newer.downgrade(_narrower(_older))


def _to(name: str) -> dict[str, Any]:
    """Return the attribute `to` for an element type."""
    return {"to": element(name).number}


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.CastLike(g.dy, x)


@cast.examples
def numbers() -> Iterator[Example]:
    x = [[1.9, -1.9, 0.0], [300.0, -0.25, 65536.0]]
    whole = [[1, -1, 0], [300, 0, 65536]]
    truth = np.array([[True, True, False], [True, True, True]])
    yield Example(1, x, to="INT64", expect=[whole])
    yield Example(1, x, to="BOOL", expect=[truth])
    for opset in (6, 9, 13, 19, 21, 23, 24, 25, 28):
        yield Example(opset, x, **_to("int64"), expect=[whole])
        yield Example(opset, truth, **_to("double"), expect=[truth * 1.0])
    wrap = np.array([200, -129, 65536], np.int32)
    yield Example(6, wrap, **_to("int8"), expect=[np.array([-56, 127, 0], np.int8)])
    yield Example(6, [-1, 2**40], **_to("uint32"), expect=[np.array([2**32 - 1, 0], np.uint32)])
    # outside the range: as x86 and onnxruntime convert
    far = np.array([3e9, -np.inf, np.nan])
    yield Example(6, far, **_to("int32"), expect=[np.full(3, -(2**31), np.int32)])
    yield Example(6, far, **_to("int64"), expect=[[3 * 10**9, -(2**63), -(2**63)]])
    yield Example(6, np.array([2.0**63, 1.5]), **_to("uint64"), expect=[np.array([2**63, 1], np.uint64)])
    yield Example(6, np.array([1e6, 1e-9]), **_to("float16"), expect=[np.array([np.inf, 0], np.float16)])
    yield Example(6, 2.5, **_to("int8"), expect=[np.int8(2)])
    yield Example(6, np.zeros((0, 3), np.float16), **_to("bool"), expect=[np.zeros((0, 3), bool)])
    # 1 + 2**-8 is halfway between two bfloat16 numbers, and rounds to the even one
    halfway = [1.00390625, np.inf]
    yield Example(13, halfway, **_to("bfloat16"), expect=[np.array([1, np.inf], ml_dtypes.bfloat16)])


@cast.examples
def texts() -> Iterator[Example]:
    for opset in (9, 13):
        x = [1, -2.5, 0.1, 1e20, np.nan, -np.inf]
        texts = ["1", "-2.5", "0.1", "1e+20", "NaN", "-INF"]
        yield Example(opset, x, **_to("string"), expect=[texts])
        yield Example(opset, texts, **_to("float"), expect=[x])
        yield Example(opset, [True, False], **_to("string"), expect=[["1", "0"]])
        spelled = [["1e-5", "+INF"], [" 3.25", "nan"]]
        yield Example(opset, spelled, **_to("double"), expect=[np.array([[1e-5, np.inf], [3.25, np.nan]])])
        counts = ["9223372036854775807", "-7", "100.5"]
        yield Example(opset, counts, **_to("int64"), expect=[[2**63 - 1, -7, 100]])
        yield Example(opset, ["0", "2"], **_to("bool"), expect=[[False, True]])


@cast.examples
def small_types() -> Iterator[Example]:
    x = [0.5, 1e6, -np.inf, np.nan, 17]
    clamped = {"float8e4m3fn": 448, "float8e4m3fnuz": 240, "float8e5m2": 57344, "float8e5m2fnuz": 57344}
    for name, most in clamped.items():
        dtype = element(name).dtype
        near = 16  # 17 is halfway between 16 and 18, or nearer to 16 than to 20
        saturated = np.array([0.5, most, -most, np.nan, near]).astype(dtype)
        over = np.inf if name == "float8e5m2" else np.nan
        unlimited = np.array([0.5, over, -over, np.nan, near]).astype(dtype)
        for opset in (19, 21, 24):
            yield Example(opset, x, **_to(name), expect=[saturated])
            yield Example(opset, x, **_to(name), saturate=0, expect=[unlimited])
            yield Example(opset, unlimited, **_to("float"), expect=[[0.5, over, -over, np.nan, near]])
    counts = np.array([-9, 7, 15, 16], np.float32)
    nibbles = np.array([7, 7, -1, 0]).astype(ml_dtypes.int4)
    yield Example(21, counts, **_to("int4"), expect=[nibbles])
    yield Example(21, nibbles, **_to("int8"), expect=[np.array([7, 7, -1, 0], np.int8)])
    yield Example(21, counts, **_to("uint4"), expect=[np.array([7, 7, 15, 0]).astype(ml_dtypes.uint4)])
    fours = np.array([0.25, 1e6, -3.4]), np.array([0, 6, -3])
    yield Example(23, fours[0], **_to("float4e2m1"), expect=[fours[1].astype(ml_dtypes.float4_e2m1fn)])
    yield Example(25, counts, **_to("int2"), expect=[np.array([-1, -1, -1, 0]).astype(ml_dtypes.int2)])
    yield Example(25, counts, **_to("uint2"), expect=[np.array([3, 3, 3, 0]).astype(ml_dtypes.uint2)])
    sixes = np.array([0.125, 7.3]), np.array([0.125, 7.5])
    yield Example(28, sixes[0], **_to("float6e2m3"), expect=[sixes[1].astype(ml_dtypes.float6_e2m3fn)])
    yield Example(
        28, sixes[0], **_to("float6e3m2"), expect=[np.array([0.125, 7]).astype(ml_dtypes.float6_e3m2fn)]
    )


@cast.examples
def powers_of_two() -> Iterator[Example]:
    x = np.array([1.1, 1.5, 4.0, np.nan])
    kind = ml_dtypes.float8_e8m0fnu
    for mode, expected in {"up": [2, 2, 4], "down": [1, 1, 4], "nearest": [1, 2, 4]}.items():
        yield Example(
            24, x, **_to("float8e8m0"), round_mode=mode, expect=[np.array([*expected, np.nan], kind)]
        )
    edges, least, most = np.array([0.0, 1e-300, np.inf]), 2.0**-127, 2.0**127
    yield Example(24, edges, **_to("float8e8m0"), expect=[np.array([least, least, most], kind)])
    invalid = np.array([np.nan] * 3, kind)
    yield Example(24, edges, **_to("float8e8m0"), saturate=0, round_mode="nearest", expect=[invalid])
