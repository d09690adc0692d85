"""Operators that draw random numbers of one distribution; the shape is an attribute, or that of an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.random import random_kernels, randomness
from sabir.schema import BFLOAT16, CLASSIC, FLOATS, Attribute, Constraint, Input, Output, at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.loops import Expression, Lowering
    from sabir.opsets.typing import Array
    from sabir.schema import Operator


class Distribution(NamedTuple):
    """A distribution: the attributes that are its parameters, how numpy draws, and how kernels do."""

    parameters: Sequence[Attribute]
    draw: Callable[..., Array]
    lower: Callable[..., Expression]

    def lowered(self, call: Lowering, seed: float | None, attributes: Mapping[str, Any]) -> Expression:
        """Return the lowering of a call, whose inferred type has the shape and the element type."""
        parameters = {p.name: attributes[p.name] for p in self.parameters}
        return self.lower(call, randomness.float_key(seed), **parameters)


UNIFORM = Distribution(
    (
        Attribute("high", "float", "The upper end, which is never drawn.", default=1.0),
        Attribute("low", "float", "The lower end.", default=0.0),
    ),
    randomness.uniform,
    random_kernels.uniform,
)
NORMAL = Distribution(
    (
        Attribute("scale", "float", "The standard deviation.", default=1.0, values=at_least(0)),
        Attribute("mean", "float", "The mean.", default=0.0),
    ),
    randomness.normal,
    random_kernels.normal,
)

_SHAPE = Attribute("shape", "ints", "The size of each dimension.", required=True, values=at_least(0))


def declare(operator: Operator, distribution: Distribution) -> None:
    """Declare an operator that takes the shape from an attribute."""
    v1 = operator.first(
        1,
        outputs=[
            Output(
                "output", Constraint("T", FLOATS), "The random numbers, in the shape that `shape` specifies."
            )
        ],
        attributes=[
            _SHAPE,
            randomness.dtype("T", "float", default=1),
            randomness.SEED,
            *distribution.parameters,
        ],
    )
    v1.widen(22, T=BFLOAT16)

    @v1.infer
    def infer(*, shape: Sequence[int], dtype: int) -> TensorType:
        return TensorType(element(dtype), tuple(shape))

    @v1.evaluate
    def evaluate(*, shape: Sequence[int], dtype: int, seed: float | None, **parameters: float) -> Array:
        return distribution.draw(shape, element(dtype), randomness.float_key(seed), **parameters)

    @v1.lower
    def lower(*, seed: float | None, call: Lowering, **attributes: Any) -> Expression:
        return distribution.lowered(call, seed, attributes)


def declare_like(operator: Operator, distribution: Distribution) -> None:
    """Declare an operator that takes the shape from its input, and by default the element type too."""
    any_type, of = Constraint("T1", CLASSIC), Constraint("T2", FLOATS)
    v1 = operator.first(
        1,
        inputs=[
            Input("input", any_type, "A tensor, for its shape and its element type where `dtype` is absent.")
        ],
        outputs=[Output("output", of, "The random numbers, in the shape of the input.")],
        attributes=[
            randomness.dtype("T2", "that of the input"),
            randomness.SEED,
            *distribution.parameters,
        ],
    )
    v1.widen(22, T1=BFLOAT16, T2=BFLOAT16)
    v1.infer(randomness.infer_like)

    @v1.evaluate
    def evaluate(x: Array, /, *, dtype: int | None, seed: float | None, **parameters: float) -> Array:
        to = element(x.dtype if dtype is None else dtype)
        return distribution.draw(x.shape, to, randomness.float_key(seed), **parameters)

    @v1.lower
    def lower(_: Expression, /, *, seed: float | None, call: Lowering, **attributes: Any) -> Expression:
        return distribution.lowered(call, seed, attributes)
