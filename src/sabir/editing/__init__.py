"""Edits of a model on request: parts, outputs, inputs, functions."""

from sabir.editing._extract import extract
from sabir.editing._initializers import initializers_to_inputs, inputs_to_initializers
from sabir.editing._outline import outline
from sabir.editing._outputs import add_outputs
from sabir.editing._split import Halves, split

__all__ = [
    "Halves",
    "add_outputs",
    "extract",
    "initializers_to_inputs",
    "inputs_to_initializers",
    "outline",
    "split",
]
