"""Types, symbolic shapes and known contents, carried through a model."""

from sabir.infer._annotate import infer
from sabir.infer._engine import Inference
from sabir.infer._merge import merge
from sabir.infer._outputs import type_outputs
from sabir.ir import Builder

Builder.complete = type_outputs

__all__ = ["Inference", "infer", "merge", "type_outputs"]
