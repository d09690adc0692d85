"""LabelEncoder: labels to other labels."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.elements import ElementType, element
from sabir.ir import UNDEFINED, ArrayTensor, Builder, Tensor, TensorType, Value
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.indexing import lookup_kernels
from sabir.opsets.families.indexing.lookups import mapped
from sabir.opsets.families.text.places import is_text, values_of
from sabir.opsets.typing import Array, Strings
from sabir.schema import (
    STRING,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

label_encoder = Operator(
    "LabelEncoder", domain="ai.onnx.ml", summary="Each element replaced by the value of its key in a table."
)

T1 = Constraint("T1", STRING, tensors("int64"))
T2 = Constraint("T2", STRING, tensors("int64"))

v1 = label_encoder.first(
    1,
    inputs=[Input("X", T1, "Labels, of any shape and of the keys' type.")],
    outputs=[Output("Y", T2, "The input's shape, of the values' type.")],
    attributes=[
        Attribute(
            "default_string", "string", "The value of an element that is not in the table.", default="_Unused"
        ),
        Attribute("default_int64", "int", "The same, as an integer.", default=-1),
        Attribute("classes_strings", "strings", "The labels; an integer is an index into them."),
    ],
)
v2 = v1.evolve(
    2,
    "Keys and values are separate lists, and may be strings, integers or floats.",
    drop=["classes_strings"],
    add=[
        Attribute("default_float", "float", "The same, as a float.", default=-0.0),
        Attribute("values_int64s", "ints", "The values, if they are integers."),
        Attribute("values_strings", "strings", "The values, if they are strings."),
        Attribute("keys_floats", "floats", "The keys, if they are floats; of equal keys the last applies."),
        Attribute("values_floats", "floats", "The values, if they are floats."),
        Attribute("keys_int64s", "ints", "The keys, if they are integers."),
        Attribute("keys_strings", "strings", "The keys, if they are strings."),
    ],
    widen={"T1": tensors("float"), "T2": tensors("float")},
)
v4 = v2.extend(
    4,
    "Keys and values may be tensors, of more types, and the key NaN matches every NaN.",
    attributes=[
        Attribute("default_tensor", "tensor", "The default for values in a tensor, shape [1]."),
        Attribute("values_tensor", "tensor", "The values as a vector, of any type."),
        Attribute("keys_tensor", "tensor", "The keys as a vector, of any type."),
    ],
    widen={"T1": tensors("double", "int16", "int32"), "T2": tensors("double", "int16", "int32")},
)

_LISTS = {"strings": element("string"), "int64s": element("int64"), "floats": element("float")}
_DEFAULTS = {"strings": "default_string", "int64s": "default_int64", "floats": "default_float"}
_OF_KIND = {"O": "_Unused", "i": -1, "f": -0.0}  # where `default_tensor` is absent


def _list(part: str, attributes: dict[str, Any]) -> tuple[str, ElementType, Any]:
    """Return the suffix of the attribute that has the keys or values, its element type, and its value."""
    found = [s for s in _LISTS if attributes[f"{part}_{s}"]]
    tensor: Tensor | None = attributes.get(f"{part}_tensor")
    if len(found) + (tensor is not None) > 1:
        raise ValueError(f"the {part} are in more than one attribute; keep one")
    if tensor is not None:
        return "tensor", tensor.element, tensor
    if not found:
        return "", UNDEFINED, ()
    return found[0], _LISTS[found[0]], attributes[f"{part}_{found[0]}"]


def _array(part: str, attributes: dict[str, Any]) -> Array:
    suffix, element_type, values = _list(part, attributes)
    if not suffix:
        raise ValueError(f"there are no {part}")
    return values.array().reshape(-1) if suffix == "tensor" else np.array(values, element_type.dtype)


v1.absent("lower", "one side of each pair is a text")


@v1.infer
def infer_other(x: TensorType, /) -> TensorType:
    other = {"string": element("int64"), "int64": element("string")}
    return TensorType(other.get(x.element.name, UNDEFINED), x.shape)


@v2.infer
def infer(x: TensorType, /, **attributes: Any) -> TensorType:
    (_, key, _), (suffix, value, _) = _list("keys", attributes), _list("values", attributes)
    if not key.number or not value.number:
        raise InferenceError("needs one list of keys and one of values")
    if x.element.number and x.element != key:
        raise InferenceError(f"the keys are {key}, and the input is {x}")
    default: Tensor | None = attributes.get("default_tensor")
    if default is not None and math.prod(default.shape) != 1:
        raise InferenceError(f"`default_tensor` has the shape {list(default.shape)}, and needs one element")
    if suffix == "tensor" and default is not None and default.element != value:
        raise InferenceError(f"`default_tensor` is {default.element}, and the values are {value}")
    return TensorType(value, x.shape)


@v1.evaluate
def evaluate_places(
    x: Array, /, *, classes_strings: Strings, default_int64: int, default_string: str
) -> Array:
    classes = np.array(classes_strings or (), object)
    places = np.arange(len(classes), dtype=np.int64)
    if x.dtype.kind == "O":
        return mapped(x, classes, places, default_int64)
    return mapped(x, places, classes, default_string)


@v2.evaluate
def evaluate_without_nan(x: Array, /, **attributes: Any) -> Array:
    return _evaluate(x, attributes, nan=False)


@v4.evaluate
def evaluate(x: Array, /, **attributes: Any) -> Array:
    return _evaluate(x, attributes, nan=True)


def _evaluate(x: Array, attributes: dict[str, Any], *, nan: bool) -> Array:
    keys, values = _array("keys", attributes), _array("values", attributes)
    if len(keys) != len(values) or keys.dtype != x.dtype:
        table = f"{len(keys)} keys of {keys.dtype} and {len(values)} values"
        raise ValueError(f"{table} are not a table for {x.dtype}")
    return mapped(x, keys, values, _default(values, attributes), nan=nan and x.dtype.kind == "f")


def _default(values: Array, attributes: dict[str, Any]) -> Any:
    suffix = _list("values", attributes)[0]
    if suffix != "tensor":
        return attributes[_DEFAULTS[suffix]]
    tensor: Tensor | None = attributes.get("default_tensor")
    return _OF_KIND[values.dtype.kind] if tensor is None else tensor.array().reshape(-1)[0]


@v1.parts
def parts_of_places(b: Builder, x: Value, /, *, classes_strings: Strings, default_int64: int) -> Value:
    """Find the texts among the classes."""
    places = np.arange(len(classes_strings or ()), dtype=np.int64)
    return values_of(b, x, classes_strings or (), places, default_int64)


@v2.parts
def parts(b: Builder, x: Value, /, **attributes: Any) -> Value:
    """Find the keys, and take their values: where one side is texts, the other side are numbers."""
    keys, values = _array("keys", attributes), _array("values", attributes)
    if len(keys) != len(values):
        raise Unconvertible("the keys and the values differ in number")
    default = _default(values, attributes)
    if keys.dtype.kind == "O":
        return values_of(b, x, keys.tolist(), values, default)
    if values.dtype.kind != "O" or is_text(x):
        raise Unconvertible("keys and values are numbers")
    present = {name: value for name, value in attributes.items() if value is not None}
    kept = {name: value for name, value in present.items() if not name.startswith(("values", "default"))}
    numbered = {"values_int64s": [*range(len(keys))], "default_int64": len(keys)}
    table: Array = np.array([*values.tolist(), default], object)
    return b.Gather(b.initializer("labels", table), _emit(b, x, **kept, **numbered))


@v2.lower
def lower_without_nan(x: Expression, /, **attributes: Any) -> Expression:
    return _lowered(x, attributes, nan=False)


@v4.lower
def lower(x: Expression, /, **attributes: Any) -> Expression:
    return _lowered(x, attributes, nan=True)


def _lowered(x: Expression, attributes: dict[str, Any], *, nan: bool) -> Expression:
    keys, values = _array("keys", attributes), _array("values", attributes)
    if keys.dtype.kind == "O" or values.dtype.kind == "O":
        raise NotLowered("keys or values are strings")
    if len(keys) != len(values) or keys.dtype != element(x.element).dtype:
        raise NotLowered("the table is not one for the input")
    return lookup_kernels.mapped(x, keys, values, _default(values, attributes), nan=nan and x.is_float)


# ---------------------------------------------------------------- adapters


def _emit(b: Builder, x: Value, **attributes: Any) -> Value:
    return b.op("LabelEncoder", x, domain="ai.onnx.ml", **attributes)


def _is_string(x: Value) -> bool:
    if not isinstance(x.type, TensorType) or not x.type.element.number:
        raise Unconvertible("the input's element type is unknown, and determines the direction of the table")
    return x.type.element.name == "string"


@v2.upgrade
def classes_become_a_table(
    b: Builder, x: Value, /, *, classes_strings: Strings, default_int64: int, default_string: str
) -> Value:
    if not classes_strings:
        raise Unconvertible("there are no classes, and LabelEncoder:2 needs keys")
    places = tuple(range(len(classes_strings)))
    if _is_string(x):
        return _emit(b, x, keys_strings=classes_strings, values_int64s=places, default_int64=default_int64)
    return _emit(b, x, keys_int64s=places, values_strings=classes_strings, default_string=default_string)


@v2.downgrade
def table_becomes_classes(b: Builder, x: Value, /, **attributes: Any) -> Value:
    (key, _, keys), (value, _, values) = _list("keys", attributes), _list("values", attributes)
    if {key, value} != {"strings", "int64s"}:
        raise Unconvertible("LabelEncoder:1 maps between strings and integers alone")
    places, classes = (values, keys) if key == "strings" else (keys, values)
    if tuple(places) != tuple(range(len(classes))):
        raise Unconvertible("the integers are not 0, 1, 2, ..., and LabelEncoder:1 has no others")
    defaults = {name: attributes[name] for name in ("default_int64", "default_string")}
    return _emit(b, x, classes_strings=classes, **defaults)


@v4.upgrade
def nan_matches_nothing(b: Builder, x: Value, /, **attributes: Any) -> Value:
    present = {name: value for name, value in attributes.items() if value is not None}
    key, _, keys = _list("keys", attributes)
    if key == "floats" and any(map(math.isnan, keys)):
        kept = [place for place, k in enumerate(keys) if not math.isnan(k)]
        value, _, values = _list("values", attributes)
        if not kept:
            raise Unconvertible("NaN is the only key, and in LabelEncoder:4 it matches every NaN")
        present |= {"keys_floats": [keys[k] for k in kept], f"values_{value}": [values[k] for k in kept]}
    return _emit(b, x, **present)


@v4.downgrade
def tensors_become_lists(b: Builder, x: Value, /, **attributes: Any) -> Value:
    lists: dict[str, Any] = {}
    for part in ("keys", "values"):
        _, kind, _ = _list(part, attributes)
        listed = next((s for s, e in _LISTS.items() if e == kind), None)
        if listed is None:
            raise Unconvertible(f"LabelEncoder:2 has no {part} of {kind}")
        array = _array(part, attributes)
        if part == "keys" and listed == "floats" and np.any(np.isnan(array)):
            raise Unconvertible("in LabelEncoder:2 the key NaN matches nothing")
        lists[f"{part}_{listed}"] = array.tolist()
        if part == "values":
            default = _default(array, attributes)
            lists[_DEFAULTS[listed]] = default.item() if isinstance(default, np.generic) else default
    return _emit(b, x, **lists)


@label_encoder.examples
def examples() -> Iterator[Example]:
    words = [["b", "a"], ["z", "b"]]
    numbers = [1, 0, 2, -1]
    classes = ["a", "b"]
    yield Example(1, words, classes_strings=classes, expect=[[[1, 0], [-1, 1]]])
    yield Example(1, words[0], classes_strings=["a", "b", "b"], expect=[[2, 0]])
    unused = ["b", "a", "_Unused", "_Unused"]
    yield Example(1, numbers, classes_strings=classes, expect=[unused])
    yield Example(1, 9, classes_strings=classes, default_string="?", expect=["?"])
    reversed_table: dict[str, Any] = {"keys_int64s": [0, 1], "values_strings": classes}
    twice: dict[str, Any] = {"keys_strings": ["b", "a", "b"], "values_floats": [1.5, 3, 2.5]}
    none = np.zeros((2, 0), np.float32)
    for opset in (2, 4):
        yield Example(opset, words, keys_strings=classes, values_int64s=[0, 1], expect=[[[1, 0], [-1, 1]]])
        yield Example(opset, numbers, **reversed_table, default_string="?", expect=[["b", "a", "?", "?"]])
        yield Example(opset, words, **twice, expect=[[[2.5, 3], [-0.0, 2.5]]])
        yield Example(opset, none, keys_floats=[1.0], values_int64s=[5], expect=[none.astype(np.int64)])
    floats = [np.nan, 1, 2]
    with_nan: dict[str, Any] = {"keys_floats": [np.nan, 1.0], "values_int64s": [7, 8]}
    yield Example(2, floats, **with_nan, expect=[[-1, 8, -1]])  # both as onnxruntime computes them
    yield Example(4, floats, **with_nan, expect=[[7, 8, -1]])
    yield from _with_tensors()


def _with_tensors() -> Iterator[Example]:
    keys, values = ArrayTensor(np.array([3, 5], np.int16)), ArrayTensor(np.array([0.5, 1e300]))
    x, default = np.array([[5, 4]], np.int16), ArrayTensor(np.array([7.0]))
    table: dict[str, Any] = {"keys_tensor": keys, "values_tensor": values}
    yield Example(4, x, **table, expect=[np.array([[1e300, -0.0]])])
    yield Example(4, x, **table, default_tensor=default, expect=[np.array([[1e300, 7]])])
    strings = ArrayTensor(np.array(["a", "b"], object))
    doubles = np.array([0.5, np.nan])
    yield Example(4, doubles, keys_tensor=values, values_tensor=strings, expect=[["a", "_Unused"]])
    longs = ArrayTensor(np.array([1 << 40, 1]))
    yield Example(4, ["b", ""], keys_tensor=strings, values_tensor=longs, expect=[[1, -1]])
    shorts, ints = (ArrayTensor(np.array([-4, 9], kind)) for kind in (np.int16, np.int32))
    x, y = np.array([9, 0], np.int32), np.array([9, -1], np.int16)
    yield Example(4, x, keys_tensor=ints, values_tensor=shorts, expect=[y])
    table = {
        "keys_tensor": shorts,
        "values_tensor": ints,
        "default_tensor": ArrayTensor(np.array([7], np.int32)),
    }
    yield Example(4, np.array([-4, 0], np.int16), **table, expect=[np.array([-4, 7], np.int32)])
