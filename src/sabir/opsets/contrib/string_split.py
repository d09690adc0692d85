"""StringSplit: the parts of strings between separators, as a sparse matrix."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import as_number, check_one, check_rank
from sabir.opsets.families.text import strings
from sabir.opsets.typing import Array
from sabir.schema import Example, Input, Operator, Output

string_split = Operator(
    "StringSplit",
    domain="ai.onnx.contrib",
    summary="The parts of each string between separators, as a sparse matrix with a row for each string.",
)

v1 = strings.without_kernels(
    string_split.first(
        1,
        inputs=[
            Input("input", strings.TEXT, "Strings, [N]."),
            Input(
                "sep",
                strings.TEXT,
                "The separators, one character each, a tensor of one element; if it is empty, every "
                "character is a part.",
            ),
            Input("skip_empty", "tensor(bool)", "Whether empty parts are left out, a tensor of one element."),
        ],
        outputs=[
            Output("indices", "tensor(int64)", "The string and the place of each part, [parts, 2]."),
            Output("values", strings.TEXT, "The parts, [parts]; an empty string has none."),
            Output("shape", "tensor(int64)", "N and the largest number of separators plus one, [2]."),
        ],
    )
)


@v1.infer
def infer(x: TensorType, separators: TensorType, skip: TensorType, /) -> tuple[TensorType, ...]:
    check_rank("input", x, 1)
    check_one("sep", separators)
    check_one("skip_empty", skip)
    return TensorType(INT64, (None, 2)), TensorType(x.element, (None,)), TensorType(INT64, (2,))


@v1.evaluate
def evaluate(x: Array, separators: Array, skip: Array, /) -> tuple[Array, Array, Array]:
    check_rank("input", x, 1)
    between, without = strings.as_str(as_number("sep", separators)), bool(as_number("skip_empty", skip))
    every = [_parts(strings.as_str(word), between) for word in x.tolist()]
    places: list[tuple[int, int]] = []
    values: list[str] = []
    for row, parts in enumerate(every):
        kept = [part for part in parts if part or not without]
        places += [(row, column) for column in range(len(kept))]
        values += kept
    shape = np.array([len(x), max(map(len, every), default=0)], np.int64)
    return np.array(places, np.int64).reshape(len(places), 2), np.array(values, object), shape


def _parts(text: str, separators: str) -> list[str]:
    if not text or not separators:
        return list(text)
    first, *others = separators
    for other in others:
        text = text.replace(other, first)
    return text.split(first)


@string_split.examples
def examples() -> Iterator[Example]:
    x, places = ["a,,b", "c"], [[0, 0], [0, 1], [1, 0]]
    yield Example(1, x, [","], [True], outputs=3, expect=[places, ["a", "b", "c"], [2, 3]])
    every = [[0, 0], [0, 1], [0, 2], [1, 0]]
    yield Example(1, x, [","], [False], outputs=3, expect=[every, ["a", "", "b", "c"], [2, 3]])
    row = [[0, 0], [0, 1], [0, 2]]
    yield Example(1, ["a,b;c"], [",;"], [True], outputs=3, expect=[row, ["a", "b", "c"], [1, 3]])
    yield Example(1, ["abc"], [""], [True], outputs=3, expect=[row, ["a", "b", "c"], [1, 3]])
    yield Example(1, [",a,"], [","], [False], outputs=3, expect=[row, ["", "a", ""], [1, 3]])
    none = np.zeros((0, 2), np.int64), np.zeros(0, object)
    yield Example(1, [""], [","], [False], outputs=3, expect=[*none, [1, 0]])
    yield Example(1, none[1], [","], [True], outputs=3, expect=[*none, [0, 0]])
