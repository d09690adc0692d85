"""Models cut, joined and renamed, and steps put before and after them."""

from sabir.editing._merge import Merging, merge, merge_and_report
from sabir.editing._merged_names import Renaming
from sabir.editing._processing import append, prepend
from sabir.editing._rename import NewName, Renamed, rename, rename_and_report

__all__ = [
    "Merging",
    "NewName",
    "Renamed",
    "Renaming",
    "append",
    "merge",
    "merge_and_report",
    "prepend",
    "rename",
    "rename_and_report",
]
