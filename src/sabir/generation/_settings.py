"""The options of a generation: their values, their defaults, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from sabir.base import UnsupportedError, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_NEW_TOKENS = 256
"""How many tokens a generation produces at most, unless the call or the folder has another number."""

# an option that only sampling reads: a call that passes one wants to sample
_SAMPLING = ("temperature", "top_k", "top_p", "min_p")


class Options(TypedDict, total=False):
    """The keyword arguments of `TextGenerator.generate`, `stream` and `chat`; None is the default.

    >>> options: Options = {'max_new_tokens': 20, 'temperature': 0.7, 'seed': 1}
    """

    max_new_tokens: int | None
    min_new_tokens: int | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    repetition_penalty: float | None
    no_repeat_ngram_size: int | None
    stop: str | int | Sequence[str | int] | None
    seed: int | None
    num_beams: int | None
    length_penalty: float | None
    early_stopping: bool | Literal["never"] | None
    on_token: Callable[[int, int], object] | None


@dataclass(frozen=True)
class Settings:
    """How tokens are chosen and when a generation ends: the defaults of a folder, or those of a call.

    `sample` draws from the probabilities; without it the most probable token is taken. `temperature` divides
    the logits; `top_k` (0 is no bound), `top_p` and `min_p` bound the candidates. `stop_ids` and
    `stop_strings` end a generation. The ids in `suppressed` are never produced, and those in
    `suppressed_first` never as the first new token; `forced_first` and `forced_last` are the first new token,
    and the last where the number of tokens ends the generation.

    >>> Settings().sample
    False
    """

    max_new_tokens: int = MAX_NEW_TOKENS
    min_new_tokens: int = 0
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    seed: int | None = None
    num_beams: int = 1
    length_penalty: float = 1.0
    early_stopping: bool | Literal["never"] = False
    stop_ids: frozenset[int] = frozenset()
    stop_strings: tuple[str, ...] = ()
    suppressed: tuple[int, ...] = ()
    suppressed_first: tuple[int, ...] = ()
    forced_first: int | None = None
    forced_last: int | None = None
    on_token: Callable[[int, int], object] | None = None

    def __post_init__(self) -> None:
        """Raise UnsupportedError for a value outside the range of its option."""
        for name, (is_valid, needed) in _RANGES.items():
            value = getattr(self, name)
            try:
                valid = not isinstance(value, str) and is_valid(value)
            except TypeError:
                valid = False
            if not valid:
                raise UnsupportedError(f"{name} must be {needed}; got {value!r}")
        if self.sample and self.num_beams > 1:
            raise UnsupportedError(
                "beam search does not sample: pass num_beams=1 to sample, or temperature=0 to search"
            )

    def with_options(self, options: Mapping[str, Any]) -> Settings:
        """Return these settings with the options of a call; raises UnsupportedError for an invalid one."""
        unknown = next((name for name in options if name not in _OPTIONS), None)
        if unknown is not None:
            raise UnsupportedError(f"there is no option {unknown!r}{suggest(unknown, list(_OPTIONS))}")
        passed = {name: value for name, value in options.items() if value is not None}
        stop = passed.pop("stop", ())
        strings, ids = _stops(stop)
        if passed.get("temperature") == 0:
            passed |= {"temperature": 1.0, "sample": False}
        elif any(name in passed for name in _SAMPLING):
            passed["sample"] = True
        return replace(
            self, **passed, stop_ids=self.stop_ids | ids, stop_strings=(*self.stop_strings, *strings)
        )


def _stops(stop: str | int | Sequence[str | int]) -> tuple[tuple[str, ...], frozenset[int]]:
    """Return the strings and the ids of the option `stop`."""
    items: Sequence[Any] = (stop,) if isinstance(stop, (str, int)) else stop
    wrong = [s for s in items if not isinstance(s, (str, int)) or isinstance(s, bool) or not (s or s == 0)]
    if wrong:
        raise UnsupportedError(f"stop has texts and token ids; got {wrong[0]!r}")
    return tuple(s for s in items if isinstance(s, str)), frozenset(s for s in items if isinstance(s, int))


def _is_count(least: int) -> Callable[[Any], bool]:
    return lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= least


_RANGES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "max_new_tokens": (_is_count(0), "a number of tokens, 0 or more"),
    "min_new_tokens": (_is_count(0), "a number of tokens, 0 or more"),
    "temperature": (lambda v: 0 < v < float("inf"), "a positive number, or 0 for no sampling"),
    "top_k": (_is_count(0), "a number of tokens, or 0 for no bound"),
    "top_p": (lambda v: 0 < v <= 1, "a probability above 0"),
    "min_p": (lambda v: 0 <= v <= 1, "a probability"),
    "repetition_penalty": (lambda v: 0 < v < float("inf"), "a positive number"),
    "no_repeat_ngram_size": (_is_count(0), "a number of tokens, or 0 for no bound"),
    "seed": (lambda v: v is None or _is_count(0)(v), "an integer, 0 or more"),
    "num_beams": (_is_count(1), "a number of beams, 1 or more"),
    "length_penalty": (lambda v: abs(v) < float("inf"), "a finite number"),
}  # fmt: skip
_OPTIONS = {*Options.__annotations__} & {*(f.name for f in fields(Settings)), "stop"}
