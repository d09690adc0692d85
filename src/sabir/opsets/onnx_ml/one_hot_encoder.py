"""OneHotEncoder: a vector with a 1 at the index of a category."""

import functools
from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.classification.classifiers import FEATURE_TYPES, FLOAT
from sabir.opsets.families.indexing.lookups import places, places_of_texts
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.families.text.places import places_of
from sabir.opsets.typing import Array, Ints, Strings
from sabir.schema import STRING, Attribute, Constraint, Example, Input, Operator, Output, Unconvertible

one_hot_encoder = Operator(
    "OneHotEncoder",
    domain="ai.onnx.ml",
    summary="Each element as a vector of zeros with a 1 at the index of its category.",
)

_EXACT = 1 << 53  # integers up to here are doubles
_MOST = 256  # categories of which each has a row that an index takes

T = Constraint("T", STRING, FEATURE_TYPES)

v1 = one_hot_encoder.first(
    1,
    inputs=[Input("X", T, "Categories, of any shape; floats are truncated to integers.")],
    outputs=[Output("Y", "tensor(float)", "The input's shape with one more dimension, the categories.")],
    attributes=[
        Attribute("zeros", "int", "1: an unknown category becomes zeros; 0: it is an error.", default=1),
        Attribute("cats_strings", "strings", "The categories of strings."),
        Attribute("cats_int64s", "ints", "The categories of numbers; exactly one of the two lists is set."),
    ],
)


@v1.infer
def infer(x: TensorType, /, *, cats_int64s: Ints, cats_strings: Strings) -> TensorType:
    if (cats_int64s is None) == (cats_strings is None):
        raise InferenceError("needs either `cats_int64s` or `cats_strings`")
    count = len(cats_strings or cats_int64s or ())
    return TensorType(FLOAT, None if x.shape is None else (*x.shape, count))


@v1.evaluate
def evaluate(x: Array, /, *, cats_int64s: Ints, cats_strings: Strings, zeros: int) -> Array:
    strings = x.dtype.kind == "O"
    if (cats_strings if strings else cats_int64s) is None:
        raise ValueError(f"there are no categories of {'strings' if strings else 'numbers'}")
    place, count = _places(x, cats_int64s, cats_strings), len(cats_strings or cats_int64s or ())
    if not zeros and (place < 0).any():
        lost = x.ravel()[np.flatnonzero(place < 0)[0]]
        raise ValueError(f"{lost!r} is in none of the categories, and `zeros` is 0")
    shape = allotted((place.size, count), np.dtype(np.float32))
    if count <= _MOST:
        return _rows(count)[place].reshape(*x.shape, count)
    y = np.zeros(shape, np.float32)
    found = np.flatnonzero(place >= 0)
    y[found, place[found]] = 1
    return y.reshape(*x.shape, count)


def _places(x: Array, cats_int64s: Ints, cats_strings: Strings) -> Array:
    """Return the index of the category of each element, -1 where there is none."""
    if x.dtype.kind == "O":
        return places_of_texts(x, tuple(cats_strings or ())).ravel()
    return places(np.trunc(x) if x.dtype.kind == "f" else x, np.array(cats_int64s, np.int64)).ravel()


@functools.lru_cache(maxsize=64)
def _rows(count: int) -> Array:
    """Return the row of each category, and a row of zeros for none, which is the last one."""
    found: Array = np.eye(count + 1, count, dtype=np.float32)
    found.flags.writeable = False
    return found


@v1.parts
def parts(b: Builder, x: Value, /, *, cats_strings: Strings, zeros: int, cats_int64s: Ints) -> Value:
    """Find the texts among the categories; what follows are numbers."""
    if cats_int64s is not None or cats_strings is None:
        raise Unconvertible("the categories are no texts")
    places = places_of(b, x, cats_strings, is_complete=not zeros)
    categories = [*range(len(cats_strings))]
    return b.op("OneHotEncoder", places, domain="ai.onnx.ml", cats_int64s=categories)


@v1.lower
def lower(x: Expression, /, *, cats_int64s: Ints, zeros: int) -> Expression:
    if cats_int64s is None or len({*cats_int64s}) < len(cats_int64s):
        raise NotLowered("categories are strings, or equal")
    if x.is_float and max(map(abs, cats_int64s), default=0) > _EXACT:
        raise NotLowered("a category is no double")
    element = "double" if x.is_float else "int64"
    x = loops.cast(loops.apply("trunc", x) if x.is_float else x, element)
    categories = np.array(cats_int64s, np.float64 if element == "double" else np.int64)
    column = loops.reshape(x, (*x.shape, 1))
    found = loops.apply("eq", column, loops.tensor(categories))
    if zeros:
        return loops.cast(found, "float")
    if not 0 < len(cats_int64s) <= _MOST:
        raise NotLowered("there are too many categories to look for one that is unknown")
    place = loops.reduce("argmax", loops.cast(found, "int32"), [-1])
    known = loops.apply("gt", loops.reduce("max", loops.cast(found, "int32"), [-1]), 0)
    place = loops.squeeze(loops.where(known, place, len(cats_int64s)), [-1])
    return loops.take(loops.tensor(np.eye(len(cats_int64s), dtype=np.float32)), place, 0)


@one_hot_encoder.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = [["b", "a"], ["c", "z"]]
    y = [[[0, 1, 0], [1, 0, 0]], [[0, 0, 1], [0, 0, 0]]]
    yield Example(1, x, cats_strings=["a", "b", "c"], expect=[y])
    yield Example(1, x[0], cats_strings=["a", "b", "c"], zeros=0, expect=[y[0]])
    floats = [1.7, -1.2, 0.5, np.nan]  # truncated toward zero: 1, -1, 0
    eye = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]]
    yield Example(1, floats, cats_int64s=[1, -1, 0], expect=[eye])
    yield Example(1, np.int32(4), cats_int64s=[0, 4], expect=[[0, 1]])
    yield Example(1, np.zeros((0, 2), np.int64), cats_int64s=[4], expect=[np.zeros((0, 2, 1), f)])
