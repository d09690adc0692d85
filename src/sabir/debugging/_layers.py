"""The layers of a model, as the names of its nodes give them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from sabir.ir import Node

_SCOPES = "pkg.torch.onnx.name_scopes"
"""The metadata in which PyTorch's exporter keeps a list of the modules around a node, outermost first."""


def layer_of(node: Node) -> tuple[str, ...]:
    """Return the names of the layers around a node, outermost first.

    They are what PyTorch's exporter keeps in metadata, else the parts of the node's name before the last `/`,
    else those of the name of its first weight before the last dot. A weight that several nodes read says
    nothing: files keep equal weights of several layers once. A node with none of these is in no layer.

    >>> from sabir.ir import Node
    >>> layer_of(Node('Conv', [], name='/features/block.1/conv/Conv'))
    ('features', 'block.1', 'conv')
    """
    scopes = (node.metadata or {}).get(_SCOPES)
    if scopes is not None:
        return _of_scopes(scopes)
    if "/" in node.name:
        return tuple([part for part in node.name.split("/")[:-1] if part])
    constants = [v for v in node.inputs if v is not None and v.constant is not None]
    weights = [v.name for v in constants if "." in v.name and v.read_count == 1]
    return tuple([part for part in weights[0].split(".")[:-1] if part]) if weights else ()


def _of_scopes(text: str) -> tuple[str, ...]:
    """Return the parts of the innermost module of a list such as `['', 'layer1', 'layer1.0', 'add']`."""
    try:
        found: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return ()
    scopes = cast("list[object]", found) if isinstance(found, list) else []
    *modules, _ = scopes or [""]  # the last one names the node
    return tuple([part for part in str(modules[-1]).split(".") if part]) if modules else ()
