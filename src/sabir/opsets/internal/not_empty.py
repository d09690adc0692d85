"""NotEmpty: a tensor that has an item along its first axis."""

from sabir import loops
from sabir.base import EvaluationError, InferenceError
from sabir.ir import TensorType
from sabir.loops import Expression, NotLowered
from sabir.opsets.typing import Array
from sabir.schema import CLASSIC, INTERNAL, Constraint, Input, Operator, Output

not_empty = Operator(
    "NotEmpty",
    domain=INTERNAL,
    summary="The operand; an error if it has no item, as for the tensors of an empty sequence.",
)

_T = Constraint("T", CLASSIC)

v1 = not_empty.first(
    1, inputs=[Input("x", _T, "A tensor of rank 1 or more.")], outputs=[Output("y", _T, "The tensor.")]
)


@v1.infer
def infer(x: TensorType, /) -> TensorType:
    if x.shape is not None and x.shape[0] == 0:
        raise InferenceError("the tensor has no item")
    return x


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    if not x.shape[0]:
        raise EvaluationError("the tensor has no item")
    return x


@v1.lower
def lower(x: Expression, /) -> Expression:
    if not loops.at_least(x.shape[0], 1):
        raise NotLowered("whether there is an item is known at run time only")
    return x
