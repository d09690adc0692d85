"""Awkward calls: examples of rooms with other sizes, contents, attributes and readers, each drawn by its number.

A call with a number is always the same one. It changes one or two things of an example: the size of an axis, of one
operand or of all of them, the rank, some elements, an attribute. Operands are fed, constants, or computed; results
are read completely, in part, or for their shape alone.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir import Builder
from sabir.elements import element
from sabir.ir import Model, TensorType, Value, minimum_ir
from sabir.schema import Example
from support.rooms import OPERATORS, attributes_of, examples_of, type_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.schema import Operator

INTEGERS = (-1, -2, 0, 1, 2, 7, 62, 2**31 - 1, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63))
FLOATS = (np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0, 1e-40, -1.0, 0.5, 2.0**31, 2.0**63)
TEXTS = ("", "a", "zz", "1e999")
NEWEST = 21  # the opset of the readers of a call, and of a call of another domain
READERS = 13  # the first opset whose Slice, Concat and Gather are those of the readers
MOST_ELEMENTS = 1 << 16


class Awkward(NamedTuple):
    """One call as a model, with feeds.

    `scale` is that of the terms which its floats sum, where it is larger than that of all results; None where only
    the types and shapes of the results are defined.
    """

    name: str
    model: Model
    feeds: dict[str, Any]
    scale: float | None


def awkward_call(number: int) -> Awkward:
    """Return the call with a number; neighbours are calls of different operators."""
    choose = random.Random(number)  # ruff: ignore[suspicious-non-cryptographic-random-usage]  a seed
    operator = CALLED[number % len(CALLED)]
    example = choose.choice([e for e in examples_of(operator) if not operator.at(e.opset).removed])
    inputs, attributes, changes = list(example.inputs), dict(example.attributes), list[str]()
    for _ in range(choose.choice((1, 1, 2))):
        changes.append(choose.choice(CHANGES)(choose, inputs, attributes))
    changed = Example(example.opset, *inputs, outputs=example.outputs, types=example.types, **attributes)
    model, feeds, how = _model(choose, operator, changed)
    name = f"{number} {operator.domain}.{operator.name}-{example.opset}: {', '.join([*changes, how])}"
    return Awkward(name, model, feeds, _scale(operator, inputs))


def _scale(operator: Operator, inputs: list[Any]) -> float | None:
    """Return what the rounding of the results is proportional to, None if their values are open."""
    if operator.random:
        return None
    if operator.name not in SPREAD:
        return 0.0
    floats = [inputs[i].astype(np.float64) for i in _arrays(inputs) if inputs[i].dtype.kind in "fV"]
    largest = max((float(np.abs(x).max(initial=0)) for x in floats), default=0.0)
    return largest if largest < SPREAD[operator.name] else None


SPREAD = {"ConvTranspose": 1e19, "DFT": 1e19, "ReduceProd": 2.0, "STFT": 1e19}
"""Operators of whose results the order of steps decides which are infinite or NaN, where numbers are this large.

