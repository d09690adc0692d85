"""Losses: weights of classes, ignored targets, and the three reductions."""

from __future__ import annotations

from itertools import product

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it
from torch.nn import functional  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import between, case

_REDUCTIONS = ("none", "sum", "mean")


def _loss(op, f, reduction, weighted, ignored, shape, target):
    options = f'reduction = "{reduction}"' + (f", ignore_index = {ignored}" if ignored is not None else "")
    inputs = {"x": shape, "t": target}
    if weighted:
        inputs["w"] = between(0.5, 2, shape[1])
    ignore = -100 if ignored is None else ignored

    def function(x, t, w=None):
        return f(x, t, weight=w, reduction=reduction, ignore_index=ignore)

    name = f"{op} {reduction}{' weighted' * weighted}{f' ignores {ignored}' * (ignored is not None)} {len(shape)}d"
    return case(name, f"y = {op} <{options}> ({', '.join(inputs)})", function, fixed="w", **inputs)


_FLAT, _IMAGE = [2, 0, 1, 2], [[[0, 1], [2, 2]], [[1, 0], [0, 1]]]
_OPERATORS = [
    ("NegativeLogLikelihoodLoss", functional.nll_loss),
    ("SoftmaxCrossEntropyLoss", functional.cross_entropy),
]


def _with_log(x, t):
    return functional.cross_entropy(x, t), torch.log_softmax(x, 1)


CASES = [
    *(
        _loss(op, f, r, w, i, (4, 3), _FLAT)
        for (op, f), r, w, i in product(_OPERATORS, _REDUCTIONS, (False, True), (None, 2))
    ),
    *(_loss(op, f, "mean", True, 1, (2, 3, 2, 2), _IMAGE) for op, f in _OPERATORS),
    *(_loss(op, f, "none", False, None, (2, 3, 2, 2), _IMAGE) for op, f in _OPERATORS),
    case("SoftmaxCrossEntropyLoss with both outputs", "y, p = SoftmaxCrossEntropyLoss (x, t)", _with_log,
         outputs="y p", x=(4, 3), t=_FLAT),
]  # fmt: skip
