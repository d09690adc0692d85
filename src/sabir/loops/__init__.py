"""Tensor expressions: what rooms lower operators to, and what the compiler makes kernels of."""

from sabir.loops._assumptions import Assumptions, assuming, equal
from sabir.loops._calls import Lowering, shape_of
from sabir.loops._expressions import (
    ELEMENTS,
    FLOATS,
    INTEGERS,
    Best,
    Contract,
    Count,
    Cumulate,
    Expand,
    Expression,
    Extent,
    Join,
    Map,
    Number,
    Pad,
    Permute,
    Reduce,
    Reshape,
    Scatter,
    Size,
    Sizes,
    Slice,
    Slide,
    Stored,
    Take,
    Windows,
)
from sabir.loops._integers import BYTES, contract_integers, convolve_integers, uniform
from sabir.loops._operations import (
    ARITY,
    NotLowered,
    apply,
    best,
    broadcast,
    cast,
    check_element,
    count,
    cumulate,
    cut,
    expand,
    join,
    known_sizes,
    mean,
    narrow,
    nearest,
    number,
    pad,
    permute,
    reduce,
    reshape,
    same_shape,
    scatter,
    sized,
    squeeze,
    take,
    where,
)
from sabir.loops._products import contract, convolve
from sabir.loops._windows import slide, windows

__all__ = [
    "ARITY", "BYTES", "ELEMENTS", "FLOATS", "INTEGERS", "Assumptions", "Best", "Contract", "Count", "Cumulate",
    "Expand", "Expression", "Extent", "Join", "Lowering", "Map", "NotLowered", "Number", "Pad",
    "Permute", "Reduce", "Reshape", "Scatter", "Size", "Sizes", "Slice", "Slide", "Stored", "Take",
    "Windows", "apply", "assuming", "best", "broadcast", "cast", "check_element", "contract",
    "contract_integers", "convolve_integers",     "convolve", "count", "cumulate", "cut", "equal", "expand", "join", "known_sizes", "mean", "narrow", "nearest",
    "number", "pad", "permute", "reduce", "reshape", "same_shape", "scatter", "shape_of", "sized",
    "slide", "squeeze", "take", "uniform", "where", "windows",
]  # fmt: skip
