"""Lowering: each call of a program becomes tensor expressions, or a call that is evaluated on arrays."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sabir.base import ACCIDENTS, SabirError, check_time
from sabir.compilation.faults import report_fault
from sabir.compilation.frontend.body_types import prepare_body
from sabir.compilation.frontend.control import CallFacts, Inner, controlled
from sabir.compilation.frontend.patterns import Guard
from sabir.compilation.frontend.unlowered import UnloweredCall
from sabir.elements import FLOAT, element
from sabir.ir import MAX_RANK, Expr, TensorType, above_one, judging, symbol
from sabir.loops import (
    ELEMENTS,
    FLOATS,
    HALVES,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    Assumptions,
    Branch,
    Contents,
    Expression,
    Iterate,
    IterateSlices,
    Lowering,
    NotLowered,
    Stored,
    Widened,
    assuming,
    cast,
    equal,
    expand,
    narrow,
    number,
    same_shape,
    shape_of,
    tentative,
)
from sabir.scheduling import ABSENT, OperatorCall, ScheduledSubgraph
from sabir.schema import as_results

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.compilation.frontend.control import LoweredControl
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.ir import Array, Dim, Known, Type
    from sabir.loops import Size, Sizes


KEYS = -1  # the slot of the tensor with the keys of random numbers, which belongs to no value
_KEY = 2  # words of a key
_MOST_KNOWN = 1024  # elements of a constant whose contents lowerings see


@dataclass(slots=True)
class Lowered:
    """The lowered calls of a plan: expressions by slot, and evaluated calls by their index in the program.

    `expressions` has each slot whose tensor kernels support: its element type, and a known rank. `lowered`
    are the indices of the calls that became expressions. `aliases` maps symbols that inference introduced for
    unknown sizes to the sizes that lowering computed. `controls` has the control flow of calls in
    `evaluated`: a backend that supports it does not evaluate them. `tables` are arrays that lowerings
    created; a plan gives them slots after those of all values. `random` numbers the calls that may draw
    random numbers, by identity: each has a key in `keys`. `depth` is how many calls are around a subgraph.
    """

    prepared: Prepared
    expressions: dict[int, Expression] = field(default_factory=dict[int, Expression])
    evaluated: dict[int, UnloweredCall] = field(default_factory=dict[int, UnloweredCall])
    lowered: list[int] = field(default_factory=list[int])
    assumptions: Assumptions = field(default_factory=lambda: Assumptions({}))
    aliases: dict[str, Size] = field(default_factory=dict[str, "Size"])
    controls: dict[int, LoweredControl] = field(default_factory=dict[int, "LoweredControl"])
    tables: dict[int, Array] = field(default_factory=dict[int, "Array"])
    random: dict[int, int] = field(default_factory=dict[int, int])
    keys: Stored = field(default_factory=lambda: Stored("uint32", (0,), KEYS))
    depth: int = 0

    @property
    def guards(self) -> tuple[Guard, ...]:
        """The assumptions of the expressions about the sizes of feeds."""
        return (
            *(Guard("equal", m, (n,)) for m, n in self.assumptions.equal),
            *(Guard("max", m, (n,)) for m, n in self.assumptions.ordered),
        )

    def rewrite(self, passes: Callable[[Mapping[int, Expression]], dict[int, Expression]]) -> None:
        """Rewrite the expressions by passes, which may add assumptions about sizes."""
        with assuming(self.assumptions):
            self.expressions = passes(self.expressions)
        for control in self.controls.values():
            for inner in control.inners:
                inner.lowered.rewrite(passes)

    def note_random(self) -> None:
        """Number the calls that may draw random numbers: each has its own key."""
        calls = (self.prepared.program.calls[place] for place, _ in self.prepared.plan.steps)
        found = [c for c in calls if isinstance(c, OperatorCall) and c.version.operator.random]
        self.random = {id(call): index for index, call in enumerate(found)}
        self.keys = Stored("uint32", (_KEY * len(self.random),), KEYS)

    def key_of(self, call: OperatorCall) -> Expression | None:
        """Return the key of a call; None for a call that draws nothing, or in a subgraph."""
        index = self.random.get(id(call))
        return None if index is None else narrow(self.keys, 0, _KEY * index, _KEY)

    def settled(self) -> Prepared:
        """Return the program with the sizes that lowering computed, its guards and its tables."""
        types = [
            _with_aliases(self, t) if isinstance(t, TensorType) and t.shape is not None else t
            for t in self.prepared.types
        ]
        constants, guards = self.prepared.constants | self.tables, (*self.prepared.guards, *self.guards)
        return self.prepared._replace(types=types, guards=guards, constants=constants)


def lower(prepared: Prepared, sizes: Mapping[str, int]) -> Lowered:
    """Return the lowered plan of a program.

    `sizes` are the sizes of the current feeds by symbol. If a kernel needs two sizes to be equal, or in an
    order, and they are for these feeds, lowering assumes it: `Lowered.guards` has the assumptions.
    """
    found = Lowered(prepared, assumptions=Assumptions(sizes))
    with assuming(found.assumptions):
        _lower_calls(found)
    return found


def _lower_calls(found: Lowered) -> None:
    prepared = found.prepared
    found.note_random()
    for slot in prepared.inputs:
        _store(found, slot)
    for slot in prepared.constants:
        if slot < prepared.program.size:  # later slots are tables of an earlier lowering
            _store(found, slot)
    for place, _ in prepared.plan.steps:
        check_time()
        _lower_call(found, place)


def _lower_call(found: Lowered, place: int) -> None:
    prepared = found.prepared
    call = prepared.program.calls[place]
    outputs = [slot for slot in call.outputs if slot != ABSENT]
    if all(slot in prepared.constants for slot in outputs):
        _note_origin(found, call)
        return
    if all(_is_known(found, _type(found, slot)) for slot in outputs):
        for slot in outputs:
            _store(found, slot)
        return
    reason = "a target without control flow evaluates it"
    try:
        with tentative():
            results = _expressions(found, call)
    except NotLowered as refusal:
        reason = str(refusal)
    except (SabirError, *ACCIDENTS) as error:
        report_fault(error, "lowering", call.label, result="the interpreter evaluates it")
        reason = f"{type(error).__name__}: {error}"
    else:
        if isinstance(results, tuple):
            found.lowered.append(place)
            found.expressions.update({
                slot: x for slot, x in zip(call.outputs, results, strict=False) if slot != ABSENT
            })
            return
        found.controls[place] = results
    reads = tuple(dict.fromkeys(s for s in (*call.inputs, *call.captures) if s != ABSENT))
    found.evaluated[place] = UnloweredCall(place, reads, reason)
    for slot in outputs:
        _store(found, slot)


def _note_origin(found: Lowered, call: Any) -> None:
    """Record how the folded results of a call are computed, if they are larger than its operands, or views.

    A kernel may read the operands instead: quantized weights stay small. Results that are views become view
    expressions: a product by transposed weights then equals the product of another call by the same weights.
    """
    constants, expressions = found.prepared.constants, found.expressions
    sizes = [
        sum(constants[slot].nbytes for slot in slots if slot in constants)
        for slots in (call.inputs, call.outputs)
    ]
    read = [expressions.get(slot) for slot in call.inputs]
    has_origin = any(isinstance(x, Stored) and x.origin is not None for x in read)
    views = not has_origin and sizes[1] <= sizes[0] and _are_views(found, call)
    if sizes[1] <= sizes[0] and not has_origin and not views:
        return
    try:
        results = _expressions(found, call)
    except (SabirError, *ACCIDENTS) as error:
        report_fault(error, "lowering", call.label, result="its constant results are read instead")
        return
    for slot, x in zip(call.outputs, results if isinstance(results, tuple) else (), strict=False):
        stored = expressions.get(slot)
        if isinstance(stored, Stored) and not isinstance(x, Stored):
            expressions[slot] = x if views else replace(stored, origin=x)


def _are_views(found: Lowered, call: Any) -> bool:
    """Return whether the results of a call are large, and views of the memory of its first operand."""
    constants = found.prepared.constants
    source = constants.get(call.inputs[0]) if call.inputs else None
    results = [constants[slot] for slot in call.outputs if slot != ABSENT]
    return source is not None and all(
        x.size > _MOST_KNOWN and np.may_share_memory(x, source) for x in results
    )


def _expressions(found: Lowered, call: Any) -> tuple[Expression, ...] | LoweredControl:
    """Return the results of a call, or its control flow; raises NotLowered."""
    if not isinstance(call, OperatorCall) or call.problem:
        raise NotLowered("it is a call of a function")
    if any(slot != ABSENT and _type(found, slot) is None for slot in call.outputs):
        raise NotLowered("inference finds no types for it: it may be invalid")
    if call.version.find("lower") is None:
        raise NotLowered(call.version.why_absent("lower") or f"{call.version} has no kernel yet")
    types = tuple(None if s == ABSENT else _type(found, s) for s in call.outputs)
    operands = [None if slot == ABSENT else _operand(found, slot) for slot in call.inputs]
    try:
        results = _lowered(found, call, operands, types)
    except Widened:
        try:
            results = _widened(found, call, operands, types)
        except Widened as refusal:
            raise NotLowered(f"{refusal}, and the call needs that type itself") from refusal
    if len(results) == 1 and isinstance(results[0], (Branch, Iterate, IterateSlices)):
        return _controlled(found, call, results[0], operands, types)
    if len(results) < len(call.outputs):
        raise NotLowered(f"no kernel computes output {len(results)}")
    for slot, kind, x in zip(call.outputs, types, results, strict=False):
        if slot != ABSENT:
            _check(found, kind, x)
    _check_sizes(found, operands, [x for s, x in zip(call.outputs, results, strict=False) if s != ABSENT])
    return results


def _attributes(found: Lowered, call: OperatorCall) -> dict[str, Any]:
    """Return the attributes of a call; subgraphs become functions of expressions."""
    return {
        name: _Subgraph(found, value) if isinstance(value, ScheduledSubgraph) else value
        for name, value in call.attributes.items()
    }


def _controlled(
    found: Lowered, call: OperatorCall, control: Branch | Iterate | IterateSlices,
    operands: Sequence[Expression | None], types: Sequence[Type | None],
) -> LoweredControl:  # fmt: skip
    def slot_of(x: Expression) -> int:
        return next(slot for slot, o in zip(call.inputs, operands, strict=True) if o is x)

    def inner(subgraph: Any, kinds: Sequence[TensorType]) -> Inner:
        return subgraph.inner(kinds)

    def check(kind: Type, name: str, shape: Sizes) -> None:
        _check(found, kind, Stored(name, shape))

    def is_open(size: Size) -> bool:
        return isinstance(size, Expr) and not size.symbols.isdisjoint(found.prepared.unknown)

    return controlled(control, CallFacts(types, slot_of, inner, check, is_open))


class _Subgraph:
    """A subgraph of a call as a function of expressions, see `LoweredSubgraph`."""

    def __init__(self, found: Lowered, subgraph: ScheduledSubgraph) -> None:
        self._found, self._subgraph, self._depth = found, subgraph, found.depth + 1
        self._program, self._plan = subgraph.program, subgraph.plan
        self.inputs = tuple(v.type for v in self._program.inputs)

    @property
    def captured(self) -> tuple[Expression, ...]:
        """The outer values that it reads; raises NotLowered for one that kernels cannot read."""
        return tuple(_operand(self._found, slot) for slot in self._subgraph.captured)

    def inner(self, kinds: Sequence[TensorType]) -> Inner:
        """Return it lowered on its own, for inputs of these types; raises NotLowered."""
        constants = self._found.prepared.constants
        captures = tuple(zip(self._subgraph.captured, self._plan.captures, strict=True))
        for outer, _ in captures:
            _operand(self._found, outer)  # kernels can read it
        fixed = {own: constants[slot] for slot, own in captures if slot in constants}
        read = tuple(pair for pair in captures if pair[1] not in fixed)
        inputs = self._input_slots(len(kinds))
        slots = (*inputs, *(own for _, own in read))
        varying = (*kinds, *(_type(self._found, slot) for slot, _ in read))
        prepared = self._prepared(dict(zip(slots, varying, strict=True)), fixed)
        found = Lowered(prepared, assumptions=self._found.assumptions, depth=self._depth)
        _lower_calls(found)
        self._require_native(found)
        results = range(self._program.size, self._program.size + len(self._plan.results))
        for own, slot in zip(results, self._plan.results, strict=True):
            found.expressions[own] = _operand(found, slot)
        self._check_declared([found.expressions[slot] for slot in (*inputs, *results)])
        return Inner(found, inputs, read, tuple(results), self._plan.cost)

    def _check_declared(self, found: Sequence[Expression]) -> None:
        """Raise NotLowered if an input or a result contradicts its declared type: the interpreter warns."""
        named: dict[Expr, Size] = {symbol(name): symbol(name) for name in self._found.assumptions.symbols}
        for x, value in zip(found, (*self._program.inputs, *self._program.outputs), strict=True):
            kind = value.type
            if kind is None:
                continue
            if not isinstance(kind, TensorType) or kind.element.name not in {x.element, ""}:
                raise NotLowered(f"the subgraph declares {value.name} as {kind}")
            if kind.shape is not None and not (
                len(kind.shape) == x.rank and all(map(partial(_fits, named), kind.shape, x.shape))
            ):
                raise NotLowered(f"the subgraph declares {value.name} as {kind}")

    def _input_slots(self, count: int) -> tuple[int, ...]:
        inputs = tuple(v.slot for v in self._program.inputs)
        if count != len(inputs):
            raise NotLowered(f"the body takes {len(inputs)} inputs")
        return inputs

    def _prepared(
        self, kinds: Mapping[int, Type | None], fixed: Mapping[int, Array] | None = None
    ) -> Prepared:
        """Return it with inferred types; what inference assumes of sizes, the plan assumes."""
        assumptions = self._found.assumptions

        def judge(op: Literal["equal", "max"], a: Size, b: Size) -> bool:
            if assumptions.number(a) is None or assumptions.number(b) is None:
                return True
            return assumptions.holds(a, b) if op == "equal" else assumptions.in_order(a, b)

        with above_one(assumptions.symbols), judging(judge):
            return prepare_body(self._program, self._plan, kinds, fixed, self._depth)

    def _require_native(self, inner: Lowered) -> None:
        """Raise NotLowered if it has calls without kernels, draws random numbers, or decides sizes."""
        for place, call in inner.evaluated.items():
            if place not in inner.controls:
                raise NotLowered(f"{self._program.calls[place].label}: {call.reason}")
        if inner.random:
            raise NotLowered("the body draws random numbers in each run")
        for x in inner.expressions.values():
            if any(isinstance(d, Expr) and d.symbols & inner.prepared.unknown for d in x.shape):
                raise NotLowered("a size within the body is known in a run only")

    def __call__(self, *operands: Expression) -> tuple[Expression, ...]:
        slots = (*self._input_slots(len(operands)), *self._plan.captures)
        kinds = [TensorType(element(x.element), x.shape) for x in operands]
        kinds += [_type(self._found, slot) for slot in self._subgraph.captured]
        prepared = self._prepared(dict(zip(slots, kinds, strict=True)))
        inner = Lowered(
            prepared,
            dict(zip(slots, (*operands, *self.captured), strict=True)),
            assumptions=self._found.assumptions,
            depth=self._depth,
        )
        for slot, array in prepared.constants.items():
            if slot not in inner.expressions and element(array.dtype).name in ELEMENTS:
                inner.expressions[slot] = _constant(array)
        for place, _ in self._plan.steps:
            _lower_call(inner, place)
            if inner.evaluated:
                (evaluated,) = inner.evaluated.values()
                raise NotLowered(f"{prepared.program.calls[place].label}: {evaluated.reason}")
        for x in inner.expressions.values():
            if any(isinstance(d, Expr) and d.symbols & prepared.unknown for d in x.shape):
                raise NotLowered("a size within the body is known in a run only")
        results = tuple(_operand(inner, slot) for slot in self._plan.results)
        self._check_declared((*operands, *results))
        return results


def _fits(named: dict[Expr, Size], declared: Dim, size: Size) -> bool:
    """Return whether a size is the declared one; `named` has the sizes of declared symbols so far."""
    if declared is None or (isinstance(declared, int) and declared < 0):
        return True  # in files of several tools a number below 0 means an unknown dimension
    return equal(declared if isinstance(declared, int) else named.setdefault(declared, size), size)


def _constant(array: Array) -> Expression:
    """Return a constant of a subgraph with its contents; a single number needs no memory."""
    name = element(array.dtype).name
    if array.size == 1 and name in FLOATS:
        return expand(number(name, array.item()), array.shape)
    known = tuple(array.ravel().tolist()) if array.size <= _MOST_KNOWN else None
    return Stored(name, tuple(array.shape), 0, known, array, contents=Contents(array))


def _lowered(
    found: Lowered, call: OperatorCall, operands: Sequence[Expression | None], types: tuple[Type | None, ...]
) -> tuple[Expression, ...]:
    binding = call.version.binding("lower")
    facts: Any = Lowering(call.named, call.version.since, types, found.key_of(call))
    return as_results(binding(operands, binding.fill(_attributes(found, call)), facts))


def _widened(
    found: Lowered, call: OperatorCall, operands: Sequence[Expression | None], types: tuple[Type | None, ...]
) -> tuple[Expression, ...]:
    """Return the results of a call on halves that is computed in float; each result is rounded once."""
    narrow = HALVES | SMALL_FLOATS
    wide = [cast(x, "float") if x is not None and x.element in narrow else x for x in operands]
    kinds = [t.element.name if isinstance(t, TensorType) else "" for t in types]
    known = tuple(
        TensorType(FLOAT, t.shape) if isinstance(t, TensorType) and kind in HALVES else t
        for t, kind in zip(types, kinds, strict=True)
    )
    results = _lowered(found, call, wide, known)
    return tuple(
        cast(x, kind) if kind in HALVES and x.element == "float" else x
        for x, kind in zip(results, [*kinds, *[""] * len(results)], strict=False)
    )


def _type(found: Lowered, slot: int) -> Type | None:
    """Return the inferred type of a value, with the sizes that lowering has computed so far."""
    kind = found.prepared.types[slot]
    if not found.aliases or not isinstance(kind, TensorType) or kind.shape is None:
        return kind
    return _with_aliases(found, kind)


def _with_aliases(found: Lowered, kind: TensorType) -> TensorType:
    shape = tuple(d.substitute(found.aliases) if isinstance(d, Expr) else d for d in kind.shape or ())
    known = kind.known and tuple(
        i.substitute(found.aliases) if isinstance(i, Expr) else i for i in kind.known
    )
    return TensorType(kind.element, shape, known)


def _operand(found: Lowered, slot: int) -> Expression:
    expression = found.expressions.get(slot)
    if expression is None:
        kind = found.prepared.types[slot]
        if isinstance(kind, TensorType) and kind.element.name in ELEMENTS:
            raise NotLowered(f"of an operand, {kind}, the rank is known at run time only")
        raise NotLowered("the type of an operand is unknown" if kind is None else f"no kernel reads {kind}")
    return expression


def _check(found: Lowered, kind: Type | None, x: object) -> None:
    """Raise NotLowered if an expression contradicts the inferred type, or a size may differ from it."""
    if not isinstance(x, Expression):
        raise NotLowered("no kernel computes an output")
    if not isinstance(kind, TensorType) or kind.element.name != x.element:
        raise NotLowered(f"an output is {kind}, and the kernel computes {x.element}")
    if len(kind.shape or ()) > MAX_RANK:
        raise NotLowered(f"an output has {len(kind.shape or ())} axes")
    shape = shape_of(kind)
    for inferred, size in zip(shape, x.shape, strict=False):
        if isinstance(inferred, Expr) and inferred != size and str(inferred) in found.prepared.unknown:
            found.aliases.setdefault(str(inferred), size)
    shape = shape_of(_with_aliases(found, kind))
    if not same_shape(shape, x.shape):
        raise NotLowered(f"an output is {kind}, and the kernel computes {list(map(str, x.shape))}")


def _check_sizes(
    found: Lowered, operands: Sequence[Expression | None], results: Sequence[Expression]
) -> None:
    """Raise NotLowered if only the evaluated call decides a size of the results."""
    shapes = [x.shape for x in operands if x is not None]
    decided = {s for shape in shapes for d in shape if isinstance(d, Expr) for s in d.symbols}
    for x in results:
        for size in x.shape:
            open_ = (size.symbols & found.prepared.unknown) - decided if isinstance(size, Expr) else ()
            if open_:
                raise NotLowered(f"the size {size} follows from no rule, so the call decides it")


def _store(found: Lowered, slot: int) -> None:
    """Record that the tensor of a slot is in memory, if kernels support its type."""
    kind = _type(found, slot)
    array = found.prepared.constants.get(slot)
    if array is not None and isinstance(kind, TensorType):
        kind = TensorType(kind.element, tuple(array.shape), kind.known)
    if not isinstance(kind, TensorType) or kind.element.name not in ELEMENTS or kind.shape is None:
        return
    if None in kind.shape or len(kind.shape) > MAX_RANK:
        return
    known = kind.known if array is None or kind.known is not None else _small_numbers(array)
    contents = None if array is None else Contents(array)
    found.expressions[slot] = Stored(kind.element.name, shape_of(kind), slot, known, contents=contents)


def _small_numbers(array: Array) -> Known | None:
    """Return the contents of a small constant of a type that numpy lacks, for example a zero point."""
    name = element(array.dtype).name
    if array.size > _MOST_KNOWN or name not in SMALL_INTEGERS | SMALL_FLOATS | HALVES:
        return None
    return tuple(array.astype(np.int64 if name in SMALL_INTEGERS else np.float64).ravel().tolist())


def _is_known(found: Lowered, kind: Type | None) -> bool:
    """Return whether all contents of a tensor are known, as numbers or symbolic sizes.

    An empty tensor has known contents; if only its call decides the sizes of its other axes, it is computed.
    """
    if not isinstance(kind, TensorType) or kind.known is None or kind.element.name not in ELEMENTS:
        return False
    if len(kind.shape or ()) > MAX_RANK:
        return False
    if any(isinstance(d, Expr) and d.symbols & found.prepared.unknown for d in kind.shape or ()):
        return False
    return all(isinstance(item, (int, float, bool, Expr)) for item in kind.known)
