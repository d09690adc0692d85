"""Edits of a model on request: parts, joined and renamed models, outputs, inputs, functions, steps."""

from sabir.editing._extract import extract
from sabir.editing._finding import Finder
from sabir.editing._initializers import initializers_to_inputs, inputs_to_initializers
from sabir.editing._merge import Merging, merge, merge_and_report
from sabir.editing._merged_names import Renaming
from sabir.editing._outline import outline
from sabir.editing._outputs import add_outputs
from sabir.editing._processing import append, prepend
from sabir.editing._rename import NewName, Renamed, rename, rename_and_report
from sabir.editing._split import Halves, split

__all__ = [
    "Finder",
    "Halves",
    "Merging",
    "NewName",
    "Renamed",
    "Renaming",
    "add_outputs",
    "append",
    "extract",
    "initializers_to_inputs",
    "inputs_to_initializers",
    "merge",
    "merge_and_report",
    "outline",
    "prepend",
    "rename",
    "rename_and_report",
    "split",
]
