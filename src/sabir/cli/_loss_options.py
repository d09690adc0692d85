"""`--loss-option NAME=NUMBER`: the options of a loss that has a name."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError, listed_names, quote
from sabir.training import LOSSES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sabir.training import Loss


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


_READERS: dict[str, Callable[[str], Any]] = {
    "axis": int, "ignore_index": int, "weights": _numbers, "blank": int, "padding": int, "time_axis": int,
    "lengths": str, "ignore_value": float, "zero_infinity": lambda text: bool(float(text)),
}  # fmt: skip
_IN_NAMES = {"logits"}  # bce and bce_logits are two names


def loss_with_options(name: str, options: Iterable[str]) -> Loss:
    """Return the loss of a name with options, each `NAME=NUMBER`; raises UnsupportedError."""
    loss = LOSSES.get(name)
    if loss is None:
        raise UnsupportedError(
            f"{quote(name)} is a value of the model; --loss-option is for {', '.join(LOSSES)}"
        )
    known = [field.name for field in fields(loss) if field.name not in _IN_NAMES]
    return replace(loss, **dict(_option(name, pair, known) for pair in options))


def _option(loss: str, pair: str, known: list[str]) -> tuple[str, Any]:
    name, _, text = pair.partition("=")
    if name not in known:
        listed = f"has {listed_names(known)}" if known else "has no options"
        raise UnsupportedError(f"--loss-option {quote(pair)}: the loss {loss} {listed}")
    try:
        return name, _READERS.get(name, float)(text)
    except ValueError as error:
        raise UnsupportedError(f"--loss-option {quote(pair)}: write it as {name}=NUMBER") from error


__all__ = ["loss_with_options"]
