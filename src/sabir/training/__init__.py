"""Training: models that hold state, initialise, step and infer."""

from sabir.training._saving import strip_training
from sabir.training._session import TrainingSession
from sabir.training._state import State

__all__ = ["State", "TrainingSession", "strip_training"]
