"""Normalizations and Softmax."""

from __future__ import annotations

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it
from torch.nn import functional  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import between, case

EPSILON = 0.0009765625  # an attribute in single precision that double holds exactly
_E = f"epsilon = {EPSILON}"


def _norm(name, nodes, f, outputs="y", **inputs):
    return case(name, nodes, f, outputs=outputs, **inputs)


def _layer(axis, shape, over):
    return _norm(
        f"LayerNormalization {axis}", f"y = LayerNormalization <axis = {axis}, {_E}> (x, s, b)",
        lambda x, s, b: functional.layer_norm(x, over, s, b, EPSILON), x=shape, s=over, b=over,
    )  # fmt: skip


def _normalized(x, s, b, m, v):
    """The output in inference, from which PyTorch passes gradients to the averages too."""
    return (x - m[:, None]) / torch.sqrt(v[:, None] + EPSILON) * s[:, None] + b[:, None]


def _running(x, s, b, m, v):
    """The output in training, and the averages by ONNX: of the population variance; they pass no gradient."""
    axes = (0, *range(2, x.ndim))
    y = functional.batch_norm(x, None, None, s, b, training=True, eps=EPSILON)
    mean, variance = x.mean(axes), x.var(axes, correction=0)
    return y, (0.75 * m + 0.25 * mean).detach(), (0.75 * v + 0.25 * variance).detach()


def _lrn(x):
    return functional.local_response_norm(x, 3, alpha=0.5, beta=0.75, k=2.0)


def _mvn(x):
    mean, deviation = x.mean((0, 2, 3), True), x.std((0, 2, 3), correction=0, keepdim=True)
    return (x - mean) / (deviation + 1e-9)


CASES = [
    _norm("BatchNormalization", f"y = BatchNormalization <{_E}> (x, s, b, m, v)",
          lambda x, s, b, m, v: functional.batch_norm(x, m, v, s, b, eps=EPSILON), fixed="m v",
          x=(2, 3, 2), s=(3,), b=(3,), m=(3,), v=between(0.5, 2, 3)),
    _norm("BatchNormalization of all inputs", f"y = BatchNormalization <{_E}> (x, s, b, m, v)", _normalized,
          x=(2, 3, 2), s=(3,), b=(3,), m=(3,), v=between(0.5, 2, 3)),
    _norm("BatchNormalization in training",
          f"y, rm, rv = BatchNormalization <training_mode = 1, momentum = 0.75, {_E}> (x, s, b, m, v)", _running,
          outputs="y rm rv", x=(3, 2, 2, 2), s=(2,), b=(2,), m=(2,), v=between(0.5, 2, 2)),
    _norm("InstanceNormalization", f"y = InstanceNormalization <{_E}> (x, s, b)",
          lambda x, s, b: functional.instance_norm(x, weight=s, bias=b, eps=EPSILON), x=(2, 3, 4), s=(3,), b=(3,)),
    _norm("GroupNormalization", f"y = GroupNormalization <num_groups = 2, {_E}, stash_type = 11> (x, s, b)",
          lambda x, s, b: functional.group_norm(x, 2, s, b, EPSILON), x=(2, 4, 3), s=(4,), b=(4,)),
    _layer(-1, (2, 3, 4), (4,)),
    _layer(1, (2, 3, 4), (3, 4)),
    _norm("LayerNormalization, all outputs", f"y, m, d = LayerNormalization <{_E}> (x, s)",
          lambda x, s: (functional.layer_norm(x, (4,), s, None, EPSILON), x.mean(-1, True),
                        (x.var(-1, correction=0, keepdim=True) + EPSILON).rsqrt()),
          outputs="y m d", x=(2, 4), s=(4,)),
    _norm("RMSNormalization", f"y = RMSNormalization <{_E}, stash_type = 11> (x, s)",
          lambda x, s: functional.rms_norm(x, (4,), s, EPSILON), x=(2, 3, 4), s=(4,)),
    _norm("RMSNormalization 1", f"y = RMSNormalization <axis = 1, {_E}, stash_type = 11> (x, s)",
          lambda x, s: functional.rms_norm(x, (3, 2), s, EPSILON), x=(2, 3, 2), s=(3, 2)),
    _norm("LRN", "y = LRN <size = 3, alpha = 0.5, beta = 0.75, bias = 2.0> (x)", _lrn, x=(2, 5, 2, 2)),
    _norm("MeanVarianceNormalization", "y = MeanVarianceNormalization (x)", _mvn, x=(2, 2, 2, 3)),
    _norm("LpNormalization 1", "y = LpNormalization <p = 1, axis = 1> (x)",
          lambda x: functional.normalize(x, p=1, dim=1, eps=0), x=(2, 3, 2)),
    _norm("LpNormalization 2", "y = LpNormalization (x)", lambda x: functional.normalize(x, dim=-1, eps=0), x=(3, 4)),
    *(
        _norm(f"{op} {axis}", f"y = {op} <axis = {axis}> (x)", lambda x, f=f, a=axis: f(x, a), x=(2, 3, 2))
        for op, f in [("Softmax", torch.softmax), ("LogSoftmax", torch.log_softmax)]
        for axis in (-1, 0, 1)
    ),
    _norm("Softmax of ties", "y = Softmax (x)", lambda x: torch.softmax(x, -1), x=[[1.0, 1.0, 0.0], [50.0, -50.0, 50.0]]),
]  # fmt: skip
