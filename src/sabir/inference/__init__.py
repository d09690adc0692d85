"""Types, symbolic shapes and known contents, carried through a model."""

from sabir.inference._annotate import infer, infer_in_place
from sabir.inference._causes import Cause
from sabir.inference._contents import without_contents
from sabir.inference._diagnostics import Diagnostic
from sabir.inference._engine import Inference
from sabir.inference._growing import GrowingTypes
from sabir.inference._merge import contradiction, merge
from sabir.inference._multiply_adds import SizedCall, is_counted, multiply_adds
from sabir.inference._outputs import type_outputs
from sabir.inference._set_dims import ChangedDims, change_model_dims, set_dims

__all__ = [
    "Cause",
    "ChangedDims",
    "Diagnostic",
    "GrowingTypes",
    "Inference",
    "SizedCall",
    "change_model_dims",
    "contradiction",
    "infer",
    "infer_in_place",
    "is_counted",
    "merge",
    "multiply_adds",
    "set_dims",
    "type_outputs",
    "without_contents",
]
