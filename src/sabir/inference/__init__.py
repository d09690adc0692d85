"""Types, symbolic shapes and known contents, carried through a model."""

from sabir.inference._annotate import infer
from sabir.inference._engine import Inference
from sabir.inference._growing import GrowingTypes
from sabir.inference._merge import merge
from sabir.inference._outputs import type_outputs

__all__ = ["GrowingTypes", "Inference", "infer", "merge", "type_outputs"]
