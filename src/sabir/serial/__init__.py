"""Models from files and to files."""

from sabir.serial._external import Extent, Folder, extent_of
from sabir.serial._files import dumps, largest_movable, load, load_tensor, loads, save
from sabir.serial._formats import FORMATS, Format, format_by_name, format_named, format_of
from sabir.serial._safetensors import load_safetensors
from sabir.serial._values import load_value, save_value
from sabir.serial._verifying import ExternalProblem, external_problems

__all__ = [
    "FORMATS",
    "Extent",
    "ExternalProblem",
    "Folder",
    "Format",
    "dumps",
    "extent_of",
    "external_problems",
    "format_by_name",
    "format_named",
    "format_of",
    "largest_movable",
    "load",
    "load_safetensors",
    "load_tensor",
    "load_value",
    "loads",
    "save",
    "save_value",
]
