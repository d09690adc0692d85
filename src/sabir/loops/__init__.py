"""Tensor expressions: rooms lower operators to them, and the compiler builds kernels from them."""

from sabir.loops import walk
from sabir.loops._assumptions import (
    Assumptions,
    assuming,
    at_least,
    divided,
    equal,
    fixed,
    larger,
    smaller,
    tentative,
)
from sabir.loops._calls import LoweredSubgraph, Lowering, shape_of
from sabir.loops._expression import (
    ELEMENTS,
    FLOATS,
    HALVES,
    INTEGERS,
    NOT_READ,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    Expression,
    Size,
    Sizes,
    element_bytes,
    expression,
)
from sabir.loops._expressions import (
    ARITY,
    Best,
    Contract,
    Count,
    Couple,
    Cumulate,
    Expand,
    Extent,
    Join,
    Map,
    Number,
    Pad,
    Permute,
    Reduce,
    Reshape,
    Scatter,
    Slice,
    Slide,
    Stored,
    Take,
    Windows,
)
from sabir.loops._filters import Filtered, as_products, filtered, filters_of
from sabir.loops._finite import Contents, is_finite
from sabir.loops._integers import BYTES, contract_integers, convolve_integers, slide_integers, uniform
from sabir.loops._matrix_steps import MatrixSteps
from sabir.loops._operations import (
    NotLowered,
    Widened,
    apply,
    best,
    bits,
    broadcast,
    cast,
    check_computed,
    check_element,
    contract,
    convolve,
    count,
    couple,
    cumulate,
    cut,
    expand,
    join,
    known_sizes,
    mean,
    narrow,
    nearest,
    number,
    order,
    pad,
    permute,
    random_words,
    reduce,
    reshape,
    same_shape,
    scatter,
    sized,
    slide,
    slide_mixed,
    squeeze,
    take,
    tensor,
    where,
    windows,
)
from sabir.loops._recurrences import Recur, Recurred, RecurrenceBuilder, StepBody, StepOperand, StepState
from sabir.loops._regions import PoolRegions
from sabir.loops._threefry import WordArithmetic, threefry
from sabir.loops._trees import Descend

__all__ = [
    "ARITY", "BYTES", "ELEMENTS", "FLOATS", "HALVES", "INTEGERS", "NOT_READ", "SMALL_FLOATS",
    "SMALL_INTEGERS", "Assumptions", "Best", "Contents", "Contract", "Count", "Couple", "Cumulate",
    "Descend", "Expand", "Expression", "Extent", "Filtered", "Join", "LoweredSubgraph", "Lowering", "Map",
    "MatrixSteps", "NotLowered", "Number", "Pad", "Permute", "PoolRegions", "Recur", "Recurred",
    "RecurrenceBuilder", "Reduce", "Reshape", "Scatter", "Size", "Sizes", "Slice", "Slide", "StepBody",
    "StepOperand", "StepState", "Stored", "Take", "Widened", "Windows", "WordArithmetic", "apply",
    "as_products", "assuming", "at_least", "best", "bits", "broadcast", "cast", "check_computed",
    "check_element", "contract", "contract_integers", "convolve", "convolve_integers", "count", "couple",
    "cumulate", "cut", "divided", "element_bytes", "equal", "expand", "expression", "filtered",
    "filters_of", "fixed", "is_finite", "join", "known_sizes", "larger", "mean", "narrow", "nearest",
    "number", "order", "pad", "permute", "random_words", "reduce", "reshape", "same_shape", "scatter",
    "shape_of", "sized", "slide", "slide_integers", "slide_mixed", "smaller", "squeeze", "take", "tensor",
    "tentative", "threefry", "uniform", "walk", "where", "windows",
]  # fmt: skip
