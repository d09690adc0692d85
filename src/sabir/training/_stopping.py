"""Early stopping: which epoch of a training is the best, and when no better one is expected."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sabir.base import UnsupportedError, listed_names, quote, suggest
from sabir.training._guarding import monitored

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

VALIDATION = "validation_"  # before the names of results of the validation
# metrics, also with the name of an output before them
_RISING = re.compile(
    r"(?:.*_)?(?:accuracy|top_[0-9]+|(?:precision|recall|f1)(?:_macro|_micro|_weighted)?|roc_auc(?:_ovr)?|r2)"
)


@dataclass(frozen=True, slots=True)
class EarlyStopping:
    """When `fit` stops, and which epoch's state it ends with: the best one, by a result that is monitored.

    Training stops after `patience` epochs without a better result; with None it never stops early, and the
    best epoch is kept all the same. `monitor` is the name of a result, by default the loss; it is that of the
    validation where the validation has it, and `validation_` before the name requires that. A result is
    better if it is lower than the best one by more than `min_delta`, or with `mode="max"` higher; `auto`
    takes max for accuracies and other metrics that rise. Without `restore_best` the session keeps the state
    of the last epoch.

    Raises UnsupportedError for numbers out of their range.

    >>> EarlyStopping(5, monitor='accuracy').rises
    True
    """

    patience: int | None = 10
    monitor: str | None = None
    mode: Literal["auto", "min", "max"] = "auto"
    min_delta: float = 0.0
    restore_best: bool = True

    def __post_init__(self) -> None:
        """Raise UnsupportedError for numbers out of their range, and another mode."""
        if self.patience is not None and self.patience < 1:
            raise UnsupportedError(f"patience is 1 or more, or None; got {self.patience}")
        if not 0 <= self.min_delta < math.inf:
            raise UnsupportedError(f"min_delta is a finite number, 0 or more; got {self.min_delta}")
        if self.mode not in {"auto", "min", "max"}:
            raise UnsupportedError(f"the mode of early stopping is auto, min or max; got {self.mode!r}")

    @property
    def rises(self) -> bool:
        """Whether a higher result is better."""
        return self.mode == "max" or (self.mode == "auto" and bool(_RISING.fullmatch(self.monitor or "")))

    def check(self, results: Collection[str], validation: Collection[str]) -> None:
        """Raise UnsupportedError where neither training nor validation have what is monitored."""
        known = [*results, *(f"{VALIDATION}{name}" for name in validation)]
        if self.monitor is not None and self.monitor not in known and self.monitor not in validation:
            hint = suggest(self.monitor, known) or f"; there are {listed_names(known)}"
            raise UnsupportedError(f"the training has no result {quote(self.monitor)} to monitor{hint}")

    def value(self, results: Mapping[str, float], validation: Mapping[str, float]) -> float:
        """Return the result of an epoch that is monitored; a lower one is better."""
        if self.monitor is None:
            found = monitored(validation or results)
        else:
            name = self.monitor.removeprefix(VALIDATION)
            found = validation.get(name, results.get(self.monitor, math.nan))
        return -found if self.rises else found


class Stopper:
    """Counts the epochs without a better result."""

    def __init__(self, rule: EarlyStopping) -> None:
        self._rule, self._lowest, self.waited = rule, math.inf, 0

    def is_best(self, value: float) -> bool:
        """Take note of the value of an epoch; return whether it is the best one so far."""
        if value < self._lowest - self._rule.min_delta:
            self._lowest, self.waited = value, 0
            return True
        self.waited += 1
        return False

    @property
    def is_over(self) -> bool:
        """Whether the patience is at its end."""
        return self._rule.patience is not None and self.waited >= self._rule.patience


__all__ = ["VALIDATION", "EarlyStopping", "Stopper"]
