"""`view`: the page of a model, written to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sabir.files import replace_file
from sabir.opsets import STANDARD
from sabir.viewing._document import page_of
from sabir.viewing._page import html_of

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from sabir.base import Limits
    from sabir.ir import Model
    from sabir.schema import Registry


def view(
    model: Model,
    path: str | os.PathLike[str],
    dims: Mapping[str, int | str | None] | None = None,
    *,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> None:
    """Write a page that shows a model in a browser: one HTML file, which loads nothing from elsewhere.

    It has the graph with its functions and subgraphs, repeated blocks folded, types and shapes, what nodes
    cost, the findings of the checker, the documentation of the operators, and summaries of the weights, of
    which large ones are sampled. `dims` sets dimension variables as `set_dims` does. A file at `path` is
    replaced in one step. The model is not changed.

    Raises UnsupportedError for more than 200,000 nodes, NotFoundError for a dimension that the model does not
    have, FileError where no file can be written, and LimitError beyond `limits`.

    >>> import tempfile, pathlib
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, 'page.html')
    ...     sabir.view(model, path)
    ...     path.read_text()[:15]
    '<!doctype html>'
    """
    target = Path(path)
    page = page_of(model, dims, name=target.stem, registry=registry, limits=limits)
    replace_file(target, [html_of(page)])
