"""StringNormalizer: stop words removed, case changed."""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Dim, TensorType, dim_max
from sabir.opsets.typing import Array, Strings
from sabir.schema import Attribute, Example, Input, Operator, Output, one_of

string_normalizer = Operator(
    "StringNormalizer", summary="The strings except stop words, in lower or upper case or unchanged."
)

_ACTIONS = one_of("LOWER", "UPPER", "NONE")

v10 = string_normalizer.first(
    10,
    inputs=[Input("X", "tensor(string)", "Shape [C] or [1, C].")],
    outputs=[Output("Y", "tensor(string)", "Shape [K] or [1, K]; one empty string if all are removed.")],
    attributes=[
        Attribute("stopwords", "strings", "The strings to remove."),
        Attribute("locale", "string", "The language of case changes, as in `tr_TR`."),
        Attribute("is_case_sensitive", "int", "Whether the case of stop words matters.", default=0),
        Attribute("case_change_action", "string", "LOWER, UPPER or NONE.", default="NONE", values=_ACTIONS),
    ],
)


# Turkish and Azeri have two letters i, with and without a dot
DOT_ABOVE, I_WITH_DOT, I_WITHOUT_DOT = "\u0307", "\u0130", "\u0131"


def _unchanged(word: str) -> str:
    return word


def _turkic_lower(word: str) -> str:
    return word.replace("I" + DOT_ABOVE, "i").replace(I_WITH_DOT, "i").replace("I", I_WITHOUT_DOT).lower()


def _turkic_upper(word: str) -> str:
    return word.replace("i", I_WITH_DOT).upper()


Changes: TypeAlias = dict[str, Callable[[str], str]]
_UNICODE: Changes = {"LOWER": str.lower, "UPPER": str.upper, "NONE": _unchanged}
_TURKIC: Changes = {"LOWER": _turkic_lower, "UPPER": _turkic_upper, "NONE": _unchanged}


def _changes(locale: str | None) -> Changes:
    """Return the case changes of a locale: Unicode's, or those of Turkish and Azeri."""
    language = re.split(r"[-_.@]", locale or "")[0].lower()
    return _TURKIC if language in {"tr", "az"} else _UNICODE


v10.absent("lower", "kernels compute numbers, no texts")
v10.absent("downgrade", "no older operator changes text")


@v10.infer
def infer(x: TensorType, /, *, stopwords: Strings) -> TensorType:
    if x.shape is None:
        return TensorType(x.element)
    if len(x.shape) not in {1, 2} or (len(x.shape) > 1 and isinstance(x.shape[0], int) and x.shape[0] != 1):
        raise InferenceError(f"{x} must have shape [C] or [1, C]")
    kept: Dim = None if stopwords else dim_max(1, *x.shape[-1:])
    return TensorType(x.element, (kept,) if len(x.shape) == 1 else (1, kept))


@v10.evaluate
def evaluate(
    x: Array, /, *, stopwords: Strings, locale: str | None, is_case_sensitive: int, case_change_action: str
) -> Array:
    if x.ndim not in {1, 2} or (x.ndim > 1 and x.shape[0] != 1):
        raise ValueError(f"shape {list(x.shape)} must be [C] or [1, C]")
    changes = _changes(locale)
    change = changes[case_change_action]
    seen = _unchanged if is_case_sensitive else changes["LOWER"]
    stop = {seen(word) for word in stopwords or ()}
    kept = [change(word) for word in x.ravel().tolist() if seen(word) not in stop]
    return np.array(kept or [""], object).reshape((-1,) if x.ndim == 1 else (1, -1))


@string_normalizer.examples
def examples() -> Iterator[Example]:
    x = np.array(["Monday", "tuesday", "WEDNESDAY", "Été"], object)
    yield Example(10, x, expect=[x])
    lower = [["tuesday", "wednesday", "été"]]
    yield Example(10, x[None], stopwords=["monday"], case_change_action="LOWER", expect=[lower])
    upper = ["MONDAY", "TUESDAY", "WEDNESDAY", "ÉTÉ"]
    yield Example(
        10, x, stopwords=["monday"], is_case_sensitive=1, case_change_action="UPPER", expect=[upper]
    )
    yield Example(10, x, stopwords=["monday"], is_case_sensitive=0, expect=[x[1:]])
    yield Example(10, x[:1], stopwords=["Monday"], is_case_sensitive=1, expect=[[""]])
    yield Example(10, x[None, :1], stopwords=["MONDAY"], expect=[[[""]]])
    dots = ["istanbul", "\u0131s\u0131"]
    capitals = ["\u0130STANBUL", "ISI"]
    for locale in ("tr_TR.UTF-8", "az"):
        yield Example(10, dots, case_change_action="UPPER", locale=locale, expect=[capitals])
        yield Example(10, capitals, case_change_action="LOWER", locale=locale, expect=[dots])
        yield Example(10, dots, stopwords=["ISI"], locale=locale, expect=[dots[:1]])
    plain = ["ISTANBUL", "ISI"]
    yield Example(10, dots, case_change_action="UPPER", locale="fr_FR", expect=[plain])
