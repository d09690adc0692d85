"""The groups and entries of kernels that compute one expression, without fusion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.elementwise.axes import merged, nest_of
from sabir.compilation.backends.cpu.elementwise.entries import nest_values, note_writes
from sabir.compilation.backends.cpu.elementwise.nesting import nesting_of
from sabir.compilation.backends.cpu.emit.sort_keys import record_bytes
from sabir.compilation.backends.cpu.singles.coupling import Coupling, coupled_vectors
from sabir.compilation.backends.cpu.singles.cumulation import Cumulation
from sabir.compilation.backends.cpu.singles.scattering import Scattering
from sabir.compilation.backends.cpu.singles.selection import Selection
from sabir.compilation.fusion.inlining import read_by
from sabir.compilation.fusion.views import Copy
from sabir.compilation.plan.entries import Entry, count_of
from sabir.ir import is_nonnegative, sub
from sabir.loops import Best, Couple, Cumulate, Scatter, element_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.elementwise.nesting import Nesting
    from sabir.compilation.backends.cpu.emit.nest import Nest
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group, GroupKind
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Expression, Size


class Single(NamedTuple):
    """A kernel, its arguments in addition to those of its nest, and its scratch bytes for each thread."""

    spec: Coupling | Cumulation | Scattering | Selection
    more: Mapping[str, Packable] = {}
    scratch: Size = 0


def add_single(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of a kernel that computes one expression."""
    nesting = merged(nesting_of(group, builder.grouping))
    single = single_of(group.members[0], nesting, builder)
    labels = builder.origins.labels(group.members)
    entry = Entry([], single.scratch, labels, count_of(nesting.sizes))
    values = nest_values(builder, single.spec.nest, nesting, entry, single.scratch)
    signature = single.spec.signature
    entry.choices.append((None, 0, single.spec, signature.pack({"nest": values, **single.more})))
    x = group.members[0]
    if isinstance(x, (Best, Couple)):
        _selected(entry, nesting, x.shape[x.axis])
    note_writes(builder, entry, nesting, signature.span("nest", "sizes"))
    builder.entries.append(entry)


def _selected(entry: Entry, nesting: Nesting, count: Size) -> None:
    """Set the reach of the result along the reduced axis to `count` elements, not the operand's number."""
    ((target, _),) = nesting.stores
    reach, along = entry.reaches[target], nesting.reduced.index(True)
    extents = [*reach.extents]
    extents[along] = count, extents[along][1]
    entry.reaches[target] = reach._replace(extents=extents)


def single_of(x: Expression, nesting: Nesting, builder: PlanBuilder) -> Single:
    """Return the kernel of an expression; `nesting` are the loops over its operand, or its updates."""
    match x:
        case Cumulate():
            return Single(Cumulation(_nest(builder, nesting), x.op, x.exclusive, x.reverse))
        case Scatter():
            return _scattering(x, nesting, builder)
        case Best():
            return _selection(x, nesting, builder)
        case Couple():
            return _coupling(x, nesting, builder)
        case _:
            raise TypeError(f"{type(x).__name__} has no kernel of its own")


def _nest(builder: PlanBuilder, nesting: Nesting, inner: int | None = None) -> Nest:
    return nest_of(nesting, builder.target.vector_bits, builder.heuristics, inner=inner)


def _scattering(x: Scatter, nesting: Nesting, builder: PlanBuilder) -> Single:
    pairs = [pair for i, pair in enumerate(zip(x.updates.shape, x.shape, strict=True)) if i != x.axis]
    open_pairs = [(count, size) for count, size in pairs if not is_nonnegative(sub(size, count))]
    spec = Scattering(_nest(builder, nesting), len(open_pairs))
    checks = [{"updates": count, "size": size} for count, size in open_pairs]
    return Single(spec, dict(zip(spec.check_names, checks, strict=True)))


def _selection(x: Best, nesting: Nesting, builder: PlanBuilder) -> Single:
    element, count = x.operand.element, x.shape[x.axis]
    nest = _nest(builder, nesting, inner=nesting.reduced.index(True))
    nest = replace(nest, lanes=builder.target.vector_bits // 8 // max(4, element_bytes(element)))
    return Single(Selection(nest, x.largest), {"count": count}, count * record_bytes(element))


def _coupling(x: Couple, nesting: Nesting, builder: PlanBuilder) -> Single:
    classes = x.shape[x.axis]
    if not isinstance(classes, int):
        raise TypeError("the number of classes is known")
    inner = nesting.reduced.index(False) if False in nesting.reduced else 0  # each lane is another row
    spec = Coupling(_nest(builder, nesting, inner=inner), x.iterations, x.tolerance)
    return Single(spec, {"classes": classes}, coupled_vectors(classes) * builder.target.vector_bits // 8)


def group_single(grouping: Grouping, x: Cumulate | Best | Couple) -> None:
    """Add a closed group for an expression; its kernel loops over the operand."""
    begin_single(grouping, x, [x.operand], x.axis, "single")


def group_scatter(grouping: Grouping, x: Scatter) -> None:
    """Add a group that copies the operand, and a group that writes the updates into the copy."""
    grouping.writers[x] = []
    copy = Copy(x.element, x.shape, x.operand, x, (0,) * x.rank)
    grouping.assign(copy)
    group = begin_single(grouping, x, [x.indices, x.updates], x.axis, "scatter")
    grouping.depend(group, [grouping.of[copy]])
    grouping.writers[x].append(group)


def begin_single(
    grouping: Grouping, x: Expression, reads: Sequence[Expression], axis: int, kind: GroupKind
) -> Group:
    """Return a new group of one expression; its kernel loops over the last of `reads`."""
    needed = [g for o in reads for read in read_by(o, grouping.heuristics) for g in grouping.need(read)]
    group = grouping.start(x, reads[-1].shape, kind)
    group.reduced = (axis,)
    grouping.stored[x] = None
    grouping.depend(group, needed)
    return group
