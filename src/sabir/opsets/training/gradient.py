"""Gradient: partial derivatives of one tensor of the model by others."""

from collections.abc import Sequence

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.schema import CLASSIC, FLOATS, Attribute, Constraint, Input, Operator, Output

gradient = Operator(
    "Gradient",
    domain="ai.onnx.preview.training",
    summary="The derivatives of the tensor named `y` by each of those named in `xs`, where these and those "
    "in `zs` have the values given.",
)

T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)

v1 = gradient.first(
    1,
    inputs=[
        Input("Inputs", T1, "A value for each name in `xs`, then for each in `zs`.", variadic=True,
              heterogeneous=True),
    ],
    outputs=[
        Output("Outputs", T2, "For each name in `xs` the derivative, of its shape.", variadic=True,
               heterogeneous=True),
    ],
    attributes=[
        Attribute("y", "string", "The tensor to differentiate.", required=True, names_values=True),
        Attribute("zs", "strings", "What `y` depends on beside `xs`.", names_values=True),
        Attribute("xs", "strings", "What to differentiate by.", required=True, names_values=True),
    ],
)  # fmt: skip


@v1.infer
def infer(*inputs: TensorType, xs: Sequence[str], zs: Sequence[str] | None) -> tuple[TensorType, ...]:
    named = len(xs) + len(zs or ())
    if len(inputs) != named:
        raise InferenceError(f"{len(inputs)} inputs are given for {named} names in `xs` and `zs`")
    return tuple(TensorType(x.element, x.shape) for x in inputs[: len(xs)])


v1.absent(
    "evaluate",
    "it names tensors of the graph around it, which no operator sees; differentiating the model replaces it",
)
