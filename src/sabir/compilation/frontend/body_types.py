"""Type inference of a subgraph from the types of its inputs and captures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import ACCIDENTS, SabirError, check_time
from sabir.compilation.frontend.prepare import Prepared, fold
from sabir.elements import element
from sabir.evaluation import CallBinder
from sabir.ir import Expr, TensorType, symbol
from sabir.opsets.families.shapes import contents
from sabir.scheduling import OperatorCall, ScheduledSubgraph
from sabir.schema import Call, as_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.ir import Array, Type
    from sabir.scheduling import Plan, Program

MOST_NESTED = 6
"""The subgraphs around a subgraph, at most: a loop infers the types of its body several times."""
_FEW = 64  # elements of a constant whose contents become a part of its type


def prepare_body(
    program: Program,
    plan: Plan,
    kinds: Mapping[int, Type | None],
    captured: Mapping[int, Array] | None = None,
    depth: int = 0,
) -> Prepared:
    """Return a subgraph with inferred types; `kinds` are those of its inputs and captures, by slot.

    `captured` are constants of the enclosing program, by slot. `depth` is how many calls are around it, of
    which at most `MOST_NESTED` have types.
    """
    arrays = {slot: tensor.array() for slot, tensor in program.constants.items() if slot not in kinds}
    arrays |= captured or {}
    types: list[Type | None] = [None] * program.size
    for slot, kind in kinds.items():
        types[slot] = kind
    for slot, array in arrays.items():
        types[slot] = _constant_type(array)
    unknown: set[str] = set()
    prefix, binder = _unused_prefix(kinds.values()), CallBinder(strict=False)
    for place, _ in plan.steps:
        check_time()
        call = program.calls[place]
        if not isinstance(call, OperatorCall):
            continue
        fold(call, arrays, binder)
        found = () if all(s in arrays for s in call.outputs if s) else _inferred(call, types, depth)
        for number, (slot, kind) in enumerate(zip(call.outputs, found, strict=False)):
            types[slot] = _settled(kind, f"{prefix}{place}.{number}", unknown)
            if (array := _array_of(kind)) is not None and not call.captures:
                arrays[slot] = array
        for slot in call.outputs:
            if slot in arrays:
                types[slot] = _constant_type(arrays[slot])
    return Prepared(program, plan, types, arrays, tuple(kinds), (), frozenset(unknown))


class _TypedSubgraph:
    """A subgraph of a call as a function of types, see `sabir.opsets.typing.Subgraph`."""

    def __init__(self, subgraph: ScheduledSubgraph, types: Sequence[Type | None], depth: int) -> None:
        self._depth = depth
        self._program, self._plan = subgraph.program, subgraph.plan
        self._captured = [types[slot] for slot in subgraph.captured]
        self.inputs = tuple(v.type for v in self._program.inputs)
        self.outputs = tuple(v.type for v in self._program.outputs)

    def __call__(self, *inputs: Type | None) -> tuple[Type | None, ...]:
        slots = (*(v.slot for v in self._program.inputs), *self._plan.captures)
        kinds = dict(zip(slots, (*inputs, *self._captured), strict=True))
        prepared = prepare_body(self._program, self._plan, kinds, depth=self._depth)
        return tuple(_without(prepared.types[slot], prepared.unknown) for slot in self._plan.results)

    typed = __call__


def _constant_type(array: Array) -> TensorType:
    """Return the type of a constant, with its contents if they are few."""
    known = contents.of_array(array) if array.size <= _FEW else None
    return TensorType(element(array.dtype), tuple(array.shape), known)


def _array_of(kind: Type | None) -> Array | None:
    """Return the contents of a type as an array, if all are numbers."""
    if not isinstance(kind, TensorType) or kind.known is None or kind.shape is None:
        return None
    shape = [d for d in kind.shape if isinstance(d, int)]
    if len(shape) < len(kind.shape) or not all(isinstance(item, (bool, int, float)) for item in kind.known):
        return None
    return np.array(kind.known, kind.element.dtype).reshape(shape)


def _inferred(call: OperatorCall, types: Sequence[Type | None], depth: int) -> tuple[Type | None, ...]:
    operands = [types[slot] if slot else None for slot in call.inputs]
    if any(kind is None for kind, slot in zip(operands, call.inputs, strict=True) if slot):
        return ()
    if call.version.find("infer") is None or (_has_subgraphs(call) and depth >= MOST_NESTED):
        return ()
    binding = call.version.binding("infer")
    attributes = {name: _typed(value, types, depth + 1) for name, value in call.attributes.items()}
    try:
        return as_results(binding(operands, binding.fill(attributes), Call(call.named, call.version.since)))
    except (SabirError, *ACCIDENTS):
        return ()


def _has_subgraphs(call: OperatorCall) -> bool:
    return any(isinstance(value, ScheduledSubgraph) for value in call.attributes.values())


def _typed(value: Any, types: Sequence[Type | None], depth: int) -> Any:
    """Return the value of an attribute, a subgraph as a function of types."""
    return _TypedSubgraph(value, types, depth) if isinstance(value, ScheduledSubgraph) else value


def _unused_prefix(kinds: Iterable[Type | None]) -> str:
    """Return the beginning of names of symbols that no given type has: bodies may be nested."""
    used = [
        s
        for t in kinds
        if isinstance(t, TensorType)
        for d in t.shape or ()
        if isinstance(d, Expr)
        for s in d.symbols
    ]
    prefix = "b"
    while any(name.startswith(prefix) for name in used):
        prefix += "b"
    return prefix


def _settled(kind: Type | None, name: str, unknown: set[str]) -> Type | None:
    """Return a type with a new symbol for each unknown size; the symbols are added to `unknown`."""
    if not isinstance(kind, TensorType) or kind.shape is None:
        return kind
    unknown.update(f"{name}.{axis}" for axis, d in enumerate(kind.shape) if d is None)
    shape = tuple(symbol(f"{name}.{axis}") if d is None else d for axis, d in enumerate(kind.shape))
    return TensorType(kind.element, shape, kind.known)


def _without(kind: Type | None, unknown: frozenset[str]) -> Type | None:
    """Return a type in which sizes are unknown that depend on unknown symbols."""
    if not isinstance(kind, TensorType) or kind.shape is None:
        return kind

    def is_open(size: object) -> bool:
        return isinstance(size, Expr) and not size.symbols.isdisjoint(unknown)

    shape = tuple(None if is_open(d) else d for d in kind.shape)
    known = kind.known and tuple(None if is_open(item) else item for item in kind.known)
    return TensorType(kind.element, shape, known)
