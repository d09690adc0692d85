"""Every tensor of a model, with a name for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.ir._places import TENSORS, places
from sabir.ir._tensors import SparseTensor, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.base import Location
    from sabir.ir._attributes import Attribute
    from sabir.ir._graph import Graph
    from sabir.ir._model import Model
    from sabir.ir._places import Place
    from sabir.ir._tensors import Constant


class TensorPlace(NamedTuple):
    """A tensor, its location, and a name for it: its value's, or its node's and attribute's, or none."""

    tensor: Tensor
    where: Location
    name: str


def all_tensors(model: Model) -> Iterator[TensorPlace]:
    """Yield every tensor of a model, the two parts of each sparse one too.

    Initializers and attributes, in the main graph, the training graphs and the functions, in their subgraphs,
    and in the defaults of function attributes.

    >>> b = sabir.Builder(21)
    >>> w = b.initializer('w', np.zeros(3, np.float32))
    >>> [place.tensor.shape for place in all_tensors(b.model())]
    [(3,)]
    """
    for place in places(model, Tensor):
        yield TensorPlace(place.object, place.inside, _name(place))


def stored_bytes(model: Model) -> int:
    """Return the bytes of all tensors of a model, as `all_tensors` yields them.

    >>> b = sabir.Builder(21)
    >>> w = b.initializer('w', np.zeros(3, np.float32))
    >>> stored_bytes(b.model())
    12
    """
    found = sum(_size(a) for f in model.functions for a in f.attributes.values() if a is not None)
    for root in model.graphs():
        for graph in root.scopes():
            found += sum(map(_size, graph.initializers.values()))
            found += sum(_size(a) for node in graph for a in node.attributes.values())
    return found


def _size(data: Constant | Attribute) -> int:
    """Return the bytes of a constant, or of the tensors of an attribute."""
    if isinstance(data, Tensor):
        return data.nbytes
    if isinstance(data, SparseTensor):
        return data.values.nbytes + data.indices.nbytes
    if data.type not in TENSORS or data.value is None:
        return 0
    value: Any = data.value
    return sum(map(_size, value if data.type in {"tensors", "sparse_tensors"} else (value,)))


def _name(place: Place) -> str:
    """Return the names of a tensor's owners, from the value, the node or the function inwards."""
    if place.step in {"initializer", "node", "function"} or place.outer is None:
        return place.name
    if place.step == "tensor" and place.index is None:
        return _name(place.outer)
    own = str(place.index) if place.step == "tensor" else place.name or place.step
    return f"{_name(place.outer)}.{own}"


def drop_constants(root: Graph) -> None:
    """Remove the constants of a graph that nobody else uses, and of those inside it.

    Nodes and values refer to each other, so that a graph lives until the cycle collector runs; its large data
    need not.
    """
    for graph in list(root.scopes()):
        graph.initializers.clear()
        for node in graph:
            for name, attribute in list(node.attributes.items()) if node.attributes else ():
                if attribute.type in TENSORS:
                    del node.attributes[name]
