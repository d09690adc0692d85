"""Awkward calls: the examples of rooms with operands that are cut, widened, emptied or set to odd numbers."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

import sabir
from sabir.ir import ArrayTensor, TensorType
from sabir.runtime import Session
from support.rooms import called, finished

_ODD = (-1, 2**31, -(2**31), 7)


class Awkward(NamedTuple):
    """One call: the operand that was changed, how, and the feeds with it."""

    operand: str
    change: str
    feeds: dict[str, Any]


def awkward_calls(feeds: dict[str, Any]):
    """Yield the feeds of an example with one operand changed in each way."""
    for name, x in feeds.items():
        if not isinstance(x, np.ndarray):
            continue
        for change, other in _changed(x):
            yield Awkward(name, change, {**feeds, name: other})


def _changed(x: np.ndarray):
    for axis in range(x.ndim):
        size = x.shape[axis]
        if size:
            yield f"axis {axis} empty", np.take(x, [], axis)
        if size > 1:
            yield f"axis {axis} cut", np.take(x, range(size - 1), axis)
            yield f"axis {axis} at 1", np.take(x, [0], axis)
        if size:
            yield f"axis {axis} longer", np.take(x, [*range(size), 0], axis)
    yield "one axis more", x[None]
    if x.ndim and x.shape[0]:
        yield "one axis less", x[0]
    if x.dtype.kind in "iu" and x.size and x.ndim <= 2:
        for odd in _ODD:
            if np.iinfo(x.dtype).min <= odd <= np.iinfo(x.dtype).max:
                other = x.copy()
                other.reshape(-1)[-1] = odd
                yield f"the last is {odd}", other


def model_of_call(operator, example, feeds: dict[str, Any], *, fixed: str = "", shape_only: bool = False):
    """A model of one call whose inputs declare no shapes; the operand `fixed` is a constant.

    With `shape_only` it returns the shapes of the outputs instead of these.
    """
    b, made, _ = called(operator, example)
    for i, value in enumerate(made):
        if value is not None:
            b.output(b.Shape(value) if shape_only else value, f"o{i}")
    model = finished(b, example)
    for value in list(model.graph.inputs):
        if not isinstance(value.type, TensorType):
            continue
        value.type = TensorType(value.type.element)
        if value.name == fixed:
            model.graph.set_initializer(value, ArrayTensor(np.asarray(feeds[value.name])))
            model.graph.inputs.remove(value)
    for value in model.graph.outputs:
        value.type = None
    return model


def outcome(model, feeds: dict[str, Any], engine: str):
    """What a run gives: results, or the class of the error with its message."""
    given = {v.name for v in model.graph.inputs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "values", list(
                Session(model, engine=engine).run({n: x for n, x in feeds.items() if n in given}).values()
            )
        except sabir.LimitError as error:
            return "limit", str(error)
        except sabir.SabirError as error:
            return "error", str(error)
