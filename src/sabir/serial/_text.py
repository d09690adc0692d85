"""`sabir.text`: the text of a model object, of a file, or of a protobuf message."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from sabir.serial._loading import load
from sabir.serial._messages import from_proto
from sabir.syntax import text as text_of

if TYPE_CHECKING:
    from sabir.base import Limits
    from sabir.ir import Function, Graph, Model, Node


def text(
    model: Model | Graph | Function | Node | str | os.PathLike[str],
    *,
    elide: int | None = None,
    metadata: bool | None = None,
    limits: Limits | None = None,
) -> str:
    """Return the text of a model, a graph, a function or a node; `parse` and its kin read it back.

    `model` may also be the path of a model, or a protobuf message. Standard syntax is used wherever it
    suffices, and notes elsewhere, which are comments to other readers where they are on separate lines.
    Missing and clashing names are made unique in the text alone. With `elide`, a tensor or list of more
    elements is written as their number, `{... 9,408 elements}`, a long text is cut, the metadata of graphs,
    functions, nodes, values and tensors is left out, and no reader accepts the text. `metadata` decides alone
    about metadata and long texts: True writes all, False leaves the metadata out.

    Raises LimitError for graphs that are nested too deep, WireError for a constant made in memory whose data
    does not fit its type, TypeError for another object, and for a path as `load` does; external data is
    referred to, not read.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> print(sabir.text(model.graph[0]), end='')
    y = Relu (x)
    """
    subject: Any = model
    if isinstance(model, (str, os.PathLike)):
        subject = load(model, limits=limits)
    elif hasattr(model, "DESCRIPTOR"):
        subject = from_proto(model, limits=limits)
    return text_of(subject, elide=elide, metadata=metadata, limits=limits)
