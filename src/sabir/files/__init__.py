"""Files and folders: read, mapped, kept open safely, and replaced in one step."""

from sabir.files._folders import HeldFolder, open_inside
from sabir.files._locations import is_device_name, parts_of
from sabir.files._reading import (
    MAX_SPARSE_RATIO,
    PIECE,
    MappedFile,
    OpenFile,
    Streamed,
    absolute,
    contents_of,
    held_size,
    map_file,
    open_file,
    pieces_of,
    reason,
    require_held,
    still_whole,
    view_of,
)
from sabir.files._saving import NewFile, replace_file, temporary_name, writable

__all__ = [
    "MAX_SPARSE_RATIO",
    "PIECE",
    "HeldFolder",
    "MappedFile",
    "NewFile",
    "OpenFile",
    "Streamed",
    "absolute",
    "contents_of",
    "held_size",
    "is_device_name",
    "map_file",
    "open_file",
    "open_inside",
    "parts_of",
    "pieces_of",
    "reason",
    "replace_file",
    "require_held",
    "still_whole",
    "temporary_name",
    "view_of",
    "writable",
]
