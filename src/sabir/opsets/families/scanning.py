"""Scan's way through slices of tensors: the types of states and slices, the steps, padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import element
from sabir.ir import TensorType, Type, lower_bound
from sabir.opsets.families import iterations
from sabir.opsets.families.shapes import axis_in, same_dim
from sabir.opsets.families.sizes import allotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array, Subgraph


def parts(inputs: Sequence[Any], num_scan_inputs: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the states and the scan inputs of a call."""
    if not 0 < num_scan_inputs <= len(inputs):
        raise InferenceError(f"`num_scan_inputs` is {num_scan_inputs}, and there are {len(inputs)} inputs")
    border = len(inputs) - num_scan_inputs
    return tuple(inputs[:border]), tuple(inputs[border:])


def each(name: str, given: Sequence[int] | None, count: int) -> tuple[int, ...]:
    """Return one number for each of `count` inputs or outputs, 0 where none are given."""
    if given is None:
        return (0,) * count
    if len(given) != count:
        raise InferenceError(f"`{name}` has {len(given)} entries for {count}")
    return tuple(given)


def common(inputs: Sequence[TensorType], axes: Sequence[int], what: str) -> Dim:
    """Return the one size that tensors have along their axes."""
    ranked = [(x.shape, a) for x, a in zip(inputs, axes, strict=True) if x.shape is not None]
    return same_dim([shape[axis_in(a, len(shape))] for shape, a in ranked], what)


def without(x: TensorType, axis: int) -> TensorType:
    """Return the type of a slice."""
    if x.shape is None:
        return TensorType(x.element)
    axis = axis_in(axis, len(x.shape))
    return TensorType(x.element, (*x.shape[:axis], *x.shape[axis + 1 :]))


def item_type(x: Array) -> TensorType:
    """Return the type of an array, whose contents are not those of a step."""
    return TensorType(element(x.dtype), x.shape)


def check_lengths(lengths: Iterable[object], longest: int) -> None:
    """Raise InferenceError for a number of steps that a sequence cannot have."""
    for place, length in enumerate(lengths):
        if isinstance(length, int) and not 0 <= length <= longest:
            raise InferenceError(f"`sequence_lens`[{place}] is {length}, and must be 0 to {longest}")


def unrun(
    body: Subgraph[Any], states: Sequence[Type | None], slices: Sequence[TensorType]
) -> tuple[Type | None, ...]:
    """Return the types of what a first step would give to be stacked."""
    if len(body.outputs) == len(states):
        return ()
    return body.typed(*states, *slices)[len(states) :]


def infer_steps(
    body: Subgraph[Type | None], states: Sequence[TensorType], slices: Sequence[TensorType], count: Dim
) -> tuple[Sequence[Type | None], Sequence[Type | None]]:
    """Return the types of the last states, and of what one step gives to be stacked.

    A state keeps its shape from step to step, so one step tells all; its contents change.
    """
    held = [TensorType(s.element, s.shape) for s in states]
    found = body(*held, *slices)
    if len(found) < len(held):
        raise InferenceError(f"the body gives {len(found)} outputs, and has {len(held)} states")
    kept = [_kept(h, f, i) for i, (h, f) in enumerate(zip(held, found, strict=False))]
    return kept if (lower_bound(count) or 0) > 0 else held, found[len(held) :]


def _kept(before: TensorType, after: Type | None, place: int) -> TensorType:
    """Return what two types say together of a state."""
    if after is None:
        return before
    what = f"state {place} before and after a step"
    elements = {t.element for t in (before, after) if isinstance(t, TensorType) and t.element.number}
    if not isinstance(after, TensorType) or len(elements) > 1:
        raise InferenceError(f"{what}: {before} is not {after}")
    element = elements.pop() if elements else before.element
    if before.shape is None or after.shape is None:
        return TensorType(element, after.shape if before.shape is None else before.shape)
    if len(before.shape) != len(after.shape):
        raise InferenceError(f"{what}: {before} is not {after}")
    pairs = zip(before.shape, after.shape, strict=True)
    return TensorType(element, tuple(same_dim(pair, what) for pair in pairs))


def run_steps(
    body: Subgraph[Array], states: tuple[Array, ...], slices: Sequence[Array], count: int
) -> tuple[tuple[Array, ...], list[list[Array]]]:
    """Return the last states, and for each further output of the body what every step gave."""
    number = len(states)
    if len(body.outputs) < number:
        raise EvaluationError(f"the body gives {len(body.outputs)} outputs, and has {number} states")
    gathered = iterations.Gathered(len(body.outputs) - number)
    for step in range(count):
        results = body(*states, *(x[step, ...] for x in slices))
        _check_shapes(states, results[:number], step)
        states = results[:number]
        gathered.add(results[number:])
    return states, gathered.taken()


def _check_shapes(states: Sequence[Array], results: Sequence[Array], step: int) -> None:
    for before, after in zip(states, results, strict=True):
        if before.shape != after.shape:
            told = f"from {list(before.shape)} to {list(after.shape)}"
            raise EvaluationError(f"a state changes its shape {told} in step {step}")


def padded(batch: Sequence[Sequence[Array]], longest: int, declared: Type | None) -> Array:
    """Return the stacks of a batch, which may differ in length, with zeros behind the shorter ones."""
    item = next((items[0] for items in batch if items), None)
    if item is None:
        empty = iterations.stack((), declared)
        shape, kind = empty.shape[1:], empty.dtype
    else:
        shape, kind = item.shape, item.dtype
    whole = allotted((len(batch), longest, *shape), kind)
    result: Array = np.full(whole, "" if kind == np.object_ else 0, kind)
    for row, items in zip(result, batch, strict=True):
        if items:
            row[: len(items)] = np.stack(items)
    return result
