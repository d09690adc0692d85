"""SkipLayerNormalization and its simplified form: a residual is added before the normalisation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import FLOAT
from sabir.ir import TensorType
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.results import computed
from sabir.opsets.families.shapes.ranks import check_broadcast, check_rank, check_shape
from sabir.schema import BFLOAT16, Attribute, Constraint, Input, Output, tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Builder, Value
    from sabir.opsets.families.normalization.normalization import Normalized
    from sabir.opsets.typing import Array

_T = Constraint("T", BFLOAT16, tensors("float", "float16"))
_U = Constraint("U", tensors("float"))
EPSILON = Attribute("epsilon", "float", "Added to the mean of squares, so that it is not 0.", default=1e-12)
_RANKS = 2, 3
SUM = 3  # the output with the sum


def inputs(*, beta: bool) -> list[Input]:
    """Return the inputs; `beta` says whether the result is shifted."""
    shift = [Input("beta", _T, "The shift, (hidden); 0 by default.", optional=True, differentiable=True)]
    return [
        Input("input", _T, "(batch, sequence, hidden), or (tokens, hidden).", differentiable=True),
        Input(
            "skip",
            _T,
            "The residual: the shape of the input, or without its batch, or with a batch of 1.",
            differentiable=True,
        ),
        Input("gamma", _T, "The scale, (hidden).", differentiable=True),
        *(shift if beta else ()),
        Input("bias", _T, "Added to the sum, (hidden); 0 by default.", optional=True, differentiable=True),
    ]


def outputs(mean: str) -> list[Output]:
    """Return the outputs; `mean` describes the second."""
    return [
        Output("output", _T, "The shape of the input.", differentiable=True),
        Output("mean", _U, mean, optional=True, differentiable=True),
        Output("inv_std_var", _U, "The factor of each row, (..., 1).", optional=True, differentiable=True),
        Output(
            "input_skip_bias_sum",
            _T,
            "The sum that is normalised, in the shape of the input.",
            optional=True,
            differentiable=True,
        ),
    ]


def infer(x: TensorType, skip: TensorType, **vectors: TensorType | None) -> tuple[TensorType, ...]:
    """Return the types of the outputs; raises InferenceError for shapes that do not belong together."""
    check_rank("input", x, *_RANKS)
    check_rank("skip", skip, *_RANKS)
    y = TensorType(x.element, x.shape)
    if x.shape is None:
        return y, TensorType(FLOAT), TensorType(FLOAT), y
    check_broadcast("skip", skip, x.shape)
    if skip.shape is not None:
        check_shape("skip", skip, *((None,) if len(skip.shape) > len(_RANKS) else ()), *x.shape[-2:])
    for name, vector in vectors.items():
        check_shape(name, vector, x.shape[-1])
    statistic = TensorType(FLOAT, (*x.shape[:-1], 1))
    return y, statistic, statistic, y


def evaluate(
    x: Array, skip: Array, gamma: Array, beta: Array | None, bias: Array | None,
    normalize: Callable[[Array], Normalized],
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Return the outputs; 16-bit floats are computed in float32. `normalize` takes the rows of a matrix."""
    total = computed(np.add, widened(x), widened(skip))
    if bias is not None:
        total += widened(bias)
    rows, mean, inverse = normalize(total.reshape(math.prod(x.shape[:-1]), x.shape[-1]))
    rows *= widened(gamma)
    if beta is not None:
        rows += widened(beta)
    statistics = (*x.shape[:-1], 1)
    return (
        rows.reshape(x.shape).astype(x.dtype, copy=False),
        mean.reshape(statistics),
        inverse.reshape(statistics),
        total.astype(x.dtype, copy=False),
    )


def emitted_sum(b: Builder, x: Value, skip: Value, bias: Value | None) -> Value:
    """Emit the sum that is normalised; that of 16-bit floats is a float."""
    total = b.Add(halves.widened(b, x), halves.widened(b, skip))
    return total if bias is None else b.Add(total, halves.widened(b, bias))
