"""Listings of a plan at each level: tensor expressions, loops, entries with their memory, code."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from sabir.compilation.backends.cpu.passes import PIPELINE
from sabir.compilation.backends.cpu.texts import text_of
from sabir.compilation.frontend.lowering import KEYS, lower
from sabir.compilation.fusion.origins import Origins
from sabir.compilation.inspect.explaining import kind_of, spec_text
from sabir.compilation.native import disassemble, optimized
from sabir.compilation.passes import run_pipeline
from sabir.compilation.plan.entries import Entry, Mismatch, StoredKernel
from sabir.compilation.plan.layout import plan_parts
from sabir.compilation.runtime.program import specs_of
from sabir.loops import Contract, Expression, Extent, Number, Stored, walk
from sabir.scheduling import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.native import Target
    from sabir.compilation.plan.entries import Buffer, EvaluatedEntry, KernelPlan
    from sabir.compilation.plan.layout import PartLayout, RunSizes

_INDENT = "  "
_NAMED = {"a_zero", "scale", "b_zero", "a_scale", "a_sums"}  # optional operands, listed with their names


class Listed(Protocol):
    """A program with a plan that can be listed."""

    kernels: int
    compiled: int
    plan: KernelPlan

    @property
    def threads(self) -> int:
        """The number of threads that run the plan."""
        ...

    @property
    def target(self) -> Target:
        """The processor that the plan is for."""
        ...

    @property
    def source(self) -> Prepared:
        """The program of the plan."""
        ...

    def layout(self, number: int, sizes: RunSizes, /) -> PartLayout:
        """Return the layout of a part of the plan for the sizes of a run."""
        ...


def _indented(text: str, depth: int = 1) -> Iterator[str]:
    for line in text.split("\n"):
        yield _INDENT * depth + line


# ---------------------------------------------------------------- tensor expressions


def _loops(program: Listed, sizes: RunSizes) -> Iterator[str]:
    """Return the lines with the tensor expressions of each node."""
    return _Expressions(lower(program.source, sizes.symbols)).lines()


class _Expressions:
    """The expressions of a program as text: an expression of a value has the value's name, others numbers."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered, self.origins = lowered, Origins(lowered)
        self.values = {v.slot: v.name for v in lowered.prepared.program.values}
        self.names: dict[Expression, str] = {}

    def lines(self) -> Iterator[str]:
        prepared = self.lowered.prepared
        inputs = [v.slot for v in prepared.program.inputs]
        constants = [s for s in prepared.program.constants if s not in inputs]
        for title, slots in (("inputs", inputs), ("constants", constants)):
            if slots:
                yield title
            for slot in slots:
                yield f"{_INDENT}{self.values.get(slot, f'%{slot}')}: {prepared.types[slot]}"
        for place, _ in prepared.plan.steps:
            yield prepared.program.calls[place].label
            yield from (_INDENT + line for line in self._call(place))

    def _call(self, place: int) -> Iterator[str]:
        lowered = self.lowered
        outputs = [slot for slot in lowered.prepared.program.calls[place].outputs if slot != ABSENT]
        if place in lowered.controls:
            for inner in lowered.controls[place].inners:
                yield f"the subgraph {inner.lowered.prepared.program.name}"
                yield from (_INDENT + line for line in _Expressions(inner.lowered).lines())
        elif place in lowered.evaluated:
            yield f"evaluated: {lowered.evaluated[place].reason}"
        elif place not in lowered.lowered:
            yield "known before a run"
        else:
            yield from self._results(place, outputs)

    def _results(self, place: int, outputs: Sequence[int]) -> Iterator[str]:
        results = [self.lowered.expressions[slot] for slot in outputs]
        chosen = {x: self.values.get(s, f"%{s}") for x, s in zip(results, outputs, strict=True)}
        for x in self.origins.made(place):
            if isinstance(x, (Number, Extent)) and x not in chosen:
                continue
            self.names[x] = chosen.get(x) or f"%{len(self.names)}"
            yield f"{self.names[x]}: {_type(x)} = {self._computed(x)}"
        for x, slot in zip(results, outputs, strict=True):
            name = self.values.get(slot, f"%{slot}")
            if self._name(x) != name:
                yield f"{name}: {_type(x)} = {self._name(x)}"

    def _name(self, x: Expression) -> str:
        found = self.names.get(x)
        if found is not None:
            return found
        if not isinstance(x, Stored):
            return self._computed(x)
        if x.slot == KEYS:
            return "keys"
        return self.values.get(x.slot, f"%{x.slot}") if x.array is None else f"table {_type(x)}"

    def _computed(self, x: Expression) -> str:
        match x:
            case Number():
                return f"{x.number!r}"
            case Extent():
                return f"size {x.size}"
            case _:
                return f"{getattr(x, 'op', type(x).__name__.lower())}({', '.join(self._arguments(x))})"

    def _arguments(self, x: Expression) -> Iterator[str]:
        for field in fields(x):
            value: Any = getattr(x, field.name)
            if field.name in {"element", "shape", "op"}:
                continue
            if isinstance(x, Contract) and not isinstance(value, Expression) and value == field.default:
                continue
            if isinstance(value, Expression):
                prefix = f"{field.name}=" if field.name in _NAMED else ""
                yield f"{prefix}{self._name(value)}"
            elif isinstance(value, tuple) and any(
                isinstance(v, Expression) for v in cast("tuple[Any, ...]", value)
            ):
                yield from map(self._name, cast("tuple[Expression, ...]", value))
            elif isinstance(value, tuple):
                yield f"{field.name}={_list(cast('tuple[Any, ...]', value))}"
            elif value is not False:
                yield f"{field.name}={value}"

    def rewritten(self, roots: Mapping[int, Expression]) -> Iterator[str]:
        """Yield the lines of expressions by slot, each expression once."""
        chosen = {x: self.values.get(slot, f"%{slot}") for slot, x in roots.items()}
        for x in walk.postorder(roots.values()):
            if isinstance(x, (Number, Extent, Stored)):
                continue
            self.names[x] = chosen.get(x) or f"%{len(self.names)}"
            yield f"{self.names[x]}: {_type(x)} = {self._computed(x)}"
        for slot, x in roots.items():
            name = self.values.get(slot, f"%{slot}")
            if self._name(x) != name:
                yield f"{name}: {_type(x)} = {self._name(x)}"


