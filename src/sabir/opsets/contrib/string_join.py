"""StringJoin: strings joined along an axis."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import as_number, check_least_rank, check_one
from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

string_join = Operator(
    "StringJoin",
    domain="ai.onnx.contrib",
    summary="The strings along an axis, with a separator between them.",
)

v1 = strings.without_kernels(
    string_join.first(
        1,
        inputs=[
            Input("input", strings.TEXT, "Strings, of rank 1 or more."),
            Input("sep", strings.TEXT, "The separator, a tensor of one element."),
            Input("axis", "tensor(int64)", "The axis, 0 or more; a tensor of one element."),
        ],
        outputs=[Output("output", strings.TEXT, "The shape of `input` without the axis; [1] for rank 1.")],
    )
)


@v1.infer
def infer(x: TensorType, separator: TensorType, axis: TensorType, /) -> TensorType:
    check_least_rank("input", x, 1)
    check_one("sep", separator)
    check_one("axis", axis)
    if x.shape is None:
        return TensorType(x.element)
    known = contents.ints(axis.known)
    rest = (None,) * (len(x.shape) - 1)
    if known:
        _check(known[0], len(x.shape))
        rest = (*x.shape[: known[0]], *x.shape[known[0] + 1 :])
    return TensorType(x.element, rest or (1,))


def _check(axis: int, rank: int) -> None:
    if not 0 <= axis < rank:
        raise InferenceError(f"axis {axis} is outside [0, {rank - 1}] of a tensor of rank {rank}")


@v1.evaluate
def evaluate(x: Array, separator: Array, axis: Array, /) -> Array:
    check_least_rank("input", x, 1)
    between, along = strings.as_str(as_number("sep", separator)), int(as_number("axis", axis))
    _check(along, x.ndim)
    rows = np.moveaxis(x, along, -1)
    y: Array = np.empty(rows.shape[:-1] or (1,), object)
    y.reshape(-1)[:] = [
        between.join(map(strings.as_str, row)) for row in rows.reshape(y.size, x.shape[along]).tolist()
    ]
    return y


@string_join.examples
def examples() -> Iterator[Example]:
    x = [["a", "b"], ["c", "d"]]
    yield Example(1, x, [";"], [1], expect=[["a;b", "c;d"]])
    yield Example(1, x, "", [0], expect=[["ac", "bd"]])
    yield Example(1, ["a", "b"], ["--"], 0, expect=[["a--b"]])
    yield Example(1, np.zeros((2, 0), object), [";"], [1], expect=[["", ""]])
