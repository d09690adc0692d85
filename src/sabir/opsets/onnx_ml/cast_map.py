"""CastMap: a map's values as a row."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from sabir.elements import ElementType, element
from sabir.ir import MapType, TensorType
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import STRING, Attribute, Constraint, Example, Input, Operator, Output, one_of, tensors

cast_map = Operator(
    "CastMap",
    domain="ai.onnx.ml",
    summary="The values of a map, in the order of its keys, as a tensor of one row.",
)

T1 = Constraint("T1", frozenset({"map(int64, float)", "map(int64, string)"}))
T2 = Constraint("T2", STRING, tensors("float", "int64"))

v1 = cast_map.first(
    1,
    inputs=[Input("X", T1, "A map from integers to numbers or to strings of numbers.")],
    outputs=[Output("Y", T2, "Shape [1, C]: as many columns as the map has entries, or `max_map`.")],
    attributes=[
        Attribute("max_map", "int", "The number of columns in the form SPARSE.", default=1),
        Attribute(
            "map_form",
            "string",
            "DENSE: the values side by side; SPARSE: keys are column indices.",
            default="DENSE",
            values=one_of("DENSE", "SPARSE"),
        ),
        Attribute(
            "cast_to",
            "string",
            "The type of Y.",
            default="TO_FLOAT",
            values=one_of("TO_FLOAT", "TO_STRING", "TO_INT64"),
        ),
    ],
)

_PLACEHOLDER = "0.f"  # onnxruntime's text for an absent key; the standard leaves it open


def _integer(value: Any) -> int:
    try:
        return int(value)  # keeps every digit of a string
    except ValueError:
        return int(float(value))


def _string(value: Any) -> str:
    return value if isinstance(value, str) else f"{float(value):f}"


_CASTS: dict[str, tuple[ElementType, Callable[[Any], Any], Any]] = {
    "TO_FLOAT": (element("float"), float, 0.0),
    "TO_INT64": (element("int64"), _integer, 0),
    "TO_STRING": (element("string"), _string, _PLACEHOLDER),
}


v1.absent("lower", "kernels compute tensors, no maps")


@v1.infer
def infer(x: MapType, /, *, cast_to: str, map_form: str, max_map: int) -> TensorType:
    return TensorType(_CASTS[cast_to][0], (1, max_map if map_form == "SPARSE" else None))


@v1.evaluate
def evaluate(x: Mapping[int, Any], /, *, cast_to: str, map_form: str, max_map: int) -> Array:
    kind, cast, nothing = _CASTS[cast_to]
    keys = sorted(x)
    if map_form == "DENSE":
        return np.array([[cast(x[key]) for key in keys]], kind.dtype)
    if keys and not (keys[0] >= 0 and keys[-1] < max_map):
        raise ValueError(f"key {keys[0] if keys[0] < 0 else keys[-1]} is outside [0, {max_map - 1}]")
    row: Array = np.full(allotted((1, max_map), kind.dtype, len(keys)), nothing, kind.dtype)
    row[0, keys] = [cast(x[key]) for key in keys]
    return row


@cast_map.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = {2: f(1.5), 0: f(-2.75)}  # results from onnxruntime
    yield Example(1, x, expect=[[[-2.75, 1.5]]])
    yield Example(1, x, cast_to="TO_INT64", expect=[[[-2, 1]]])
    strings = [["-2.750000", "1.500000"]]
    yield Example(1, x, cast_to="TO_STRING", expect=[strings])
    sparse: dict[str, Any] = {"map_form": "SPARSE", "max_map": 4}
    yield Example(1, x, **sparse, expect=[[[-2.75, 0, 1.5, 0]]])
    padded = [["-2.750000", "0.f", "1.500000", "0.f"]]
    yield Example(1, x, cast_to="TO_STRING", **sparse, expect=[padded])
    words = {7: "9007199254740993", -1: "2.5"}
    yield Example(1, words, cast_to="TO_INT64", expect=[[[2, 9007199254740993]]])
    yield Example(1, words, cast_to="TO_STRING", expect=[[["2.5", "9007199254740993"]]])
    empty = [MapType(element("int64"), TensorType(element("float"), ()))]
    yield Example(1, {}, types=empty, expect=[np.zeros((1, 0), f)])
