"""The rank and the sizes that the standard requires of an input: one check for types and for arrays.

Inference and evaluation call the same function, so that both report the same shapes with the same message.

Where the text requires a scalar, exporters write a 1-D tensor of one element, which onnxruntime accepts; both
are accepted here. Where the text requires a 1-D tensor, a scalar is refused, as by onnxruntime and onnx; an
operator that also admits a scalar has a comment at its call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import TensorType, may_be_equal
from sabir.opsets.families.shapes import contents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import Dim, Shape
    from sabir.opsets.typing import Array, BehaviourFunction

    Shaped: TypeAlias = TensorType | Array


def type_of(x: Array, *, known: bool = False) -> TensorType:
    """Return the type of an array, with its contents if they are small and `known` is set."""
    kind = TensorType(element(x.dtype), x.shape)
    return kind.with_known(contents.of_array(x)) if known else kind


def shown(shape: Iterable[Dim]) -> str:
    """Return a shape as messages show it: `[2,?,N]`."""
    return f"[{','.join('?' if d is None else str(d) for d in shape)}]"


def check_rank(name: str, x: Shaped | None, *ranks: int) -> None:
    """Raise InferenceError where an input has a rank that is none of `ranks`; one of unknown shape passes."""
    if x is not None and x.shape is not None and len(x.shape) not in ranks:
        needed = " or ".join(f"{r}-D" if r else "a scalar" for r in sorted(ranks))
        raise InferenceError(f"`{name}` must be {needed}, and has the shape {shown(x.shape)}")


def check_least_rank(name: str, x: Shaped | None, least: int) -> None:
    """Raise InferenceError where an input has fewer dimensions than `least`."""
    if x is not None and x.shape is not None and len(x.shape) < least:
        raise InferenceError(f"`{name}` must be of rank {least} or more, and has the shape {shown(x.shape)}")


def check_shape(name: str, x: Shaped | None, *shape: Dim) -> None:
    """Raise InferenceError where an input cannot have this shape, in which None is any size."""
    if x is None or x.shape is None:
        return
    if len(x.shape) != len(shape) or any(
        not may_be_equal(found, needed) for found, needed in zip(x.shape, shape, strict=True)
    ):
        raise InferenceError(f"`{name}` must have the shape {shown(shape)}, and has {shown(x.shape)}")


def check_one(name: str, x: Shaped | None) -> None:
    """Raise InferenceError where an input that the text calls a scalar has more elements or axes."""
    shape = None if x is None else x.shape
    if shape and (len(shape) > 1 or any(not may_be_equal(d, 1) for d in shape)):
        raise InferenceError(f"`{name}` must be a scalar, and has the shape {shown(shape)}")


def check_alike(names: Sequence[str], inputs: Sequence[Shaped]) -> None:
    """Raise InferenceError where inputs that must have one shape have different ones."""
    known = [(name, x.shape) for name, x in zip(names, inputs, strict=True) if x.shape is not None]
    for name, shape in known[1:]:
        first, other = known[0]
        if len(shape) != len(other) or any(not may_be_equal(*p) for p in zip(shape, other, strict=True)):
            raise InferenceError(
                f"`{name}` must have the shape of `{first}`, {shown(other)}, and has {shown(shape)}"
            )


def check_broadcast(name: str, x: Shaped | None, target: Shape | None) -> None:
    """Raise InferenceError where an input does not broadcast to `target` without changing it."""
    if x is None or x.shape is None or target is None:
        return
    pairs = zip(reversed(x.shape), reversed(target), strict=False)
    if len(x.shape) > len(target) or any(found != 1 and not may_be_equal(found, dim) for found, dim in pairs):
        raise InferenceError(f"`{name}` of the shape {shown(x.shape)} does not broadcast to {shown(target)}")


def as_list(name: str, x: Array) -> list[Any]:
    """Return the elements of a 1-D tensor; raises InferenceError for one of another rank."""
    if x.ndim != 1:
        check_rank(name, x, 1)
    return x.tolist()


def as_number(name: str, x: Array) -> Any:
    """Return the only element of an input that the text calls a scalar; raises InferenceError for more."""
    if x.ndim > 1 or x.size != 1:
        check_one(name, x)
    return x.item()


def hold(rule: BehaviourFunction, *inputs: Array | None, **attributes: Any) -> None:
    """Raise InferenceError where the type rule of an operator refuses the shapes of these inputs.

    For operators whose arithmetic would broadcast what the standard does not.
    """
    rule(*(None if x is None else type_of(x) for x in inputs), **attributes)