def after_pass(program: Listed, sizes: RunSizes, name: str, without: frozenset[str]) -> Iterator[str]:
    """Return the lines with the tensor expressions that a run needs, after the pass `name`.

    Passes in `without` are left out.
    """
    lowered = lower(program.source, sizes.symbols)
    texts = _Expressions(lowered)
    lowered.rewrite(partial(run_pipeline, passes=PIPELINE, without=without, until=name))
    found = lowered.expressions
    read = (slot for step in lowered.evaluated.values() for slot in step.reads)
    needed = dict.fromkeys([*read, *lowered.prepared.plan.results])
    return texts.rewritten({slot: found[slot] for slot in needed if slot in found})


def _type(x: Expression) -> str:
    return f"{x.element}{_list(x.shape)}"


def _list(items: Sequence[Any]) -> str:
    return f"[{','.join(map(str, items))}]"


# ---------------------------------------------------------------- kernels


def _numbered(plan: KernelPlan) -> Iterator[tuple[str, Entry | EvaluatedEntry]]:
    """Yield (heading, entry) of each entry; kernels are numbered from 1."""
    count = 0
    for entry in plan.entries:
        if isinstance(entry, Entry):
            count += 1
            yield f"{count} {kind_of(entry)}: {', '.join(entry.nodes)}", entry
        else:
            yield f"- evaluated: {entry.label}", entry


