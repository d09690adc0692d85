"""Equalization: channels between two layers are scaled so that both layers have ranges alike.

An output channel of a layer is divided by a factor, and the weights of the next layer for this channel are
multiplied by it. The method is that of Nagel, van Baalen, Blankevoort and Welling (2019), section 4.1.
Factors are powers of 2, so that the model of floats computes the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import FLOAT
from sabir.ir import Node, canonical_domain
from sabir.quantization._biases import Bias, bias_of
from sabir.quantization._exclusion import Exclusion
from sabir.quantization._rectifiers import limits
from sabir.quantization._weights import WEIGHT, Weighted, attribute, only_use, weighted_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sabir.ir import Array, Value
    from sabir.quantization._editing import Edit

_MATRIX = 2  # axes
_POOLS = frozenset({"AveragePool", "MaxPool"})  # of channels, one by one
_SWEEPS = 20  # over all pairs; most models need fewer than 5
_MOST = 8  # the exponent of a factor: no product becomes subnormal or infinite


def equalize(edit: Edit, excluded: Exclusion) -> dict[Node, float]:
    """Change the weights of layers that follow each other; return the largest factor of each that changed.

    A pair is Conv and Conv, or two of Gemm and MatMul, each with weights of its own. Between them are only
    Relu, LeakyRelu, Clip without other limits than 0, and poolings of Conv. Each has one reader alone.
    """
    layers = _layers(edit, excluded)
    pairs = list(_pairs(edit, layers))
    for _ in range(_SWEEPS):
        changes = [_balance(first, second) for first, second, _ in pairs]
        if not any(changes):
            break
    for first, _, bias in pairs:
        if bias is not None and bias.data is not None and (first.rows != 1).any():
            bias.store(edit, np.asarray(bias.data.array() / first.rows, np.float32))
    changed = {layer.weighted.node: layer.largest for layer in layers.values() if layer.largest > 1}
    for layer in layers.values():
        if layer.weighted.node in changed:
            edit.set_constant(layer.weighted.node, WEIGHT, layer.weighted.weights.name, layer.scaled())
    if changed:
        edit.rewriter.forget_types()
    return changed


@dataclass
class _Layer:
    """A layer with the largest weight for each pair of an output and an input channel.

    `ranges` has the shape (groups, outputs of a group, inputs of a group). Output channels are divided by
    `rows`, and weights of input channels multiplied by `columns`.
    """

    weighted: Weighted
    ranges: Array
    rows: Array = field(init=False)
    columns: Array = field(init=False)

    def __post_init__(self) -> None:
        groups, outputs, inputs = self.ranges.shape
        self.rows, self.columns = np.ones(groups * outputs), np.ones(groups * inputs)

    @property
    def largest(self) -> float:
        """The largest factor of a channel, or the reciprocal of the smallest."""
        exponents = np.log2(np.concatenate((self.rows, self.columns)))
        return float(2 ** np.abs(exponents).max())

    def of_outputs(self) -> Array:
        """Return the largest weight of each output channel."""
        return self._current().max(axis=2).ravel()

    def of_inputs(self) -> Array:
        """Return the largest weight of each input channel."""
        return self._current().max(axis=1).ravel()

    def _current(self) -> Array:
        groups, outputs, inputs = self.ranges.shape
        return self.ranges * self.columns.reshape(groups, 1, inputs) / self.rows.reshape(groups, outputs, 1)

    def scaled(self) -> Array:
        """Return the weights with all factors."""
        groups, outputs, inputs = self.ranges.shape
        factors = self.columns.reshape(groups, 1, inputs) / self.rows.reshape(groups, outputs, 1)
        array, axes = self.weighted.array(), (self.weighted.channel, self.weighted.summed)
        moved = np.moveaxis(array, axes, (0, 1))
        factors = factors.reshape(groups * outputs, inputs, *(1,) * (array.ndim - _MATRIX))
        return np.ascontiguousarray(np.moveaxis(moved * factors.astype(array.dtype), (0, 1), axes))


def _layers(edit: Edit, excluded: Exclusion) -> dict[Node, _Layer]:
    """Return the layers of the main graph whose weights no other node reads.

    Those that a budget excludes are among them, so that all choices of a budget have the same activations.
    """
    found: dict[Node, _Layer] = {}
    for weighted in weighted_nodes(edit.model, Exclusion(excluded.names)):
        if not isinstance(weighted, Weighted) or weighted.node.graph is not edit.model.graph:
            continue
        node, data = weighted.node, weighted.data
        if data.element is not FLOAT or weighted.weights.read_count != 1:
            continue
        if node.op != "Conv" and (len(data.shape) != _MATRIX or attribute(node, "transA", 0)):
            continue
        groups = int(attribute(node, "group", 1)) if node.op == "Conv" else 1
        if groups < 1 or data.shape[weighted.channel] % groups:
            continue  # calibration refuses the node
        moved = np.moveaxis(np.abs(weighted.array()), (weighted.channel, weighted.summed), (0, 1))
        ranges = moved.reshape(*moved.shape[:2], -1).max(axis=2)
        found[node] = _Layer(weighted, ranges.reshape(groups, -1, ranges.shape[1]).astype(float))
    return found


def _pairs(edit: Edit, layers: dict[Node, _Layer]) -> Iterator[tuple[_Layer, _Layer, Bias | None]]:
    """Yield each layer whose channels only one other layer reads, with that layer and the bias between."""
    state = edit.model.state()
    for node, first in layers.items():
        bias = bias_of(first.weighted, state)
        is_bare = node.op == "MatMul" and isinstance(bias, str)
        if isinstance(bias, str) and not is_bare:
            continue
        found = None if isinstance(bias, str) else bias
        reader = _reader(node if found is None else found.node, state, is_convolution=node.op == "Conv")
        second = None if reader is None else layers.get(reader)
        is_alike = second is not None and (second.weighted.node.op == "Conv") == (node.op == "Conv")
        if second is not None and is_alike and len(second.columns) == len(first.rows):
            yield first, second, found


def _reader(node: Node, state: Collection[Value], *, is_convolution: bool) -> Node | None:
    """Return the node that alone reads a result, after operators that scale with their operand."""
    while True:
        use = only_use(node)
        reader = None if use is None or use.slot else use.user
        if not isinstance(reader, Node) or reader.graph is not node.graph:
            return None
        node = reader
        if not _scales(node, state, is_convolution=is_convolution):
            return node


def _scales(node: Node, state: Collection[Value], *, is_convolution: bool) -> bool:
    """Return whether an operator of a scaled channel computes a scaled result."""
    if canonical_domain(node.domain):
        return False
    if node.op == "LeakyRelu" or (is_convolution and node.op in _POOLS and len(node.outputs) == 1):
        return True
    found = limits(node, state)
    return found is not None and all(limit == 0 or np.isinf(limit) for limit in found)


def _balance(first: _Layer, second: _Layer) -> bool:
    """Scale the channels between two layers; return whether a factor changed."""
    outputs, inputs = first.of_outputs(), second.of_inputs()
    is_live = (outputs > 0) & (inputs > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.where(is_live, np.rint(np.log2(outputs / inputs) / 2), 0)
    exponents = np.clip(np.log2(first.rows) + exponents, -_MOST, _MOST)
    if (2**exponents == first.rows).all():
        return False
    first.rows = second.columns = 2**exponents
    return True
