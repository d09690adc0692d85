"""Gradient: partial derivatives of one tensor of the model by others."""

from collections.abc import Sequence

from sabir.base import InferenceError
from sabir.ir import TensorType, Value
from sabir.opsets.typing import Strings, Surroundings
from sabir.schema import CLASSIC, FLOATS, Attribute, Constraint, Input, Operator, Output

gradient = Operator(
    "Gradient",
    domain="ai.onnx.preview.training",
    summary="The derivatives of the tensor named `y` by each of those named in `xs`, for the values of "
    "both and of those in `zs` in the inputs.",
)

T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)

v1 = gradient.first(
    1,
    inputs=[
        Input(
            "Inputs",
            T1,
            "A value for each name in `xs`, then for each in `zs`.",
            variadic=True,
            heterogeneous=True,
        )
    ],
    outputs=[
        Output(
            "Outputs",
            T2,
            "The derivative by each tensor in `xs`, of its shape.",
            variadic=True,
            heterogeneous=True,
        )
    ],
    attributes=[
        Attribute("y", "string", "The tensor to differentiate.", required=True, names_values=True),
        Attribute("zs", "strings", "Further tensors that `y` depends on.", names_values=True),
        Attribute("xs", "strings", "What to differentiate by.", required=True, names_values=True),
    ],
)


@v1.infer
def infer(*inputs: TensorType, xs: Sequence[str], zs: Strings) -> tuple[TensorType, ...]:
    named = len(xs) + len(zs or ())
    if len(inputs) != named:
        raise InferenceError(f"there are {len(inputs)} inputs for {named} names in `xs` and `zs`")
    return tuple(TensorType(x.element, x.shape) for x in inputs[: len(xs)])


v1.absent(
    "evaluate",
    "an operator does not see the tensors that it names; engines replace the call by its derivatives",
)


@v1.in_graph
def in_graph(
    around: Surroundings, /, *inputs: Value, xs: Sequence[str], zs: Strings, y: str
) -> tuple[Value | None, ...]:
    return around.derivatives(y, xs, zs or (), inputs)
