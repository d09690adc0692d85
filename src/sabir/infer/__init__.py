"""Types, symbolic shapes and known contents, carried through a model."""

from sabir.infer._engine import Inference, infer
from sabir.infer._merge import merge

__all__ = ["Inference", "infer", "merge"]
