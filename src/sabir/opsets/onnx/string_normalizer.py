"""StringNormalizer: stop words dropped, case changed."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Dim, TensorType, dim_max
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output

string_normalizer = Operator(
    "StringNormalizer", summary="The strings that are no stop words, in lower or upper case or as they are."
)

v10 = string_normalizer.first(
    10,
    inputs=[Input("X", "tensor(string)", "Shape [C] or [1, C].")],
    outputs=[Output("Y", "tensor(string)", "Shape [K] or [1, K]; one empty string where none is left.")],
    attributes=[
        Attribute("stopwords", "strings", "What to drop."),
        Attribute("locale", "string", "Of no effect: case changes by Unicode's rules, which know no locale."),
        Attribute("is_case_sensitive", "int", "Whether a stop word must be met in its case.", default=0),
        Attribute("case_change_action", "string", "LOWER, UPPER or NONE.", default="NONE"),
    ],
)


def _as_it_is(word: str) -> str:
    return word


_CHANGES: dict[str, Callable[[str], str]] = {"LOWER": str.lower, "UPPER": str.upper, "NONE": _as_it_is}


@v10.infer
def infer(x: TensorType, /, *, stopwords: Sequence[str] | None, case_change_action: str) -> TensorType:
    if case_change_action not in _CHANGES:
        raise InferenceError(
            f"case_change_action is {case_change_action!r}, and must be LOWER, UPPER or NONE"
        )
    if x.shape is None:
        return TensorType(x.element)
    if len(x.shape) not in {1, 2} or (len(x.shape) > 1 and isinstance(x.shape[0], int) and x.shape[0] != 1):
        raise InferenceError(f"{x} must have shape [C] or [1, C]")
    kept: Dim = None if stopwords else dim_max(1, *x.shape[-1:])
    return TensorType(x.element, (kept,) if len(x.shape) == 1 else (1, kept))


@v10.evaluate
def evaluate(
    x: Array,
    /,
    *,
    stopwords: Sequence[str] | None,
    locale: str | None,
    is_case_sensitive: int,
    case_change_action: str,
) -> Array:
    if x.ndim not in {1, 2} or (x.ndim > 1 and x.shape[0] != 1):
        raise ValueError(f"shape {list(x.shape)} must be [C] or [1, C]")
    change = _CHANGES.get(case_change_action)
    if change is None:
        raise ValueError(f"case_change_action is {case_change_action!r}, and must be LOWER, UPPER or NONE")
    seen = _as_it_is if is_case_sensitive else str.lower
    stop = {seen(word) for word in stopwords or ()}
    kept = [change(word) for word in x.ravel().tolist() if seen(word) not in stop]
    return np.array(kept or [""], object).reshape((-1,) if x.ndim == 1 else (1, -1))


@string_normalizer.examples
def examples() -> Iterator[Example]:
    x = np.array(["Monday", "tuesday", "WEDNESDAY", "Été"], object)
    yield Example(10, x, expect=[x])
    lower = np.array([["tuesday", "wednesday", "été"]], object)
    yield Example(10, x[None], stopwords=["monday"], case_change_action="LOWER", expect=[lower])
    upper = np.array(["MONDAY", "TUESDAY", "WEDNESDAY", "ÉTÉ"], object)
    yield Example(
        10, x, stopwords=["monday"], is_case_sensitive=1, case_change_action="UPPER", expect=[upper]
    )
    yield Example(10, x, stopwords=["monday"], is_case_sensitive=0, expect=[x[1:]])
    yield Example(10, x[:1], stopwords=["Monday"], is_case_sensitive=1, expect=[np.array([""], object)])
    yield Example(10, x[None, :1], stopwords=["MONDAY"], expect=[np.array([[""]], object)])
