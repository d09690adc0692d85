"""What a constant is for the nodes that read it: a weight, a bias, a mask, a table of positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from sabir.ir import Node, canonical_domain
from sabir.rewriting import constant_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.ir import Array, Function, Model, Value

Kind = Literal["parameter", "constant", "number", "unknown"]

_MICROSOFT = "com.microsoft"
_WEIGHT, _BIAS, _SCALE, _SHIFT = "weight", "bias", "scale", "shift"
_WRITTEN_OUT = "of a normalization that is written out"
_NORMALIZED = {1: _SCALE, 2: _SHIFT}
_RECURRENT = {1: _WEIGHT, 2: _WEIGHT, 3: _BIAS, 7: _WEIGHT}

# the inputs of an operator that are parameters, where they are constants
_PARAMETERS: dict[str, dict[int, str]] = {
    "MatMul": {0: _WEIGHT, 1: _WEIGHT},
    "Gemm": {0: _WEIGHT, 1: _WEIGHT, 2: _BIAS},
    "Conv": {1: _WEIGHT, 2: _BIAS},
    "ConvTranspose": {1: _WEIGHT, 2: _BIAS},
    "DeformConv": {1: _WEIGHT, 3: _BIAS},
    "CausalConvWithState": {1: _WEIGHT, 2: _BIAS},
    "Einsum": dict.fromkeys(range(8), _WEIGHT),
    "LSTM": _RECURRENT,
    "GRU": _RECURRENT,
    "RNN": _RECURRENT,
    "BatchNormalization": _NORMALIZED,
    "GroupNormalization": _NORMALIZED,
    "InstanceNormalization": _NORMALIZED,
    "LayerNormalization": _NORMALIZED,
    "RMSNormalization": _NORMALIZED,
    "SimplifiedLayerNormalization": _NORMALIZED,
    "PRelu": {1: "slope"},
}
_CONTRIBUTED: dict[str, dict[int, str]] = {
    "FusedMatMul": {0: _WEIGHT, 1: _WEIGHT},
    "FusedGemm": {0: _WEIGHT, 1: _WEIGHT, 2: _BIAS},
    "FusedConv": {1: _WEIGHT, 2: _BIAS},
    "Attention": {1: _WEIGHT, 2: _BIAS},
    "MultiHeadAttention": {3: _BIAS},
    "BiasGelu": {1: _BIAS},
    "FastGelu": {1: _BIAS},
    "GroupNorm": _NORMALIZED,
    "SkipLayerNormalization": {2: _SCALE, 3: _SHIFT, 4: _BIAS},
    "SkipSimplifiedLayerNormalization": {2: _SCALE, 3: _BIAS},
    "EmbedLayerNormalization": {2: _WEIGHT, 3: _WEIGHT, 4: _WEIGHT, 5: _SCALE, 6: _SHIFT},
}
# those that are numbers of the algorithm
_NUMBERS: dict[str, dict[int, str]] = {
    "BatchNormalization": {3: "running mean", 4: "running variance"},
    "QuantizeLinear": {1: "scale of a quantization", 2: "zero point"},
    "DequantizeLinear": {1: "scale of a quantization", 2: "zero point"},
    "Clip": {1: "limit", 2: "limit"},
    "Dropout": {1: "ratio"},
    "Expand": {1: "shape"},
    "OneHot": {2: "pair of values"},
    "Pad": {2: "padding"},
    "Pow": {1: "exponent"},
    "Resize": {1: "region", 2: "scales"},
    "STFT": {2: "window"},
    "Upsample": {1: "scales"},
}
_CARRIERS = frozenset({
    "Cast", "CastLike", "Expand", "Flatten", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze",
    "Tile", "Transpose", "Unsqueeze",
})  # fmt: skip
_QUANTIZED = frozenset({"DequantizeLinear", "QuantizeLinear"})
_PRODUCTS = frozenset({
    "Conv", "ConvTranspose", "DeformConv", "Einsum", "FusedMatMul", "Gemm", "MatMul", "MatMulInteger",
})  # fmt: skip
# whose results a scale that is written out may multiply
_NORMALIZATIONS = frozenset({"InstanceNormalization", "LpNormalization", "MeanVarianceNormalization"})
_BEFORE_SOFTMAX = frozenset({
    "Add", "Cast", "Clip", "Div", "Identity", "Max", "Min", "Mul", "Reshape", "Sub", "Where",
})  # fmt: skip
_AROUND_ROOTS = frozenset({"Cast", "Clip", "Expand", "Max"})
_LOOKUPS = frozenset({"Gather", "GatherND"})
_PAIR = 2  # a sine and a cosine
_ROUNDING = 1e-3
_BLOCKED = -1e4  # what a mask adds, at most, to a score that must not count


class Role(NamedTuple):
    """What one reader takes a constant for: a kind, the words of the reason, and the part of a layer.

    The name of a constant may overrule the kinds `number` and `unknown`.
    """

    kind: Kind
    text: str
    node: Node
    part: str = ""


class Roles:
    """Finds the roles of the constants of a model, also through the calls of its functions."""

    def __init__(self, model: Model) -> None:
        self._functions = {(canonical_domain(f.domain), f.name): f for f in model.functions}
        self._constants: dict[Value, bool] = {}

    def of(self, value: Value) -> list[Role]:
        """Return the roles of a constant; none where only shapes are read from it."""
        return list(_Search(self, value).uses_of(value, ()))

    def of_use(self, value: Value, node: Node, slot: int) -> list[Role]:
        """Return the roles that a constant has for one of its readers."""
        return list(_Search(self, value).roles_for(node, slot, ()))

    def function(self, node: Node) -> Function | None:
        """Return the function of the model that a node calls, None for an operator."""
        return self._functions.get((canonical_domain(node.domain), node.op))

    def is_constant(self, value: Value) -> bool:
        """Return whether a value depends on initializers and constants alone."""
        if value not in self._constants:
            self._constants[value] = _is_constant(value)
        return self._constants[value]


class _Search:
    """Follows one constant to the nodes that compute with it."""

    def __init__(self, roles: Roles, value: Value) -> None:
        self._roles, self._constant = roles, value
        data = constant_of(value)
        self._shape = value.shape or () if data is None else data.shape
        self._spread = sum(size != 1 for size in self._shape)
        self._seen: set[Value] = set()

    def uses_of(self, value: Value, calls: tuple[Function, ...]) -> Iterator[Role]:
        """Yield the roles for all readers of a value that passes the constant on."""
        if value in self._seen:
            return
        self._seen.add(value)
        for user, slot in value.uses:
            if isinstance(user, Node):
                yield from self.roles_for(user, slot, calls)

    def roles_for(self, node: Node, slot: int, calls: tuple[Function, ...]) -> Iterator[Role]:
        """Yield the roles for one reader, or for the readers of what it passes on."""
        if node.op in {"Shape", "Size"}:
            return
        function = self._roles.function(node)
        if function is not None:
            if function not in calls and slot < len(function.graph.inputs):
                yield from self.uses_of(function.graph.inputs[slot], (*calls, function))
            return
        if not self._carries(node, slot):
            yield self._taken(node, slot)
            return
        for output in node.outputs:
            if output is not None:
                yield from self.uses_of(output, calls)

    def _carries(self, node: Node, slot: int) -> bool:
        """Return whether a node passes a constant on as it is, but for its shape or type."""
        if canonical_domain(node.domain):
            return False
        if node.op == "Concat":
            return all(self._roles.is_constant(v) for v in node.inputs if v is not None)
        return slot == 0 and (node.op in _CARRIERS or node.op in _QUANTIZED)

    def _taken(self, node: Node, slot: int) -> Role:
        """Return the role of a constant for the node that computes with it."""
        table = _CONTRIBUTED if node.domain == _MICROSOFT else _PARAMETERS
        part = table.get(node.op, {}).get(slot)
        if node.op == "InstanceNormalization" and part is not None and self._is_before_scale(node):
            return Role("constant", f"{part} within a normalization that is written out", node)
        if part is not None:
            return Role("parameter", f"{part} of {node.op}", node, part)
        number = _NUMBERS.get(node.op, {}).get(slot)
        if number is not None:
            return Role("constant", f"{number} of {node.op}", node)
        if node.op in _LOOKUPS and slot == 0:
            looked_up = node.inputs[1] if len(node.inputs) > 1 else None
            if looked_up is None or self._roles.is_constant(looked_up):
                return Role("unknown", f"rows of it are read by {node.op}", node)
            return Role("parameter", f"table that {node.op} reads", node, _WEIGHT)
        if node.op in {"Add", "Sub", "Mul", "Div"} and len(node.inputs) > 1:
            return self._combined(node, slot)
        return self._other(node)

    def _combined(self, node: Node, slot: int) -> Role:
        """Return the role of a constant that is added, subtracted, multiplied, or divides."""
        other, constant = node.inputs[1 - slot], self._constant
        if other is None:
            return self._other(node)
        layer = self._of_layer(node, other)
        if layer is not None:
            return layer
        if self._spread == 0:
            return self._other(node)
        mask = self._of_mask(node) if node.op == "Add" and _is_before_softmax(node) else None
        if mask is not None:
            return mask
        if _is_binary(constant):
            return Role("constant", "mask of zeros and ones", node)
        if self._spread > 1 and _is_sinusoidal(constant):
            return Role("constant", "table of sines and cosines of positions", node)
        if _is_input(other):
            return Role("number", f"statistic of an input, for {node.op}", node)
        return self._other(node)

    def _of_layer(self, node: Node, other: Value) -> Role | None:
        """Return the role of a bias, or of the scale or shift of a normalization that is written out."""
        if not self._shape:
            return None
        if node.op == "Mul" and _is_normalized(other):
            return Role("parameter", f"scale {_WRITTEN_OUT}", node, _SCALE)
        if node.op != "Add" or self._spread > 1:
            return None
        if self._is_scaled(other):
            return Role("parameter", f"shift {_WRITTEN_OUT}", node, _SHIFT)
        return Role("parameter", "bias of a product", node, _BIAS) if _is_product(other) else None

    def _is_before_scale(self, node: Node) -> bool:
        """Return whether a constant multiplies what a node computes, as in a normalization by groups."""
        output = node.outputs[0]
        while output is not None and output.read_count == 1:
            user, slot = output.uses[0]
            if not isinstance(user, Node):
                return False
            if user.op == "Mul":
                other = user.inputs[1 - slot]
                return other is not None and self._roles.is_constant(other)
            if user.op not in _CARRIERS:
                return False
            output = user.outputs[0]
        return False

    def _of_mask(self, node: Node) -> Role | None:
        """Return the role of zeros, and of numbers that rule a score out, which are added to scores."""
        found = _numbers(self._constant)
        if found is None or not ((found <= _BLOCKED) | (found == 0)).all():
            return None
        kind: Kind = "constant" if found.any() else "number"
        return Role(kind, "mask that is added before a Softmax", node)

    def _is_scaled(self, value: Value) -> bool:
        """Return whether a value is a normalized one, also times a constant."""
        if _is_normalized(value):
            return True
        node = value.node
        if node is None or node.op != "Mul":
            return False
        one, other = node.inputs[:2]
        pairs = ((one, other), (other, one))
        return any(a and b and _is_normalized(a) and self._roles.is_constant(b) for a, b in pairs)

    def _other(self, node: Node) -> Role:
        """Return the role of a constant that nothing but its name may tell."""
        if self._spread == 0:
            return Role("number", f"a number for {node.op}", node)
        return Role("unknown", f"{node.op} reads it", node)


def _is_constant(value: Value) -> bool:
    pending, seen = [value], {value}
    while pending:
        found = pending.pop()
        if found.node is None and (found.is_input or found.constant is None):
            return False
        for operand in () if found.node is None else found.node.inputs:
            if operand is not None and operand not in seen:
                seen.add(operand)
                pending.append(operand)
    return True


def _before(value: Value, passed: Iterable[str]) -> Value:
    """Return the value before the nodes that only pass it on."""
    node = value.node
    while node is not None and node.op in passed and node.inputs and node.inputs[0] is not None:
        value, node = node.inputs[0], node.inputs[0].node
    return value


def _is_product(value: Value) -> bool:
    node = _before(value, _CARRIERS).node
    return node is not None and node.op in _PRODUCTS


def _is_input(value: Value) -> bool:
    return _before(value, _CARRIERS).is_input


def _is_normalized(value: Value) -> bool:
    """Return whether a value is something divided by a root, as a normalization computes it."""
    node = _before(value, _CARRIERS).node
    if node is None:
        return False
    if node.op in _NORMALIZATIONS:
        return True
    if node.op == "Div":
        return _is_root(node.inputs[1])
    return node.op == "Mul" and any(_is_inverse_root(v) for v in node.inputs)


def _is_root(value: Value | None) -> bool:
    """Return whether a value is the root of a mean or of a sum, which a number may be added to."""
    node = None if value is None else _before(value, _AROUND_ROOTS).node
    if node is None:
        return False
    return node.op == "ReduceL2" or (node.op in {"Pow", "Sqrt"} and _is_reduced(node.inputs[0]))


def _is_reduced(value: Value | None) -> bool:
    """Return whether a value is a mean or a sum, also corrected or with a number added."""
    pending = [value]
    while pending:
        found = pending.pop()
        node = None if found is None else found.node
        if node is None:
            continue
        if node.op.startswith("Reduce"):
            return True
        if node.op in {"Add", "Cast", "Clip", "Div", "Max", "Mul"}:
            pending += node.inputs[:2]
    return False


def _is_inverse_root(value: Value | None) -> bool:
    node = None if value is None else _before(value, _AROUND_ROOTS).node
    if node is None:
        return False
    if node.op == "Reciprocal":
        return _is_root(node.inputs[0])
    if node.op == "Div":
        return _is_root(node.inputs[1])
    return node.op == "Pow" and _is_negative(node.inputs[1]) and _is_reduced(node.inputs[0])


def _is_negative(value: Value | None) -> bool:
    data = None if value is None else constant_of(value)
    return data is not None and data.size == 1 and float(data.array().reshape(())) < 0


def _is_before_softmax(node: Node) -> bool:
    """Return whether what a node computes goes to a Softmax, through elementwise nodes."""
    pending, seen = [node], {node}
    while pending:
        for output in pending.pop().outputs:
            for user, _ in output.uses if output is not None else ():
                if not isinstance(user, Node) or user in seen:
                    continue
                if user.op == "Softmax":
                    return True
                if user.op in _BEFORE_SOFTMAX:
                    seen.add(user)
                    pending.append(user)
    return False


def _numbers(value: Value) -> Array | None:
    data = constant_of(value)
    return None if data is None else data.array().astype(np.float64)


def _is_binary(value: Value) -> bool:
    """Return whether a tensor has zeros and ones, and both of them."""
    found = _numbers(value)
    return found is not None and bool(((found == 0) | (found == 1)).all() and 0 < found.mean() < 1)


def _is_sinusoidal(value: Value) -> bool:
    """Return whether a table has sines and cosines of the numbers of its rows."""
    found = _numbers(value)
    if found is None or found.ndim < _PAIR or not (np.abs(found) <= 1 + _ROUNDING).all():
        return False
    return _has_pairs(found) or _has_waves(found)


def _has_pairs(table: Array) -> bool:
    """Return whether sines and cosines of the same angles take turns in each row, or have a half each."""
    width = table.shape[-1]
    if width < _PAIR or width % _PAIR:
        return False
    pairs = ((table[..., 0::2], table[..., 1::2]), (table[..., : width // 2], table[..., width // 2 :]))
    return any(np.allclose(one**2 + other**2, 1, atol=_ROUNDING) for one, other in pairs)


def _has_waves(table: Array) -> bool:
    """Return whether each column has the cosines, or the sines, of the multiples of an angle."""
    if table.shape[-2] <= _PAIR:
        return False
    zeroth, first, second = (table[..., i, :] for i in range(3))
    cosines = np.allclose(zeroth, 1) and np.allclose(second, 2 * first**2 - 1, atol=_ROUNDING)
    doubled = 2 * np.abs(first) * np.sqrt(np.clip(1 - first**2, 0, 1))
    sines = np.allclose(zeroth, 0) and np.allclose(np.abs(second), doubled, atol=_ROUNDING)
    return cosines or (sines and bool(first.any()))


__all__ = ["Role", "Roles"]
