"""Mixtures of experts: two layers of each expert, of which a router chooses some for each token.

An expert computes `activation(x @ fc1.T + fc1_bias) @ fc2.T + fc2_bias`. SwiGLU has a second product, by FC3,
or by the other half of FC1. The output of a token is the sum over the k experts with the greatest router
logits, weighted by the softmax of the logits; of equal logits the first counts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError, UnsupportedError
from sabir.ir import product
from sabir.opsets.families.products.products import matmul
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.schema import Attribute, at_least, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from sabir.ir import Dim, TensorType
    from sabir.opsets.typing import Array

GATED = "FC3 with an activation other than SwiGLU with `swiglu_fusion=0`; onnxruntime refuses every FC3"
APART, INTERLEAVED, HALVES = 0, 1, 2  # where the second product of SwiGLU is
CUBIC = 0.044715
SLOPE = math.sqrt(2 / math.pi)

ATTRIBUTES = (
    Attribute("activation_alpha", "float", "The factor in the sigmoid of SwiGLU.", default=1.0),
    Attribute("activation_beta", "float", "What SwiGLU adds to the linear part.", default=0.0),
    Attribute(
        "activation_type",
        "string",
        "The activation of experts; 'gelu' is the approximation by tanh.",
        default="relu",
        values=one_of("relu", "gelu", "silu", "swiglu", "identity"),
    ),
    Attribute("k", "int", "The experts of a token.", default=1, values=at_least(1)),
    Attribute(
        "normalize_routing_weights",
        "int",
        "Whether the weights of a token are divided by their sum.",
        default=0,
    ),
    Attribute(
        "swiglu_fusion",
        "int",
        "Where SwiGLU has its second product; 0: FC3, 1: every second column of FC1, 2: its second half.",
        default=0,
        values=one_of(APART, INTERLEAVED, HALVES),
    ),
    Attribute("swiglu_limit", "float", "The greatest magnitude of SwiGLU's operands; without it, no limit."),
    Attribute(
        "swiglu_limit_after_activation",
        "int",
        "1: `swiglu_limit` bounds the activated gate from above, not the gate.",
        default=0,
        values=one_of(0, 1),
    ),
    Attribute("use_sparse_mixer", "int", "Another routing during training; it changes no result.", default=0),
)


class Mixture(NamedTuple):
    """The attributes of a mixture of experts."""

    k: int
    activation: str
    alpha: float
    beta: float
    fusion: int
    limit: float | None
    late: bool
    normalized: bool

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> Mixture:
        """Return the mixture that the attributes of a call describe."""
        return cls(
            attributes["k"],
            attributes["activation_type"],
            attributes["activation_alpha"],
            attributes["activation_beta"],
            attributes["swiglu_fusion"],
            attributes["swiglu_limit"],
            bool(attributes["swiglu_limit_after_activation"]),
            bool(attributes["normalize_routing_weights"]),
        )

    @property
    def is_gated(self) -> bool:
        """Whether the activation has a second product."""
        return self.activation == "swiglu"

    @property
    def is_fused(self) -> bool:
        """Whether FC1 has both products of SwiGLU."""
        return self.is_gated and self.fusion != APART

    def check_third(self, third: object | None) -> None:
        """Raise InferenceError where SwiGLU lacks FC3, UnsupportedError where there is another use for it."""
        if self.is_gated and not self.is_fused and third is None:
            raise InferenceError("SwiGLU with `swiglu_fusion=0` needs FC3")
        if third is not None and (not self.is_gated or self.is_fused):
            raise UnsupportedError(f"mixtures of experts lack {GATED}")

    def activated(self, first: Array, linear: Array | None) -> Array:
        """Return the activation of the first product, in float32; `linear` is that of FC3."""
        match self.activation:
            case "relu":
                return np.maximum(first, 0)
            case "gelu":
                return 0.5 * first * (1 + np.tanh(SLOPE * (first + CUBIC * first**3)))
            case "silu":
                return first * _sigmoid(first)
            case "swiglu":
                return self._swiglu(first, linear)
            case _:
                return first

    def _swiglu(self, first: Array, linear: Array | None) -> Array:
        gate = first
        if linear is None:
            half = first.shape[-1] // 2
            by_fusion = {INTERLEAVED: (slice(0, None, 2), slice(1, None, 2))}
            parts = by_fusion.get(self.fusion, (slice(0, half), slice(half, None)))
            gate, linear = (first[..., part] for part in parts)
        limit = self.limit
        if limit is not None:
            gate = gate if self.late else np.minimum(gate, limit)
            linear = np.clip(linear, -limit, limit)
        active = gate * _sigmoid(np.float32(self.alpha) * gate)
        if limit is not None and self.late:
            active = np.minimum(active, limit)
        return active * (linear + np.float32(self.beta))


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


class Layer(NamedTuple):
    """One layer of all experts: `weights(e)` are those of an expert, (outputs, inputs), in float32."""

    weights: Callable[[int], Array]
    bias: Array | None

    def applied(self, expert: int, x: Array) -> Array:
        """Return the outputs of an expert for rows of inputs, in float32."""
        y = matmul(x, self.weights(expert).T)
        return y if self.bias is None else y + self.bias[expert].astype(np.float32)


def mixed(
    mixture: Mixture, x: Array, logits: Array, layers: Sequence[Layer | None], mixing: Array | None = None
) -> Array:
    """Return the outputs of all tokens, in the shape and the type of `x`.

    `layers` are FC1, FC2 and FC3. Experts that no token chooses are not computed. The weights of the chosen
    experts are in `mixing`, if it is there.
    """
    first, second, third = layers
    if first is None or second is None:
        raise TypeError("experts have two layers")
    rows = x.reshape(-1, x.shape[-1]).astype(np.float32, copy=False)
    chosen, weights = _routed(mixture, logits.astype(np.float32, copy=False), mixing)
    y: Array = np.zeros(rows.shape, np.float32)
    for expert in np.unique(chosen):
        tokens, places = np.nonzero(chosen == expert)
        inputs = rows[tokens]
        linear = None if third is None else third.applied(expert, inputs)
        hidden = mixture.activated(first.applied(expert, inputs), linear)
        y[tokens] += second.applied(expert, hidden) * weights[tokens, places, None]
    return y.reshape(x.shape).astype(x.dtype, copy=False)


def _routed(mixture: Mixture, logits: Array, mixing: Array | None) -> tuple[Array, Array]:
    """Return the experts of each token and their weights, (tokens, k)."""
    chosen = np.argsort(-logits, axis=-1, kind="stable")[:, : mixture.k]
    source = _softmax(logits) if mixing is None else mixing.astype(np.float32, copy=False)
    weights = np.take_along_axis(source, chosen, axis=-1)
    return chosen, weights / weights.sum(axis=-1, keepdims=True) if mixture.normalized else weights


def _softmax(x: Array) -> Array:
    powers: Array = np.exp(x - x.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray(powers / powers.sum(axis=-1, keepdims=True))


class Sizes(NamedTuple):
    """The sizes of a mixture: experts, outputs and inputs of the second layer."""

    experts: Dim
    hidden: Dim
    inner: Dim

    @classmethod
    def of(cls, x: TensorType, logits: TensorType, inner: Dim, mixture: Mixture) -> Sizes:
        """Return the sizes of a call; raises InferenceError where tokens and logits have others."""
        check_rank("input", x, 2, 3)
        tokens = None if x.shape is None else product(x.shape[:-1])
        check_shape("router_probs", logits, tokens, None)
        experts = None if logits.shape is None else logits.shape[1]
        if isinstance(experts, int) and mixture.k > experts:
            raise InferenceError(f"k = {mixture.k} is more than the {experts} experts")
        return cls(experts, None if x.shape is None else x.shape[-1], inner)

    def first(self, mixture: Mixture) -> Dim:
        """The outputs of FC1."""
        return None if self.inner is None else self.inner * (2 if mixture.is_fused else 1)
