"""Types, symbolic shapes and known contents, carried through a model."""

from sabir.inference._annotate import infer
from sabir.inference._causes import Cause
from sabir.inference._contents import without_contents
from sabir.inference._diagnostics import Diagnostic
from sabir.inference._engine import Inference
from sabir.inference._growing import GrowingTypes
from sabir.inference._merge import contradiction, merge
from sabir.inference._outputs import type_outputs

__all__ = [
    "Cause",
    "Diagnostic",
    "GrowingTypes",
    "Inference",
    "contradiction",
    "infer",
    "merge",
    "type_outputs",
    "without_contents",
]
