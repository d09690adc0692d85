"""Tables and archives of arrays from files: .npz, .csv, .parquet, .arrow and .feather."""

from __future__ import annotations

import csv
import importlib
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import ACCIDENTS, FeedError, FileError, UnsupportedError, quote

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping

    from sabir.ir import Array


def read_arrays(source: Any) -> dict[str, Array]:
    """Return the arrays of a file, or the columns of a table of pyarrow or pandas, by name.

    Raises FileError or FeedError, naming the file, and UnsupportedError where pyarrow is needed and missing.
    """
    if not isinstance(source, Path):
        return _columns(source, type(source).__name__)
    read = _READERS.get(source.suffix.lower())
    if read is None:
        raise FeedError(
            f"{source}: training data are read from {', '.join(_READERS)} files, and from a folder of "
            "pictures with a folder for each class"
        )
    try:
        return read(source)
    except OSError as error:
        raise FileError(f"{source}: {error.strerror or error}") from error
    except (*ACCIDENTS, EOFError, SyntaxError, csv.Error, zipfile.BadZipFile, zlib.error) as error:
        raise FeedError(f"{source}: this is not a readable {source.suffix} file: {error}") from error


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a table by name, for training data, and where they are from.

    >>> Table({'x': np.ones(3), 'label': np.zeros(3)}, 'points').rows
    3
    """

    columns: Mapping[str, Array]
    origin: str

    @property
    def rows(self) -> int:
        """The number of rows."""
        return max((len(column) for column in self.columns.values() if column.ndim), default=0)


def read_table(path: str | os.PathLike[str]) -> Table:
    r"""Return the columns of a .csv, .parquet, .arrow or .feather file, or the arrays of a .npz file.

    `fit` takes the table, or the path, for data. Raises FileError or FeedError, naming the file, and
    UnsupportedError where pyarrow is needed and missing.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'points.csv'
    >>> _ = path.write_text('x,label\n0.5,1\n1.5,0\n')
    >>> read_table(path).columns
    {'x': array([0.5, 1.5]), 'label': array([1, 0])}
    """
    return Table(read_arrays(Path(path)), str(path))


def is_frame(data: Any) -> bool:
    """Return whether an object is a table of pyarrow, or a data frame of pandas."""
    return (hasattr(data, "schema") and hasattr(data, "to_batches")) or hasattr(data, "iloc")


def _read_npz(path: Path) -> dict[str, Array]:
    with path.open("rb") as file:
        loaded: Any = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise FeedError(f"{path}: this is one array, not an archive of arrays; name it .npy")
        return {name: loaded[name] for name in loaded}


def _read_csv(path: Path) -> dict[str, Array]:
    """Return the columns of a file whose first row has their names."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    names = rows[0] if rows else []
    if len(rows) < 2 or len(set(names)) != len(names):  # ruff: ignore[magic-value-comparison]  names and a sample
        raise FeedError(f"{path}: the first row has the names of the columns, and each other row a sample")
    uneven = next((i for i, row in enumerate(rows, 1) if len(row) != len(names)), None)
    if uneven is not None:
        raise FeedError(
            f"{path}: row {uneven} has {len(rows[uneven - 1])} fields, and the first {len(names)}"
        )
    return {name: _numbers(column, path, name) for name, *column in zip(*rows, strict=True)}


def _numbers(column: list[str], path: Path, name: str) -> Array:
    """Return the numbers of a column of texts: int64 where all are integers, else double."""
    for dtype in (np.int64, np.float64):
        try:
            return np.array(column, dtype)
        except (ValueError, OverflowError):
            continue
    row, text = next((i, text) for i, text in enumerate(column, 2) if not _is_number(text))
    raise FeedError(f"{path}: row {row} has {quote(text)} in the column {quote(name)}, which is no number")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_parquet(path: Path) -> dict[str, Array]:
    return _columns(_pyarrow("pyarrow.parquet", path).read_table(path), str(path))


def _read_arrow(path: Path) -> dict[str, Array]:
    return _columns(_pyarrow("pyarrow.feather", path).read_table(path), str(path))


def _pyarrow(module: str, path: Path) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UnsupportedError(
            f"{path}: {path.suffix} files are read with pyarrow; install it with `pip install 'sabir[data]'`"
        ) from None


def _columns(table: Any, what: str) -> dict[str, Array]:
    """Return the columns of a table of pyarrow or pandas."""
    if hasattr(table, "iloc"):
        return {str(name): _of_objects(table[name].to_numpy(), what, str(name)) for name in table.columns}
    names = cast("Iterable[str]", table.column_names)
    return {name: _of_arrow(table.column(name), what, name) for name in names}


def _of_arrow(column: Any, what: str, name: str) -> Array:
    """Return a column of numbers, or of lists of as many numbers in each row; raises FeedError."""
    if column.null_count:
        raise FeedError(f"{what}: {column.null_count} rows have nothing in the column {quote(name)}")
    if hasattr(column.type, "value_type"):
        return _of_objects(column.to_numpy(), what, name)
    return cast("Array", column.to_numpy())


def _of_objects(column: Array, what: str, name: str) -> Array:
    """Return a column whose rows may be arrays or lists as one array; raises FeedError for uneven ones."""
    if column.dtype.kind != "O" or isinstance(column[0], str):
        return column
    try:
        return np.array([_nested(row) for row in column.tolist()])
    except ValueError as error:
        raise FeedError(
            f"{what}: the rows of the column {quote(name)} have different numbers of values"
        ) from error


def _nested(row: Any) -> Any:
    """Return a row of arrays of arrays, as pyarrow makes them of nested lists, as one array."""
    array = np.asarray(row)
    return np.stack([_nested(item) for item in array]) if array.dtype.kind == "O" and array.ndim else array


_READERS: dict[str, Callable[[Path], dict[str, Array]]] = {
    ".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet, ".arrow": _read_arrow,
    ".feather": _read_arrow,
}  # fmt: skip

__all__ = ["Table", "is_frame", "read_arrays", "read_table"]