docs/running.md describes it.
"""

CALLED = tuple(o for o in OPERATORS if any(not o.at(e.opset).removed for e in examples_of(o)))
"""The operators that a run admits."""


# ---------------------------------------------------------------- changes


def _arrays(inputs: list[Any]) -> list[int]:
    return [i for i, x in enumerate(inputs) if isinstance(x, np.ndarray)]


def _one_size(choose: random.Random, inputs: list[Any], _: dict[str, Any]) -> str:
    """Change the size of one axis of one operand."""
    wide = [i for i in _arrays(inputs) if inputs[i].ndim]
    if not wide:
        return "unchanged"
    place = choose.choice(wide)
    x = inputs[place]
    axis = choose.randrange(x.ndim)
    size = choose.choice((0, 1, x.shape[axis] - 1, x.shape[axis] + 1, 2 * x.shape[axis] + 1))
    inputs[place] = _with_size(x, axis, max(size, 0))
    return f"input {place} is {list(inputs[place].shape)}"


def _every_size(choose: random.Random, inputs: list[Any], _: dict[str, Any]) -> str:
    """Change one size wherever it is the size of an axis, which often leaves a call valid."""
    sizes = sorted({d for i in _arrays(inputs) for d in inputs[i].shape})
    if not sizes:
        return "unchanged"
    old, new = choose.choice(sizes), choose.choice((0, 1, 2, 5, 17))
    for i in _arrays(inputs):
        for axis, size in enumerate(inputs[i].shape):
            if size == old:
                inputs[i] = _with_size(inputs[i], axis, new)
    return f"sizes {old} are {new}"


def _with_size(x: np.ndarray, axis: int, size: int) -> np.ndarray:
    if size and not x.size:
        return np.zeros([size if i == axis else d for i, d in enumerate(x.shape)]).astype(x.dtype)
    if x.size // max(x.shape[axis], 1) * size > MOST_ELEMENTS:
        return x
    return np.take(x, np.arange(size) % max(x.shape[axis], 1), axis)


def _rank(choose: random.Random, inputs: list[Any], _: dict[str, Any]) -> str:
    """Add or remove an axis of one operand."""
    if not _arrays(inputs):
        return "unchanged"
    place = choose.choice(_arrays(inputs))
    x = inputs[place]
    forms = [x[None], x[..., None], np.stack([x, x])]
    forms += [x[0], x[..., 0]] if x.ndim and x.size else []
    inputs[place] = np.asarray(choose.choice(forms))
    return f"input {place} is {list(inputs[place].shape)}"


def _contents(choose: random.Random, inputs: list[Any], _: dict[str, Any]) -> str:
    """Set one element of an operand, or all of them, to an odd number."""
    full = [i for i in _arrays(inputs) if inputs[i].size]
    if not full:
        return "unchanged"
    place = choose.choice(full)
    x = inputs[place].copy()
    odd, several = _odd(choose, x.dtype), choose.random() < 0.3
    flat = x.reshape(-1)
    flat[slice(None) if several else choose.randrange(x.size)] = odd
    inputs[place] = x
    return f"{'elements' if several else 'an element'} of input {place} {odd!r}"


def _odd(choose: random.Random, dtype: np.dtype) -> Any:
    if dtype.kind == "O":
        return choose.choice(TEXTS)
    if dtype.kind == "b":
        return choose.random() < 0.5
    kind = element(dtype)
    if not kind.is_integer:
        with np.errstate(all="ignore"):
            return np.array(choose.choice(FLOATS)).astype(dtype)[()]
    low, high = (
        (-(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1) if kind.is_signed else (0, (1 << kind.bits) - 1)
    )
    return np.array(min(max(choose.choice(INTEGERS), low), high)).astype(dtype)[()]


def _attribute(choose: random.Random, _: list[Any], attributes: dict[str, Any]) -> str:
    """Change a number, the length of a list, or an element of a tensor among the attributes."""
    names = [n for n, x in attributes.items() if isinstance(x, (int, float, list, tuple, np.ndarray))]
    if not names:
        return "unchanged"
    name = choose.choice(names)
    attributes[name] = _changed(choose, attributes[name])
    return f"{name} {str(attributes[name])[:60]}"


def _changed(choose: random.Random, x: Any) -> Any:
    if isinstance(x, np.ndarray):
        one = [x]
        choose.choice((_contents, _one_size))(choose, one, {})
        return one[0]
    if isinstance(x, (list, tuple)):
        items = [*x]
        if not items or choose.random() < 0.25:
            return choose.choice((items[:-1], [*items, *items[:1]], [*items, *items]))
        place = choose.randrange(len(items))
        items[place] = _changed(choose, items[place])
        return items
    if isinstance(x, (bool, int)):
        return choose.choice(INTEGERS)
    return float(choose.choice(FLOATS)) if isinstance(x, float) else x


CHANGES: tuple[Callable[[random.Random, list[Any], dict[str, Any]], str], ...] = (
    _one_size, _every_size, _every_size, _rank, _contents, _contents, _attribute, _attribute,
)  # fmt: skip


# ---------------------------------------------------------------- models


def _model(choose: random.Random, operator: Operator, example: Example) -> tuple[Model, dict[str, Any], str]:
    opset = NEWEST if operator.domain else example.opset
    b = Builder(opset, opsets={operator.domain: example.opset}, check=False)
    operands, feeds, hows = list[Value | None](), dict[str, Any](), list[str]()
    for place, x in enumerate(example.inputs):
        declared = example.types[place] if example.types else None
        if x is None and declared is None:
            operands.append(None)
            continue
        if isinstance(x, np.ndarray) and choose.random() < 0.25:
            hows.append(f"input {place} constant")
            operands.append(b.initializer(f"i{place}", x))
            continue
        kind = declared or type_of(x)
        if isinstance(kind, TensorType) and choose.random() < 0.5:
            kind = TensorType(kind.element)
        value = b.input(f"i{place}", kind)
        feeds[f"i{place}"] = _stored(choose, x)
        if opset >= READERS and isinstance(x, np.ndarray) and x.ndim and choose.random() < 0.3:
            hows.append(f"input {place} computed")
            value = b.Transpose(b.Transpose(value, perm=[*range(x.ndim)][::-1]), perm=[*range(x.ndim)][::-1])
            value = b.Where(b.initializer(f"all{place}", np.ones((), np.bool_)), value, value)
        operands.append(value)
    version = operator.at(example.opset)
    results = b.op(
        operator.name,
        *operands,
        outputs=example.outputs,
        domain=operator.domain,
        **attributes_of(version, example),
    )
    read, reader = choose.choice(READS if opset >= READERS else READS[:2])
    for place, value in enumerate(results if isinstance(results, tuple) else (results,)):
        if value is not None:
            b.output(reader(b, value), f"o{place}")
    return Model(b.graph, b.opsets, minimum_ir(max(opset, NEWEST))), feeds, ", ".join([*hows, read])


def _stored(choose: random.Random, x: Any) -> Any:
    """Return a feed with the same elements, sometimes in another order in memory."""
    if not isinstance(x, np.ndarray) or not x.ndim:
        return x
    order = choose.choice(("same", "same", "turned", "spread", "backwards"))
    if order == "turned":
        return np.asfortranarray(x)
    if order == "spread":
        wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
        wide[..., ::2] = x
        return wide[..., ::2]
    return x[::-1].copy()[::-1] if order == "backwards" else x


def _ints(b: Builder, *numbers: int) -> Value:
    return b.Constant(value_ints=list(numbers))


READS: tuple[tuple[str, Callable[[Builder, Value], Value]], ...] = (
    ("read completely", lambda _, x: x),
    ("read for its shape", lambda b, x: b.Shape(x)),
    ("read completely", lambda _, x: x),
    ("first row", lambda b, x: b.Slice(x, _ints(b, 0), _ints(b, 1), _ints(b, 0))),
    ("no row", lambda b, x: b.Slice(x, _ints(b, 0), _ints(b, 0), _ints(b, 0))),
    ("rows backwards", lambda b, x: b.Slice(x, _ints(b, -1), _ints(b, -(2**63)), _ints(b, 0), _ints(b, -2))),
    ("last column", lambda b, x: b.Gather(x, _ints(b, -1), axis=-1)),
    ("transposed", lambda b, x: b.Transpose(x)),
    ("joined", lambda b, x: b.Concat(x, x, axis=-1)),
    ("flat", lambda b, x: b.Reshape(x, _ints(b, -1))),
)
