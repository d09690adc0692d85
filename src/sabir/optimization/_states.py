"""Initial states of recurrent layers that are zero, which they are too where they are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.ir import Tensor, canonical_domain

if TYPE_CHECKING:
    from sabir.ir import Model, Node, Value

_STATES = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}  # the operands
_MOVES = frozenset({"Slice", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Identity", "Tile"})
_MOST_STEPS = 16


class DropZeroStates(NamedTuple):
    """The pass that leaves out initial states of zeros, which exporters compute for each size of a batch.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[S,B,1] x) => (y) <float[1,1,1] w = {1}, int64[3] s = {1, 2, 1}> { h = ConstantOfShape (s)
    ... y = RNN <hidden_size = 1> (x, w, w, , , h) }''')
    >>> DropZeroStates().run(model), len(model.graph[1].inputs)
    (True, 3)
    """

    name: str = "drop zero states"

    def run(self, model: Model) -> bool:
        """Leave out the states, and return whether there were any."""
        found = False
        for node in list(model.graph.all_nodes()):
            if node.op not in _STATES or canonical_domain(node.domain):
                continue
            for slot in _STATES[node.op]:
                if slot < len(node.inputs) and _is_zero(node.inputs[slot]):
                    node.inputs[slot] = None
                    found = True
            _shorten(node)
        return found


def _shorten(node: Node) -> None:
    """Remove the operands at the end that are left out."""
    while len(node.inputs) and node.inputs[-1] is None:
        del node.inputs[-1]


def _is_zero(value: Value | None) -> bool:
    """Return whether all elements of a value are zero, whatever its shape."""
    for _ in range(_MOST_STEPS):
        if value is None:
            return False
        data = value.constant
        if data is not None:
            return isinstance(data, Tensor) and not value.is_input and not data.array().any()
        node = value.node
        if node is None or canonical_domain(node.domain):
            return False
        if node.op == "ConstantOfShape":
            fill = node.attributes.get("value")
            return fill is None or (isinstance(fill.value, Tensor) and not fill.value.array().any())
        if node.op not in _MOVES:
            return False
        value = node.inputs[0]
    return False
