"""The operators of the domain `com.acme` over three versions of its operator set.

| operator | 1 | 2 | 3 |
|---|---|---|---|
| `Denoise` | `Denoise:1`: the strength is an attribute | `Denoise:2`: it is an input | `Denoise:2` |
| `Brighten` | `Brighten:1` | `Brighten:1` | removed: `Add` of the standard does the same |
| `Vignette` | | | `Vignette:3` |

`registry(version)` knows the set up to a version, as a release of the company's software does; `NEWEST` knows
all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.opsets import STANDARD
from sabir.schema import Attribute, Constraint, Input, Operator, Output, Unconvertible, tensors

if TYPE_CHECKING:
    from sabir.ir import Builder, TensorType, Value
    from sabir.schema import Registry

    Array = np.ndarray[Any, np.dtype[Any]]

DOMAIN = "com.acme"
T = Constraint("T", tensors("float"))
NUMBER = tensors("float")


def registry(version: int) -> Registry:
    """Return the operators of the standard, and those of `com.acme` that a version of the set has."""
    operators = [denoise(version), brighten(version), *([vignette()] if version >= 3 else [])]
    return STANDARD.with_operators(*operators, opsets={DOMAIN: version})


def denoise(version: int) -> Operator:
    """Return Denoise: elements whose magnitude is below the strength become zero."""
    operator = Operator("Denoise", DOMAIN, summary="Elements closer to zero than `strength` become zero.")
    x, y = Input("x", T, "An image."), Output("y", T, "Its shape.")
    v1 = operator.first(
        1, inputs=[x], outputs=[y], attributes=[Attribute("strength", "float", "The bound.", default=0.1)]
    )

    @v1.infer
    def infer(x: TensorType, /, *_: TensorType, **__: Any) -> TensorType:
        return x

    @v1.evaluate
    def evaluate(x: Array, /, *, strength: float) -> Array:
        return np.where(np.abs(x) < strength, np.float32(0), x)

    if version >= 2:
        strength = Input("strength", Constraint("S", NUMBER), "The bound, a scalar.")
        v2 = v1.evolve(2, "`strength` is an input.", inputs=[x, strength], drop=["strength"])

        @v2.evaluate
        def evaluate_with_input(x: Array, strength: Array, /) -> Array:
            return np.where(np.abs(x) < strength, np.float32(0), x)

        @v2.upgrade
        def to_input(b: Builder, x: Value, /, *, strength: float) -> Value:
            return b.op("Denoise", x, np.float32(strength), domain=DOMAIN)

        @v2.downgrade
        def to_attribute(b: Builder, x: Value, strength: Value, /) -> Value:
            known = getattr(strength.type, "known", None)
            if known is None:
                raise Unconvertible("`strength` is computed at run time, and Denoise:1 needs it in the model")
            return b.op("Denoise", x, strength=float(known[0]), domain=DOMAIN)

    return operator


def brighten(version: int) -> Operator:
    """Return Brighten: the sum with a number."""
    operator = Operator("Brighten", DOMAIN, summary="The sum with `by`.")
    v1 = operator.first(
        1,
        inputs=[Input("x", T, "An image.")],
        outputs=[Output("y", T, "Its shape.")],
        attributes=[Attribute("by", "float", "The number.", required=True)],
    )

    @v1.infer
    def infer(x: TensorType, /, **_: Any) -> TensorType:
        return x

    @v1.evaluate
    def evaluate(x: Array, /, *, by: float) -> Array:
        return x + np.float32(by)

    if version >= 3:
        v3 = v1.retire(3, "Add does the same.")

        @v3.upgrade
        def to_add(b: Builder, x: Value, /, *, by: float) -> Value:
            return b.Add(x, np.float32(by))

    return operator


def vignette() -> Operator:
    """Return Vignette: an image of two axes, darker towards its borders."""
    operator = Operator("Vignette", DOMAIN, summary="The product with a weight that falls to the borders.")
    v3 = operator.first(
        3, inputs=[Input("x", T, "An image, (H, W).")], outputs=[Output("y", T, "Its shape.")]
    )

    @v3.infer
    def infer(x: TensorType, /) -> TensorType:
        return x

    @v3.evaluate
    def evaluate(x: Array, /) -> Array:
        rows, columns = (np.hanning(n + 2)[1:-1].astype(np.float32) for n in x.shape)
        return x * rows[:, None] * columns

    @v3.body
    def body(b: Builder, x: Value, /) -> Value:
        """Say the same in operators of the standard, so that a model can leave this set."""
        size = b.Cast(b.Shape(x), to="float")
        for axis in (0, 1):
            count = size[axis]
            place = b.Range(np.float32(1), count + 1, np.float32(1))
            weight = 0.5 - 0.5 * b.Cos(2 * np.float32(np.pi) * place / (count + 1))
            x *= b.Unsqueeze(weight, [1]) if axis == 0 else weight
        return x

    return operator


NEWEST = registry(3)
