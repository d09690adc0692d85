"""Reductions and cumulative sums and products, with ties and zeros."""

from __future__ import annotations

import torch  # pyright: ignore[reportMissingImports]  a tool for those who have it

from gradient_cases.case import between, case

_REDUCTIONS = {
    "ReduceL1": lambda x, d, k: x.abs().sum(d, k),
    "ReduceL2": lambda x, d, k: torch.linalg.vector_norm(x, dim=d, keepdim=k),
    "ReduceLogSum": lambda x, d, k: x.sum(d, k).log(),
    "ReduceLogSumExp": torch.logsumexp,
    "ReduceMax": torch.amax,
    "ReduceMean": torch.mean,
    "ReduceMin": torch.amin,
    "ReduceSum": torch.sum,
    "ReduceSumSquare": lambda x, d, k: (x * x).sum(d, k),
}
_ZEROS = [[0.0, 0.0, 0.0], [0.0, 3.0, -4.0], [2.0, 2.0, -1.0]]


def _by_axes(op, f, axes, keep):
    return case(
        f"{op} {axes} {keep}", f"y = {op} <keepdims = {keep}> (x, axes)",
        lambda x, a: f(x, tuple(a.tolist()), bool(keep)), x=between(0.2, 3, 2, 3, 2), axes=axes,
    )  # fmt: skip


def _at_zero(op, f):
    return case(f"{op} of zeros and ties", f"axes = Constant <value_ints = [1]> () y = {op} (x, axes)",
                lambda x: f(x, (1,), True), x=_ZEROS)  # fmt: skip


def _shifted(x, axis, reverse):
    """The cumulative sums of what comes before each element."""
    x = x.flip(axis) if reverse else x
    x = x.cumsum(axis) - x
    return x.flip(axis) if reverse else x


def _shifted_product(x):
    return torch.cat([torch.ones_like(x[:, :1]), x.cumprod(1)[:, :-1]], 1)


CASES = [
    *(_by_axes(op, f, axes, keep) for op, f in _REDUCTIONS.items() for axes, keep in [([1], 1), ([0, -1], 0)]),
    *(_at_zero(op, f) for op, f in _REDUCTIONS.items() if op != "ReduceLogSum"),
    case("ReduceMax of all, ties", "y = ReduceMax <keepdims = 0> (x)", torch.amax, x=[[3.0, 1.0], [3.0, 3.0]]),
    case("ReduceProd", "y = ReduceProd <keepdims = 0> (x, axes)", lambda x, a: x.prod(1), x=(2, 4), axes=[1]),
    case("ReduceProd of all", "y = ReduceProd <keepdims = 0> (x)", torch.prod, x=(2, 3)),
    case("ReduceProd of zeros", "y = ReduceProd <keepdims = 0> (x, axes)", lambda x, a: x.prod(1),
         x=[[0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]], axes=[1]),
    case("CumSum", "y = CumSum (x, axis)", lambda x, a: x.cumsum(1), x=(2, 3, 2), axis=1),
    case("CumSum reverse", "y = CumSum <reverse = 1> (x, axis)", lambda x, a: x.flip(0).cumsum(0).flip(0),
         x=(3, 2), axis=0),
    case("CumSum exclusive", "y = CumSum <exclusive = 1> (x, axis)", lambda x, a: _shifted(x, 1, False),
         x=(2, 4), axis=-1),
    case("CumSum exclusive reverse", "y = CumSum <exclusive = 1, reverse = 1> (x, axis)",
         lambda x, a: _shifted(x, 1, True), x=(2, 4), axis=1),
    case("CumProd", "y = CumProd (x, axis)", lambda x, a: x.cumprod(1), x=(2, 4), axis=1),
    case("CumProd reverse", "y = CumProd <reverse = 1> (x, axis)", lambda x, a: x.flip(1).cumprod(1).flip(1),
         x=(2, 4), axis=1),
    case("CumProd exclusive", "y = CumProd <exclusive = 1> (x, axis)", lambda x, a: _shifted_product(x),
         x=(2, 4), axis=1),
    case("CumProd of zeros", "y = CumProd (x, axis)", lambda x, a: x.cumprod(1),
         x=[[1.5, 0.0, 2.0, 3.0], [0.0, 2.0, 0.0, 3.0], [2.0, 3.0, 4.0, 0.0]], axis=1),
]  # fmt: skip
