"""The shapes of the inputs and outputs of a recurrent layer.

Inference and evaluation call the same check, so that a run refuses the shapes that the standard refuses, and
broadcasts none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from sabir.base import InferenceError
from sabir.ir import TensorType, exact_quotient, may_be_equal, mul
from sabir.opsets.families.shapes.ranks import shown
from sabir.schema import one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Dim, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array

# for each value of `direction`, whether each direction of the layer runs backwards in time
_BACKWARDS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
DIRECTIONS, LAYOUTS = one_of(*_BACKWARDS), one_of(0, 1)

# the names of the dimensions in the standard
_X, _STATE = ("seq_length", "batch_size", "input_size"), ("num_directions", "batch_size", "hidden_size")
_PEEPHOLES = 3  # the input, output and forget gates have peepholes

Tensor = TypeVar("Tensor", "TensorType", "Array", "Value", "Expression")


class RecurrentInputs(NamedTuple, Generic[Tensor]):
    """The inputs of a recurrent layer: types, arrays, values or expressions; LSTM has all of them."""

    x: Tensor
    w: Tensor
    r: Tensor
    b: Tensor | None = None
    lens: Tensor | None = None
    h: Tensor | None = None
    c: Tensor | None = None
    p: Tensor | None = None


class RecurrentSizes(NamedTuple):
    """The sizes of a recurrent layer, as far as they are known."""

    time: Dim
    batch: Dim
    directions: int
    hidden: Dim

    def of_outputs(self, layout: int) -> tuple[tuple[Dim, ...], tuple[Dim, ...]]:
        """Return the shape of Y, and that of each final state."""
        time, batch, directions, hidden = self
        if layout:
            return (batch, time, directions, hidden), (batch, directions, hidden)
        return (time, directions, batch, hidden), (directions, batch, hidden)


def directions_of(direction: str) -> tuple[bool, ...]:
    """Return for each direction of a layer whether it runs backwards in time."""
    return _BACKWARDS[direction]


def sizes(
    inputs: RecurrentInputs[TensorType] | RecurrentInputs[Array],
    gates: int,
    *,
    direction: str,
    hidden_size: int | None,
    layout: int,
) -> RecurrentSizes:
    """Return the sizes of a layer with `gates` gates; raises InferenceError for inputs that do not match."""
    directions = len(directions_of(direction))
    known: dict[str, Dim] = {"num_directions": directions, "hidden_size": hidden_size}
    for name, x, dims in _described(inputs, gates, layout):
        if x is not None and x.shape is not None:
            _fit(name, x.shape, dims, known)
    time = known.get("seq_length")
    if inputs.lens is not None:
        _check_lengths(inputs.lens, time)
    return RecurrentSizes(time, known.get("batch_size"), directions, known["hidden_size"])


def _described(
    inputs: RecurrentInputs[TensorType] | RecurrentInputs[Array], gates: int, layout: int
) -> Iterator[tuple[str, TensorType | Array | None, Sequence[str | tuple[int, str]]]]:
    """Yield each input with its dimensions; R comes first, as its last dimension is the hidden size."""
    rows, state = (gates, "hidden_size"), (_STATE[1], _STATE[0], _STATE[2]) if layout else _STATE
    yield "R", inputs.r, ("num_directions", rows, "hidden_size")
    yield "X", inputs.x, (_X[1], _X[0], _X[2]) if layout else _X
    yield "W", inputs.w, ("num_directions", rows, "input_size")
    yield "B", inputs.b, ("num_directions", (2 * gates, "hidden_size"))
    yield "sequence_lens", inputs.lens, ("batch_size",)
    yield "initial_h", inputs.h, state
    yield "initial_c", inputs.c, state
    yield "P", inputs.p, ("num_directions", (_PEEPHOLES, "hidden_size"))


def _fit(
    name: str, shape: Sequence[Dim], dims: Sequence[str | tuple[int, str]], known: dict[str, Dim]
) -> None:
    """Add the sizes that a shape determines to `known`; raises InferenceError where it contradicts them."""
    expected = [_needed(dim, known) for dim in dims]
    meaning = ", ".join(dim if isinstance(dim, str) else f"{dim[0]}*{dim[1]}" for dim in dims)
    unfit = f"`{name}` must have the shape {shown(expected)} ({meaning}), not {shown(shape)}"
    if len(shape) != len(dims) or any(map(_differ, shape, expected)):
        raise InferenceError(unfit)
    for size, dim in zip(shape, dims, strict=True):
        factor, of = (1, dim) if isinstance(dim, str) else dim
        found = exact_quotient(size, factor)
        if found is None and isinstance(size, int):
            raise InferenceError(f"`{name}` has {size} rows, and must have {factor} for each hidden unit")
        if _differ(known.get(of), found):  # `R` has the hidden size twice
            raise InferenceError(unfit)
        if known.get(of) is None or isinstance(found, int):
            known[of] = found


def _differ(one: Dim, other: Dim) -> bool:
    return not may_be_equal(one, other)


def _needed(dim: str | tuple[int, str], known: dict[str, Dim]) -> Dim:
    if isinstance(dim, str):
        return known.get(dim)
    return mul(dim[0], known.get(dim[1]))


def _check_lengths(lens: TensorType | Array, time: Dim) -> None:
    """Raise InferenceError for a length of a sequence that is known to be outside 0 to `seq_length`."""
    found = lens.known or () if isinstance(lens, TensorType) else lens.tolist()
    for index, length in enumerate(found):
        if isinstance(length, int) and (length < 0 or (isinstance(time, int) and length > time)):
            most = "seq_length" if time is None else time
            raise InferenceError(f"`sequence_lens`[{index}] is {length}, and must be 0 to {most}")
