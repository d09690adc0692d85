"""Models from files and to files, and their external data."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.serial._external import Extent, Folder, extent_of
from sabir.serial._formats import FORMATS, Format, format_by_name, format_named, format_of
from sabir.serial._loading import load, load_opened, load_tensor, loads
from sabir.serial._saving import dumps, save
from sabir.serial._verifying import ExternalProblem, external_problems

if TYPE_CHECKING:
    from sabir.serial._messages import from_proto, to_proto
    from sabir.serial._operator_sets import (
        dumps_operator_set,
        load_either,
        load_operator_set,
        loads_operator_set,
        save_operator_set,
    )
    from sabir.serial._pictures import (
        PICTURES,
        Normalization,
        PictureLayout,
        decoded,
        laid_out,
        layout_of,
        read_image,
    )
    from sabir.serial._placement import largest_movable
    from sabir.serial._safetensors import load_safetensors, save_safetensors
    from sabir.serial._text import text
    from sabir.serial._values import load_value, save_value
    from sabir.serial._writer import ModelWriter

# few programs need these, and `import sabir` does not wait for them
_LATER = {
    **dict.fromkeys(
        ("PICTURES", "Normalization", "PictureLayout", "decoded", "laid_out", "layout_of", "read_image"),
        "_pictures",
    ),
    "dumps_operator_set": "_operator_sets", "from_proto": "_messages", "largest_movable": "_placement",
    "ModelWriter": "_writer",
    "load_either": "_operator_sets", "load_operator_set": "_operator_sets",
    "load_safetensors": "_safetensors", "save_safetensors": "_safetensors",
    "load_value": "_values", "loads_operator_set": "_operator_sets",
    "save_operator_set": "_operator_sets", "save_value": "_values", "text": "_text", "to_proto": "_messages",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)


__all__ = [
    "FORMATS",
    "PICTURES",
    "Extent",
    "ExternalProblem",
    "Folder",
    "Format",
    "ModelWriter",
    "Normalization",
    "PictureLayout",
    "decoded",
    "dumps",
    "dumps_operator_set",
    "extent_of",
    "external_problems",
    "format_by_name",
    "format_named",
    "format_of",
    "from_proto",
    "laid_out",
    "largest_movable",
    "layout_of",
    "load",
    "load_either",
    "load_opened",
    "load_operator_set",
    "load_safetensors",
    "load_tensor",
    "load_value",
    "loads",
    "loads_operator_set",
    "read_image",
    "save",
    "save_operator_set",
    "save_safetensors",
    "save_value",
    "text",
    "to_proto",
]
