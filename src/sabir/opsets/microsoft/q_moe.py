"""QMoE: a mixture of experts whose weights are integers of 2, 4 or 8 bits."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.elements import FLOAT, INT64
from sabir.ir import Builder, Dim, TensorType, Value, ceil_div
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.products import experts
from sabir.opsets.families.products.expert_graphs import LayerValue, mixed_value
from sabir.opsets.families.products.experts import Layer, Mixture, Sizes, mixed
from sabir.opsets.families.quantization.packed_integers import BYTE, WIDTHS, unpacked, unpacked_value
from sabir.opsets.families.shapes.extents import shape_of, unsqueezed
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import (
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    one_of,
    tensors,
)

_FLOATS = "activations of 8-bit floats (`quant_type` 'wfp4afp8'); onnxruntime's CPU provider refuses them too"

q_moe = Operator(
    "QMoE",
    domain="com.microsoft",
    summary="MoE with integers as weights, less a zero point and times the scale of a row or block.",
    body_opset=18,
    lacks=(experts.GATED, _FLOATS),
)

T = Constraint("T", tensors("float", "float16", "bfloat16"))
T1 = Constraint("T1", tensors("uint8", "float8e4m3fn"))
T2 = Constraint("T2", tensors("float", "float16", "bfloat16", "float8e8m0", "float8e4m3fn"))
T4 = Constraint("T4", tensors("float"))
_LAYERS = ("fc1", "fc2", "fc3")
_INPUTS = 21
_GLOBAL = 15  # the first input with scales of experts
_OF_ACTIVATIONS = 17  # the first input with scales of activations
_CASTS_FLOAT8 = 19  # the first opset with casts from 8-bit floats
_CASTS_EXPONENTS = 24  # and from float8e8m0
_HALF = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_FLOAT4 = np.array([*_HALF, *(-x for x in _HALF)], np.float32)  # the number of each four bits (E2M1)


class _Blocks(NamedTuple):
    """The blocks of 4-bit floats, by `quant_type`: their columns, and the element type of their scales."""

    size: int
    scale: str


_BLOCKS = {"fp4": _Blocks(32, "float8e8m0"), "nvfp4": _Blocks(16, "float8e4m3fn")}

v1 = q_moe.first(
    1,
    inputs=[
        Input("input", T, "(tokens, hidden), or (batch, sequence, hidden)."),
        Input("router_probs", T, "The logits of the router, (tokens, experts)."),
        Input("fc1_experts_weights", T1, "(experts, inner, hidden), packed; fused SwiGLU: twice `inner`."),
        Input("fc1_scales", T2, "(experts, rows), or (experts, rows, blocks).", optional=True),
        Input("fc1_experts_bias", T, "(experts, inner), as the weights.", optional=True),
        Input("fc2_experts_weights", T1, "(experts, hidden, inner), packed."),
        Input("fc2_scales", T2, "As those of FC1.", optional=True),
        Input("fc2_experts_bias", T, "(experts, hidden).", optional=True),
        Input("fc3_experts_weights", T1, "(experts, inner, hidden), packed, for SwiGLU.", optional=True),
        Input("fc3_scales", T2, "As those of FC1.", optional=True),
        Input("fc3_experts_bias", T, "(experts, inner).", optional=True),
        Input(
            "fc1_zero_points", T1, "Packed along the last axis; `2 ** (bits - 1)` if absent.", optional=True
        ),
        Input("fc2_zero_points", T1, "As those of FC1.", optional=True),
        Input("fc3_zero_points", T1, "As those of FC1.", optional=True),
        Input("router_weights", T, "Weights of the chosen experts, (tokens, experts).", optional=True),
        Input("fc1_global_scale", T4, "The scale of each expert, for weights of floats.", optional=True),
        Input("fc2_global_scale", T4, "The scale of each expert, for weights of floats.", optional=True),
        Input("fc1_act_scale", T4, "For activations of 8-bit floats.", optional=True),
        Input("fc2_act_scale", T4, "For activations of 8-bit floats.", optional=True),
        Input("fc1_act_block_scale", T2, "For activations of 8-bit floats.", optional=True),
        Input("fc2_act_block_scale", T2, "For activations of 8-bit floats.", optional=True),
    ],
    outputs=[Output("output", T, "The input's shape.")],
    attributes=[
        *experts.ATTRIBUTES,
        Attribute(
            "accuracy_level",
            "int",
            "How precise products are at least; here they are products of floats at each level.",
            default=0,
        ),
        Attribute(
            "block_size", "int", "The columns of a block; absent: a row is a block.", values=at_least(0)
        ),
        Attribute("expert_weight_bits", "int", "The bits of an integer.", default=4, values=one_of(*WIDTHS)),
        *(
            Attribute(
                f"{layer}_expert_weight_bits", "int", f"The bits of {layer.upper()}.", values=one_of(*WIDTHS)
            )
            for layer in _LAYERS
        ),
        Attribute(
            "quant_type",
            "string",
            "The kind of the weights: 'int'; 'fp8', E4M3; 4-bit floats E2M1, two a byte, in blocks: 'fp4' of "
            "32 with scales E8M0, and 'nvfp4' of 16 with scales E4M3 and a scale of each expert.",
            default="int",
            values=one_of("int", "fp4", "nvfp4", "fp8", "wfp4afp8"),
        ),
        Attribute("weights_prepacked", "int", "A hint for CUDA kernels.", default=-1),
    ],
)


class _Weights(NamedTuple):
    """The inputs of a layer: types, arrays or values. `bits` is 0 for weights of 8-bit floats."""

    packed: Any
    scales: Any
    zeros: Any
    bias: Any
    whole: Any  # the scale of each expert
    bits: int
    size: int
    kind: str

    def blocks(self, dim: Dim) -> Dim:
        """Return the blocks along an axis."""
        return ceil_div(dim, self.size) if self.size else 1

    def check(self, name: str, count: Dim, rows: Dim, columns: Dim) -> None:
        """Raise InferenceError where an input of the layer is missing or has another shape."""
        if self.packed is None:
            return
        check_shape(f"{name}_experts_bias", self.bias, count, rows)
        if not self.bits:
            self._check_floats(name, count, rows, columns)
            return
        if self.size and isinstance(columns, int) and columns % self.size:
            raise InferenceError(f"blocks of {self.size} do not divide {columns} columns of `{name}`")
        packed = None if columns is None else ceil_div(columns * self.bits, BYTE)
        check_shape(f"{name}_experts_weights", self.packed, count, rows, packed)
        if self.kind in _BLOCKS:
            self._check_small_floats(name, count)
        elif self.scales is None or self.whole is not None:
            raise InferenceError(f"integers need `{name}_scales`, and have no global scale")
        of_blocks = (self.blocks(columns),) if self.size else ()
        check_shape(f"{name}_scales", self.scales, count, rows, *of_blocks)
        last = of_blocks[0] if of_blocks else rows
        zeros = None if last is None else ceil_div(last * self.bits, BYTE)
        check_shape(f"{name}_zero_points", self.zeros, *((count, rows) if self.size else (count,)), zeros)

    def _check_small_floats(self, name: str, count: Dim) -> None:
        needed = _BLOCKS[self.kind]
        if self.size != needed.size or self.bits != BYTE // 2:
            raise InferenceError(f"`quant_type` {self.kind} needs 4 bits and `block_size` {needed.size}")
        if self.scales is None or self.scales.element.name != needed.scale:
            raise InferenceError(f"`quant_type` {self.kind} needs `{name}_scales` of {needed.scale}")
        if self.whole is None and self.kind == "nvfp4":
            raise InferenceError(f"`quant_type` nvfp4 needs `{name}_global_scale`")
        if self.zeros is not None:
            raise InferenceError(f"floats have no `{name}_zero_points`")
        check_shape(f"{name}_global_scale", self.whole, count)

    def _check_floats(self, name: str, count: Dim, rows: Dim, columns: Dim) -> None:
        check_shape(f"{name}_experts_weights", self.packed, count, rows, columns)
        if self.zeros is not None:
            raise InferenceError(f"floats have no `{name}_zero_points`")
        if (self.scales is None) == bool(self.size) or (self.whole is not None) == bool(self.size):
            needed = f"{name}_scales" if self.size else f"{name}_global_scale"
            raise InferenceError(f"floats with `block_size` {self.size} have `{needed}` alone")
        check_shape(f"{name}_scales", self.scales, count, self.blocks(rows), self.blocks(columns))
        check_shape(f"{name}_global_scale", self.whole, count)


def _layers(inputs: tuple[Any, ...], attributes: Mapping[str, Any]) -> list[_Weights]:
    """Return the inputs of the three layers, from all inputs; raises UnsupportedError for `wfp4afp8`."""
    kind = attributes["quant_type"]
    if kind == "wfp4afp8":
        raise UnsupportedError(f"QMoE lacks {_FLOATS}")
    every = (*inputs, *(None,) * (_INPUTS - len(inputs)))
    if any(x is not None for x in every[_OF_ACTIVATIONS:]):
        raise InferenceError(f"activations are no 8-bit floats with `quant_type` {kind}, and have no scales")
    found: list[_Weights] = []
    for number, layer in enumerate(_LAYERS):
        bits = attributes[f"{layer}_expert_weight_bits"] or attributes["expert_weight_bits"]
        packed, scales, bias = every[2 + 3 * number : 5 + 3 * number]
        zeros = every[2 + 3 * len(_LAYERS) + number]
        whole = every[_GLOBAL + number] if _GLOBAL + number < _OF_ACTIVATIONS else None
        size = attributes["block_size"] or 0
        found.append(_Weights(packed, scales, zeros, bias, whole, 0 if kind == "fp8" else bits, size, kind))
    return found


def _check_element(packed: TensorType | None, kind: str) -> None:
    """Raise InferenceError where weights are no integers, or no floats, as `quant_type` says."""
    if packed is not None and packed.element.is_float != (kind == "fp8"):
        raise InferenceError(f"weights with `quant_type` {kind} are not {packed.element}")


def _mixing(inputs: tuple[Any, ...]) -> Any:
    """Return `router_weights`, or None."""
    return inputs[_GLOBAL - 1] if len(inputs) >= _GLOBAL else None


@v1.infer
def infer(x: TensorType, logits: TensorType, /, *more: TensorType | None, **attributes: Any) -> TensorType:
    inputs, mixture = (x, logits, *more), Mixture.of(attributes)
    first, second, third = _layers(inputs, attributes)
    mixture.check_third(third.packed)
    for weights in (first, second, third):
        _check_element(weights.packed, attributes["quant_type"])
    check_rank("fc2_experts_weights", second.packed, 3)
    packed = second.packed.shape
    inner = None if packed is None or packed[2] is None else packed[2] * (BYTE // (second.bits or BYTE))
    sizes = Sizes.of(x, logits, inner, mixture)
    check_shape(
        "router_weights", _mixing(inputs), None if logits.shape is None else logits.shape[0], sizes.experts
    )
    first.check("fc1", sizes.experts, sizes.first(mixture), sizes.hidden)
    second.check("fc2", sizes.experts, sizes.hidden, inner)
    third.check("fc3", sizes.experts, inner, sizes.hidden)
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, logits: Array, /, *more: Array | None, **attributes: Any) -> Array:
    hold(infer, x, logits, *more, **attributes)
    inputs = (x, logits, *more)
    layers = [None if w.packed is None else _layer(w) for w in _layers(inputs, attributes)]
    return mixed(Mixture.of(attributes), x, logits, layers, _mixing(inputs))


def _layer(weights: _Weights) -> Layer:
    def of_expert(expert: int) -> Array:
        return _dequantized(weights, expert)

    return Layer(of_expert, weights.bias)


def _dequantized(weights: _Weights, expert: int) -> Array:
    """Return the weights of an expert, (rows, columns), in float32."""
    if not weights.bits:
        return _scaled_floats(weights, expert)
    integers = unpacked(weights.packed[expert], weights.bits)
    scales = weights.scales[expert].astype(np.float32)
    if weights.kind in _BLOCKS:
        scales = scales if weights.whole is None else scales * weights.whole[expert]
        each = _FLOAT4[integers].reshape(*scales.shape, -1) * scales[..., np.newaxis]
        return np.asarray(each.reshape(len(each), -1))
    integers = integers.astype(np.float32)
    rows, blocks = len(integers), scales.shape[1] if weights.size else 1
    if weights.zeros is None:
        zeros = np.float32(1 << (weights.bits - 1))
    else:
        zeros = unpacked(weights.zeros[expert], weights.bits)[..., : scales.shape[-1]].astype(np.float32)
        zeros = zeros.reshape(rows, blocks, 1)
    each = (integers.reshape(rows, blocks, -1) - zeros) * scales.reshape(rows, blocks, 1)
    return np.asarray(each.reshape(rows, -1))


def _scaled_floats(weights: _Weights, expert: int) -> Array:
    floats: Array = weights.packed[expert].astype(np.float32)
    if not weights.size:
        return np.asarray(floats * weights.whole[expert])
    scales: Array = np.asarray(weights.scales[expert], np.float32)
    rows, columns = floats.shape
    scales = scales.take(_blocks_of(rows, weights.size), 0).take(_blocks_of(columns, weights.size), 1)
    return np.asarray(floats * scales)


def _blocks_of(count: int, size: int) -> Array:
    """Return the block of each index of an axis."""
    return np.asarray(np.arange(count) // size)


v1.absent(
    "lower", "only the weights of the experts that tokens choose are dequantized, and runs decide these"
)


@v1.body
def body(b: Builder, x: Value, logits: Value, /, *more: Value | None, **attributes: Any) -> Value:
    inputs = (x, logits, *more)
    layers = [None if w.packed is None else _layer_value(b, w) for w in _layers(inputs, attributes)]
    return mixed_value(b, Mixture.of(attributes), x, logits, layers, _mixing(inputs))


def _layer_value(b: Builder, weights: _Weights) -> LayerValue:
    if not weights.bits:
        return LayerValue(_floats_value(b, weights), weights.bias)
    if weights.kind in _BLOCKS:
        return LayerValue(_small_floats_value(b, weights), weights.bias)
    integers = b.Cast(unpacked_value(b, weights.packed, 3, weights.bits), to=FLOAT.number)
    scales = typed(b, weights.scales, FLOAT)
    if weights.size:
        integers = b.Reshape(integers, _ints(b, 0, 0, -1, weights.size))
    zeros = b.initializer("zero", np.array(1 << (weights.bits - 1), np.float32))
    last = 3 if weights.size else 2
    if weights.zeros is not None:
        zeros = unsqueezed(b, _zeros_value(b, weights, last), [last])
    each = b.Mul(b.Sub(integers, zeros), unsqueezed(b, scales, [last]))
    return LayerValue(b.Reshape(each, _ints(b, 0, 0, -1)) if weights.size else each, weights.bias)


def _small_floats_value(b: Builder, weights: _Weights) -> Value:
    """Emit weights of 4-bit floats, (experts, rows, columns)."""
    needed = _CASTS_EXPONENTS if weights.kind == "fp4" else _CASTS_FLOAT8
    if b.opset < needed:
        raise Unconvertible(f"opset {b.opset} has no casts from {_BLOCKS[weights.kind].scale}; {needed} has")
    places = b.Cast(unpacked_value(b, weights.packed, 3, weights.bits), to=INT64.number)
    numbers = b.Gather(b.initializer("numbers", _FLOAT4), places)
    scales = b.Cast(weights.scales, to=FLOAT.number)
    if weights.whole is not None:
        scales = b.Mul(scales, unsqueezed(b, weights.whole, [1, 2]))
    blocks = b.Reshape(numbers, _ints(b, 0, 0, -1, weights.size))
    return b.Reshape(b.Mul(blocks, unsqueezed(b, scales, [3])), _ints(b, 0, 0, -1))


def _floats_value(b: Builder, weights: _Weights) -> Value:
    """Emit weights of floats, (experts, rows, columns)."""
    if b.opset < _CASTS_FLOAT8:
        raise Unconvertible(f"opset {b.opset} has no casts from 8-bit floats; {_CASTS_FLOAT8} has")
    floats = b.Cast(weights.packed, to=FLOAT.number)
    if not weights.size:
        return b.Mul(floats, unsqueezed(b, weights.whole, [1, 2]))
    scales = typed(b, weights.scales, FLOAT)
    for axis in (1, 2):
        count = shape_of("weights", weights.packed)[axis]
        if not isinstance(count, int):
            raise Unconvertible("the size of the weights is unknown, and their scales are repeated")
        places = b.initializer("blocks", _blocks_of(count, weights.size).astype(np.int64))
        scales = b.Gather(scales, places, axis=axis)
    return b.Mul(floats, scales)


def _zeros_value(b: Builder, weights: _Weights, rank: int) -> Value:
    """Emit the zero points in the shape of the scales, in float."""
    count = shape_of("scales", weights.scales)[-1]
    if not isinstance(count, int):
        raise Unconvertible("the number of scales is unknown, and zero points are packed")
    fields = unpacked_value(b, weights.zeros, rank, weights.bits)
    return b.Cast(b.Slice(fields, _ints(b, 0), _ints(b, count), _ints(b, rank - 1)), to=FLOAT.number)


def _ints(b: Builder, *numbers: int) -> Value:
    return b.initializer("ints", np.array(numbers, np.int64))


@q_moe.examples
def against_onnxruntime() -> Iterator[Example]:
    """Each width, with scales for rows and blocks; the routing of onnxruntime is always normalized."""
    f = np.float32
    normalized: dict[str, Any] = {"normalize_routing_weights": 1, "k": 2}
    for bits in WIDTHS:
        for size in (0, 16):
            attributes: dict[str, Any] = {
                "expert_weight_bits": bits,
                "block_size": size or None,
                **normalized,
            }
            x, logits, layers = _drawn(bits, size, fused=False)
            yield Example(1, x, logits, *layers[:6], activation_type="silu", **attributes)
            yield Example(1, x[None], logits, *layers, activation_type="gelu", **attributes)
            x, logits, layers = _drawn(bits, size, fused=True)
            swiglu: dict[str, Any] = {"activation_type": "swiglu", "swiglu_fusion": 1, "swiglu_limit": 7.0}
            yield Example(1, x, logits, *layers, **swiglu, **attributes)
            layers[2] = layers[5] = None
            yield Example(1, x[:0], logits[:0], *layers, **swiglu, **attributes)
    x, logits, layers = _drawn(4, 0, fused=False)
    mixing = np.random.default_rng(2).uniform(0.25, 1, (4, 3)).astype(f)
    for normalize in (0, 1):
        yield Example(1, x, logits, *layers, mixing, normalize_routing_weights=normalize, k=2)
    half = [None if o is None or o.dtype == np.uint8 else o.astype(np.float16) for o in (x, logits, *layers)]
    half = [o if h is None else h for h, o in zip(half, (x, logits, *layers), strict=True)]
    yield Example(1, *half, tolerance=0.05, **normalized)


@q_moe.examples
def by_hand() -> Iterator[Example]:
    """Two experts that multiply by 1 and by -2, the second of which has the weight 3 / 4."""
    for dtype in (np.float32, ml_dtypes.bfloat16):
        ones, twos = np.full((2, 2), 0x88, np.uint8), np.full((2, 2), 0x88, np.uint8)
        ones[[0, 1], [0, 0]], twos[[0, 1], [0, 0]] = (0x89, 0x98), (0x86, 0x68)
        first, scales = np.stack([ones, twos]), np.ones((2, 2), dtype)
        x, logits = np.array([[3, 5, 0, 0]], dtype), np.log(np.array([[1, 3]])).astype(dtype)
        second = np.full((2, 4, 1), 0x88, np.uint8)
        second[:, 0], second[:, 1] = 0x89, 0x98
        y = np.array([[-4.5, -7.5, 0, 0]], dtype)
        yield Example(
            1, x, logits, first, scales, None, second, np.ones((2, 4), dtype), None,
            activation_type="identity", tolerance=0.05, expect=[y],
        )  # fmt: skip


@q_moe.examples
def of_floats() -> Iterator[Example]:
    """Weights of 0.5 in rows of four, whose scales are those of an expert, or of blocks of 2 by 2."""
    f, kind = np.float32, ml_dtypes.float8_e4m3fn
    x, logits = np.array([[1, 2, 3, 4]], f), np.array([[0, 20]], f)
    first, second = np.full((2, 3, 4), 0.5, kind), np.full((2, 4, 3), 0.5, kind)
    attributes: dict[str, Any] = {"activation_type": "identity", "quant_type": "fp8"}
    whole, last = np.array([0, 2], f), np.array([0, 4], f)
    y = np.full((1, 4), 10 * 3 * 2, f)
    inputs = x, logits, first, None, None, second, *(None,) * 9
    yield Example(1, *inputs, whole, last, **attributes, expect=[y])
    scales = np.array([[[0, 0], [0, 0]], [[2, 4], [6, 8]]], f)
    unit = np.full((2, 2, 2), 2, f)
    # 3 + 2 * 7, twice, and 3 * 3 + 4 * 7
    y = np.full((1, 4), 17 * 2 + 37, f)
    yield Example(1, x, logits, first, scales, None, second, unit, block_size=2, **attributes, expect=[y])


def _drawn(bits: int, size: int, *, fused: bool) -> tuple[Array, Array, list[Array | None]]:
    """Return four tokens of 32 numbers, logits of 3 experts, and the inputs from FC1 to zero points."""
    random = np.random.default_rng(bits + size)

    def layer(rows: int, columns: int) -> tuple[Array, Array, Array, Array]:
        blocks = columns // size if size else 1
        packed = random.integers(0, 256, (3, rows, columns * bits // BYTE)).astype(np.uint8)
        scales = random.uniform(0.25, 1, (3, rows, blocks)).astype(np.float32) / (1 << bits)
        last = -(-blocks * bits // BYTE) if size else -(-rows * bits // BYTE)
        zeros = random.integers(0, 256, (3, rows, last) if size else (3, last)).astype(np.uint8)
        bias = random.standard_normal((3, rows)).astype(np.float32)
        return packed, scales if size else scales[..., 0], bias, zeros

    x, logits = (random.standard_normal(shape).astype(np.float32) for shape in ((4, 32), (4, 3)))
    *first, first_zeros = layer(32 if fused else 16, 32)
    *second, second_zeros = layer(32, 16)
    return x, logits, [*first, *second, None, None, None, first_zeros, second_zeros, None]


@q_moe.examples
def small_floats() -> Iterator[Example]:
    """4-bit floats in blocks; the numbers are those of ml_dtypes. onnxruntime 1.32 computes the same."""
    draw = np.random.default_rng(4)
    for kind, exponents in (("fp4", ml_dtypes.float8_e8m0fnu), ("nvfp4", ml_dtypes.float8_e4m3fn)):
        size = _BLOCKS[kind].size
        bits = [draw.integers(0, 16, shape).astype(np.uint8) for shape in ((2, 64, 32), (2, 32, 32))]
        scales = [(2.0 ** draw.integers(-5, -2, (2, len(w[0]), 32 // size))).astype(exponents) for w in bits]
        whole = [np.array([1, 2], np.float32), np.array([0.5, 1], np.float32)]
        first, second = (
            w.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
            * s.astype(np.float32).repeat(size, axis=2) * g[:, None, None]
            for w, s, g in zip(bits, scales, whole, strict=True)
        )  # fmt: skip
        x = draw.standard_normal((3, 32)).astype(np.float32)
        logits = np.array([[3, -3], [-3, 3], [9, 0]], np.float32)
        chosen = logits.argmax(axis=1)
        inner = np.einsum("th,tih->ti", x, first[chosen])
        gated = inner[:, ::2] / (1 + np.exp(-inner[:, ::2])) * inner[:, 1::2]
        packed = [w[..., ::2] | w[..., 1::2] << 4 for w in bits]
        yield Example(
            1, x, logits, packed[0], scales[0], None, packed[1], scales[1], *(None,) * 8, *whole,
            quant_type=kind, block_size=size, activation_type="swiglu", swiglu_fusion=1, k=1,
            normalize_routing_weights=1, tolerance=1e-4,
            expect=[np.einsum("ti,thi->th", gated, second[chosen])],
        )  # fmt: skip
