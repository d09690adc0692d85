"""Files and folders: reading, mapping, replacing in one step, and locations below a model's folder."""

from typing import TYPE_CHECKING

from sabir.base import importing_later
from sabir.files._reading import (
    MAX_SPARSE_RATIO,
    PIECE,
    READING,
    LazyBytes,
    MappedFile,
    OpenFile,
    absolute,
    allocated_size,
    contents_of,
    map_file,
    open_file,
    pieces_of,
    reason,
    require_allocated,
    untruncated,
    view_of,
)

if TYPE_CHECKING:
    from sabir.files._folders import OpenFolder, open_inside
    from sabir.files._locations import is_device_name, parts_of
    from sabir.files._opened import OpenedFile, opened_file
    from sabir.files._saving import NewFile, replace_file, temporary_name, writable

# imported on first use, so that `import sabir` stays fast
_LATER = {
    "OpenFolder": "_folders", "open_inside": "_folders", "is_device_name": "_locations",
    "parts_of": "_locations", "OpenedFile": "_opened", "opened_file": "_opened",
    "NewFile": "_saving", "replace_file": "_saving", "temporary_name": "_saving", "writable": "_saving",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)

__all__ = [
    "MAX_SPARSE_RATIO",
    "PIECE",
    "READING",
    "LazyBytes",
    "MappedFile",
    "NewFile",
    "OpenFile",
    "OpenFolder",
    "OpenedFile",
    "absolute",
    "allocated_size",
    "contents_of",
    "is_device_name",
    "map_file",
    "open_file",
    "open_inside",
    "opened_file",
    "parts_of",
    "pieces_of",
    "reason",
    "replace_file",
    "require_allocated",
    "temporary_name",
    "untruncated",
    "view_of",
    "writable",
]