def _schedule(program: Listed, _: RunSizes) -> Iterator[str]:
    """Yield the lines with the kernels and their loops."""
    for entry in program.plan.setup:
        yield f"once {kind_of(entry)}: {', '.join(entry.nodes)}"
        yield from _indented(spec_text(entry))
    for line, entry in _numbered(program.plan):
        yield line
        yield from _indented(spec_text(entry) if isinstance(entry, Entry) else entry.reason)


# ---------------------------------------------------------------- memory


def _plan(program: Listed, sizes: RunSizes) -> Iterator[str]:
    """Yield the lines with the entries and their memory."""
    yield "sizes: " + (
        ", ".join(f"{name} = {size}" for name, size in sorted(sizes.symbols.items())) or "none"
    )
    names = {v.slot: v.name for v in program.source.program.values}
    for entry in program.plan.setup:
        yield f"once {kind_of(entry)}: {', '.join(entry.nodes)}"
        yield from _memory(entry, {}, names, sizes)
    lines = list(_numbered(program.plan))
    for number, part in enumerate(plan_parts(program.plan, frozenset(sizes.symbols))):
        layout = _layout(program, number, sizes)
        yield f"part {number + 1}: {_part(layout)}"
        for line, entry in lines[part.first : part.last]:
            yield line
            yield from _memory(entry, {} if layout is None else layout.offsets, names, sizes)


def _layout(program: Listed, number: int, sizes: RunSizes) -> PartLayout | None:
    """Return the layout of a part; None if an evaluated call decides its sizes."""
    try:
        return program.layout(number, sizes)
    except Mismatch as error:
        if isinstance(error.__cause__, KeyError):
            return None
        raise


def _part(layout: PartLayout | None) -> str:
    if layout is None:
        return "laid out in a run, when an evaluated call has decided its sizes"
    return f"arena {layout.arena_bytes} bytes, scratch {layout.scratch_bytes} bytes a thread"


def _memory(
    entry: Entry | EvaluatedEntry, offsets: dict[Buffer, int], names: dict[int, str], sizes: RunSizes
) -> Iterator[str]:
    if isinstance(entry, Entry):
        buffers = entry.buffers
        yield f"{_INDENT}flops {_amount(entry.flops, sizes)}"
    else:
        buffers = [*(read[0] for read in entry.reads.values()), *entry.writes.values()]
    for buffer in dict.fromkeys(buffers):
        at = f" at {offsets[buffer]}" if buffer in offsets else ""
        name = f" {names[buffer.slot]}" if buffer.slot in names else ""
        shape = f" {buffer.element}{_list([_amount(d, sizes) for d in buffer.shape])}" if buffer.shape else ""
        yield f"{_INDENT}{buffer.kind}{name}{at}:{shape} {_amount(buffer.size, sizes)} bytes"


def _amount(size: Any, sizes: RunSizes) -> Any:
    found = sizes.get(size)
    return size if found is None else found


# ---------------------------------------------------------------- code


def _llvm(program: Listed, _: RunSizes) -> Iterator[str]:
    """Return the lines with the LLVM IR of each kernel after LLVM's passes."""
    return _code(program, ";", optimized)


def _asm(program: Listed, _: RunSizes) -> Iterator[str]:
    """Return the lines with the assembly of each kernel."""
    return _code(program, "#", disassemble)


def _code(program: Listed, comment: str, made: Callable[[str, Target], str]) -> Iterator[str]:
    for number, spec in enumerate(specs_of(program.plan), 1):
        if isinstance(spec, StoredKernel):
            raise TypeError("a kernel from the disk has no text")
        yield f"{comment} kernel {number}"
        yield from (f"{comment} {line}" for line in str(spec).split("\n"))
        yield from made(text_of(spec), program.target).expandtabs().rstrip("\n").split("\n")


LISTINGS: dict[str, Callable[[Listed, RunSizes], Iterator[str]]] = {
    "loops": _loops, "schedule": _schedule, "plan": _plan, "llvm": _llvm, "asm": _asm,
}  # fmt: skip
"""The listings of a plan by name, in addition to those after each pass."""
