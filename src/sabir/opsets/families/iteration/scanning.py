"""The iteration of Scan over slices of tensors: the types of states and slices, the steps, padding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import element
from sabir.ir import TensorType, Type, lower_bound
from sabir.opsets.families.iteration import iterations
from sabir.opsets.families.shapes.shapes import axis_in, same_dim
from sabir.opsets.families.shapes.sizes import allotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array, Ints, Subgraph


def parts(inputs: Sequence[Any], num_scan_inputs: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the states and the scan inputs of a call."""
    if not 0 < num_scan_inputs <= len(inputs):
        raise InferenceError(f"`num_scan_inputs` is {num_scan_inputs}, and there are {len(inputs)} inputs")
    border = len(inputs) - num_scan_inputs
    return tuple(inputs[:border]), tuple(inputs[border:])


def each(name: str, attributes: Mapping[str, Ints], count: int) -> tuple[int, ...]:
    """Return the attribute's number for each of `count` inputs or outputs, 0 where it is absent."""
    values = attributes[name]
    if values is None:
        return (0,) * count
    if len(values) != count:
        raise InferenceError(f"`{name}` has {len(values)} entries for {count}")
    return tuple(values)


def common(inputs: Sequence[TensorType], axes: Sequence[int], what: str) -> Dim:
    """Return the size that all tensors have along their axes; raises InferenceError for different ones."""
    ranked = [(x.shape, a) for x, a in zip(inputs, axes, strict=True) if x.shape is not None]
    return same_dim([shape[axis_in(a, len(shape))] for shape, a in ranked], what)


def without(x: TensorType, axis: int) -> TensorType:
    """Return the type of a slice: `x` without `axis`."""
    if x.shape is None:
        return TensorType(x.element)
    axis = axis_in(axis, len(x.shape))
    return TensorType(x.element, (*x.shape[:axis], *x.shape[axis + 1 :]))


def item_type(x: Array) -> TensorType:
    """Return the type of an array without contents, which differ from step to step."""
    return TensorType(element(x.dtype), x.shape)


def check_lengths(lengths: Iterable[object], longest: int) -> None:
    """Raise InferenceError for a length outside [0, longest]."""
    for place, length in enumerate(lengths):
        if isinstance(length, int) and not 0 <= length <= longest:
            raise InferenceError(f"`sequence_lens`[{place}] is {length}, and must be 0 to {longest}")


def unrun(
    body: Subgraph[Any], states: Sequence[Type | None], slices: Sequence[TensorType]
) -> tuple[Type | None, ...]:
    """Return the types of the stacked outputs where no step runs."""
    if len(body.outputs) == len(states):
        return ()
    return body.typed(*states, *slices)[len(states) :]


def infer_steps(
    body: Subgraph[Type | None], states: Sequence[TensorType], slices: Sequence[TensorType], count: Dim
) -> tuple[Sequence[Type | None], Sequence[Type | None]]:
    """Return the types of the final states, and of one step's outputs to stack.

    A state keeps its shape from step to step, so that one step determines it; its contents change.
    """
    before = [TensorType(s.element, s.shape) for s in states]
    results = body(*before, *slices)
    if len(results) < len(before):
        raise InferenceError(f"the body has {len(results)} outputs for {len(before)} states")
    after = [_merged(b, r, i) for i, (b, r) in enumerate(zip(before, results, strict=False))]
    return after if (lower_bound(count) or 0) > 0 else before, results[len(before) :]


def _merged(before: TensorType, after: Type | None, place: int) -> TensorType:
    """Return the type of a state by its types before and after a step."""
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
    """Return the final states, and the items of every step for each further output of the body."""
    number = len(states)
    if len(body.outputs) < number:
        raise EvaluationError(f"the body has {len(body.outputs)} outputs for {number} states")
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
            change = f"from {list(before.shape)} to {list(after.shape)}"
            raise EvaluationError(f"a state changes its shape {change} in step {step}")


def padded(batch: Sequence[Sequence[Array]], longest: int, declared: Type | None) -> Array:
    """Return the stacks of a batch, which may differ in length, padded with zeros at the end."""
    item = next((items[0] for items in batch if items), None)
    if item is None:
        empty = iterations.stack((), declared)
        shape, dtype = empty.shape[1:], empty.dtype
    else:
        shape, dtype = item.shape, item.dtype
    whole = allotted((len(batch), longest, *shape), dtype)
    result: Array = np.full(whole, "" if dtype == np.object_ else 0, dtype)
    for row, items in zip(result, batch, strict=True):
        if items:
            row[: len(items)] = np.stack(items)
    return result
