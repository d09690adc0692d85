"""The losses by name, and what `prepare` takes for a loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.training._classification import (
    BinaryCrossEntropy,
    CrossEntropy,
    Dice,
    Focal,
    KLDivergence,
    NegativeLogLikelihood,
)
from sabir.training._ctc import CTC
from sabir.training._losses import Loss, LossFunction
from sabir.training._regression import Huber, MeanAbsoluteError, MeanSquaredError, SmoothL1

if TYPE_CHECKING:
    from sabir.training._losses import Function

LOSSES: dict[str, Loss] = {
    "cross_entropy": CrossEntropy(), "nll": NegativeLogLikelihood(), "mse": MeanSquaredError(),
    "mae": MeanAbsoluteError(), "bce_logits": BinaryCrossEntropy(), "bce": BinaryCrossEntropy(logits=False),
    "huber": Huber(), "smooth_l1": SmoothL1(), "kl": KLDivergence(), "focal": Focal(), "dice": Dice(),
    "ctc": CTC(),
}  # fmt: skip
"""The losses by the names that `prepare` and `sabir train` know."""


def loss_of(asked: str | Loss | Function) -> Loss | str:
    """Return the loss that is asked for, as an object, a function or a name; other names as they are."""
    if isinstance(asked, str):
        return LOSSES.get(asked, asked)
    return asked if isinstance(asked, Loss) else LossFunction(asked)


__all__ = ["LOSSES", "loss_of"]
