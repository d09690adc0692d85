"""The entries of attention: two products, and the scores between them, which have no buffer of the plan."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.attention.kernel import Attention
from sabir.compilation.backends.cpu.attention.neutral import mask_of
from sabir.compilation.backends.cpu.elementwise.axes import nest_of
from sabir.compilation.backends.cpu.elementwise.entries import nest_values, scratch_of
from sabir.compilation.backends.cpu.elementwise.nesting import NestBuilder, Nesting, Place, nesting_of
from sabir.compilation.backends.cpu.emit.nest import Accumulated, Apply, ConstantStep, Load, Position
from sabir.compilation.backends.cpu.jobs import rows_of_attention, up
from sabir.compilation.backends.cpu.products.direct import is_constant
from sabir.compilation.backends.cpu.products.entries import contract_of, packed_operand, with_operands
from sabir.compilation.backends.cpu.products.panels import lanes_of, panels_of
from sabir.compilation.backends.cpu.products.tiles import VECTORS, result_tile, tile_for
from sabir.compilation.fusion.views import Located
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import Computed, Entry, count_of
from sabir.loops import Stored, element_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.attention.kernel import Keys
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.emit.nest import Step
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.bounds import Reach
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Contract, Expression, Size

_LINE = 64  # bytes; the alignment of the rows of scores in scratch memory
_CONSTANT = Reason("they are constant")
_SYMBOLIC = Reason("the number of rows is symbolic")
_KEYS_APART = Reason("they are neither row by row nor column by column in memory")
_NO_MASKS = Reason("the processor has no masks for the rest of a row")
_LEAST_NORMAL = {"float": 2.0**-126, "double": 2.0**-1022}


class _AttentionPlaces(NamedTuple):
    """The operands of attention, with strides along the batch axes `head`, whose sizes are not 1."""

    head: list[int]
    queries: Place
    keys: Place
    values: Place


def add_attention(builder: PlanBuilder, group: Group) -> None:
    """Add the entry that computes two products and the scores between them."""
    scores = group.scores
    if scores is None:
        raise TypeError("attention has scores")
    first, second = contract_of(scores.members[0]), contract_of(group.members[0])
    places = _attention_places(builder, first, second)
    rows, results = (
        _rows_of_scores(builder, scores, second.a, places.head),
        _chosen(nesting_of(group, builder.grouping), places.head),
    )
    order, why = _order_of_keys(builder, first, places.keys)
    attention = _attention(builder, rows, results, second, order)
    entry = Entry([], nodes=builder.origins.labels([*scores.members, *scores.inlined, *group.members]))
    if order == "panels":
        builder.decisions.add(entry.nodes, "keys", "keys packed before", "copied by each job", why)
    else:
        builder.decisions.add(entry.nodes, "keys", f"{order} of keys copied by each job", because=why)
    if _is_divided(builder, results):
        why = Reason("{} heads < {} cores", (count_of(results.sizes[:-2]), builder.cores))
        builder.decisions.add(entry.nodes, "rows", "rows of a head divided among threads", "by one", why)
    keys = _keys(builder, first, places, order, entry)
    kept = (scratch_of(attention.scores, rows) + (_LINE - 1)) // _LINE * _LINE
    entry.scratch = kept + _scratch(attention, first, second.shape[-1])
    row = rows.places.pop()  # the row of scores, whose address the kernel computes
    counts = results.sizes[-2], first.b.shape[-1], count_of(results.sizes[:-2])
    values = {
        "scores": nest_values(builder, attention.scores, rows, entry, entry.scratch, own=row),
        "output": nest_values(builder, attention.output, results, entry, entry.scratch),
        "queries": _operand_values(builder, places.queries, entry), "keys": keys,
        "values": _operand_values(builder, places.values, entry),
        "depth": first.b.shape[-2], "job_rows": Computed(_job(builder, attention), counts),
        "row_offset": kept,
    }  # fmt: skip
    entry.choices.append((None, 0, attention, attention.signature.pack(values)))
    entry.reaches += _attention_reaches(builder, places, results.sizes, first, order)
    entry.flops = 2 * count_of(first.shape) * (first.b.shape[-2] + second.shape[-1])
    builder.entries.append(entry)


def _job(builder: PlanBuilder, attention: Attention) -> Callable[[int, int, int], int]:
    """Return the function that computes the rows of a job from the numbers of rows, keys and batch items."""
    heuristics = builder.heuristics
    return partial(
        rows_of_attention, tile_rows=attention.rows, most=attention.most, scores=heuristics.job_scores,
        jobs=heuristics.jobs_of_a_core * builder.cores,
    )  # fmt: skip


def _keys(
    builder: PlanBuilder, first: Contract, places: _AttentionPlaces, order: Keys, entry: Entry
) -> dict[str, Packable]:
    """Return the arguments of the keys: of their packed panels, or of the tensor that jobs copy keys from."""
    place = places.keys
    if order == "panels":
        packed = packed_operand(builder, first, place, [first.shape[axis] for axis in places.head])
        return {
            "tensor": packed.start(builder, entry), "line": packed.panel, "batch": packed.strides
        }  # fmt: skip
    down, across = place.located.strides[-2:]
    return _operand_values(builder, place, entry, across if order == "rows" else down)


def _attention_reaches(
    builder: PlanBuilder, places: _AttentionPlaces, sizes: Sequence[Size], first: Contract, order: Keys
) -> list[Reach]:
    """Return the reaches of the queries, the values and, unless they are packed, the keys."""
    queries, keys, values = places.queries, places.keys, places.values
    *batch, rows, columns = sizes
    depth, count = first.b.shape[-2:]

    def reach(place: Place, axes: list[tuple[Size, Size]]) -> Reach:
        outer = zip(batch, place.strides[: len(batch)], strict=True)
        return builder.reach(place.located, first.element, [*outer, *axes])

    found = [
        reach(queries, [(rows, queries.strides[-2]), (depth, 1)]),
        reach(values, [(count, values.strides[-2]), (columns, 1)]),
    ]
    if order != "panels":
        down, across = keys.located.strides[-2:]
        found.append(reach(keys, [(depth, down), (count, across)]))
    return found


def _order_of_keys(builder: PlanBuilder, first: Contract, keys: Place) -> tuple[Keys, Reason]:
    """Return the order in which a kernel reads the keys, and the reason.

    With few rows, each job copies the keys into panels; else an earlier kernel packs them.
    """
    rows, most = first.shape[-2], builder.heuristics.attention_rows
    if is_constant(builder.lowered, keys.located):
        return "panels", _CONSTANT
    if not isinstance(rows, int):
        return "panels", _SYMBOLIC
    if rows > most:
        return "panels", Reason("{} rows > {}", (rows, most))
    down, across = keys.located.strides[-2:]
    if down == 1 and builder.target.has_masks:  # without masks lanes are loaded one by one: packing is faster
        return "rows", Reason("{} rows <= {}", (rows, most))
    if across == 1:
        return "columns", Reason("{} rows <= {}", (rows, most))
    return "panels", _NO_MASKS if down == 1 else _KEYS_APART


def _scratch(attention: Attention, first: Contract, columns: Size) -> Size:
    """Return the bytes of scratch memory for the rows of scores, the sums of results, and a panel of keys."""
    size = element_bytes(attention.element)
    width, wide = attention.vectors * attention.lanes, attention.columns * attention.lanes
    depth, keys = first.b.shape[-2:]
    scores = panels_of(keys, attention.lanes) * (attention.most * width)
    sums = (columns + (wide - 1)) // wide * (wide * (attention.most + attention.result_rows))
    panel = 0 if attention.keys == "panels" else depth * width
    return (scores + sums + panel) * size


def _attention(
    builder: PlanBuilder, rows: Nesting, results: Nesting, second: Contract, keys: Keys
) -> Attention:
    target, heuristics = builder.target, builder.heuristics
    count, columns = (n if isinstance(n, int) else None for n in second.shape[-2:])
    lanes = lanes_of(builder, second.element)
    together = _rows_of_a_thread(builder, results)
    tile = tile_for(heuristics.usual_rows if together is None else together, target.registers, heuristics)
    most = heuristics.attention_rows // tile.rows * tile.rows
    if count is not None:
        most = min(most, up(count, tile.rows) * tile.rows)
    result = result_tile(most, columns, lanes, target.registers, heuristics, masks=target.has_masks)
    whole = not target.has_masks and columns is not None and columns % (result.vectors * lanes) == 0
    scores = nest_of(rows, target.vector_bits, heuristics, inner=len(rows.sizes) - 1)
    return Attention(
        scores,
        nest_of(results, target.vector_bits, heuristics, inner=len(results.sizes) - 1),
        second.element, tile.rows, VECTORS, result.rows, result.vectors, lanes, most, keys, whole,
        mask_of(scores, _numbers(builder, rows)),
    )  # fmt: skip


def _rows_of_a_thread(builder: PlanBuilder, results: Nesting) -> int | None:
    """Return how many rows of a head a thread computes: a part of few rows where cores outnumber heads.

    Each part reads all keys and values, and no thread would read them otherwise. None if they are symbolic.
    """
    rows, heads = results.sizes[-2], count_of(results.sizes[:-2])
    if not isinstance(rows, int):
        return None
    least = builder.heuristics.attention_least_rows
    if not isinstance(heads, int) or not heads or not 2 * least <= rows <= builder.heuristics.attention_rows:
        return rows
    return max(least, up(rows, max(1, builder.cores // heads)))


def _is_divided(builder: PlanBuilder, results: Nesting) -> bool:
    rows = _rows_of_a_thread(builder, results)
    return rows is not None and rows != results.sizes[-2]


def _numbers(builder: PlanBuilder, nesting: Nesting) -> dict[int, float]:
    """Return the contents of the places of a nest that are one constant number."""
    found: dict[int, float] = {}
    for number, place in enumerate(nesting.places):
        base = place.located.base
        if isinstance(base, Stored) and all(size == 1 for size in base.shape):
            array = builder.lowered.prepared.constants.get(base.slot) if base.array is None else base.array
            if array is not None and array.dtype.kind in "fiub":
                found[number] = float(array.item())
    return found


def _attention_places(builder: PlanBuilder, first: Contract, second: Contract) -> _AttentionPlaces:
    locate = builder.grouping.views.locate
    head = [axis for axis in range(second.rank - 2) if second.shape[axis] != 1]

    def placed(contract: Contract, a: Located, b: Located) -> list[Place]:
        bare = Nesting(contract.shape, (False,) * contract.rank)
        return _chosen(with_operands(bare, contract, a, b), head).places

    queries, keys = placed(first, *map(locate, builder.grouping.operands[first]))
    values = locate(builder.grouping.operands[second][1])
    _, found = placed(second, values, values)
    strides = (*found.strides[:-2], values.strides[-2], 0)
    return _AttentionPlaces(head, queries, keys, found._replace(strides=strides))


def _operand_values(
    builder: PlanBuilder, place: Place, entry: Entry, line: Size | None = None
) -> dict[str, Packable]:
    """Return the arguments of an operand: its address, and the strides of lines and batch axes in bytes.

    `line` is the stride of lines in elements; None means that of the rows.
    """
    size = element_bytes(place.element)
    *batch, row, _ = place.strides
    pointer = builder.pointer(place.located, place.element, entry)
    line_bytes = (row if line is None else line) * size
    return {"tensor": pointer, "line": line_bytes, "batch": [stride * size for stride in batch]}


def _rows_of_scores(builder: PlanBuilder, scores: Group, result: Expression, head: Sequence[int]) -> Nesting:
    """Return the nest over the rows of scores; its last place is the row, which it reads and overwrites."""
    nests = NestBuilder(scores, builder.grouping)
    nesting = nests.run()
    located = Located(result, 0, (0,) * (len(scores.space) - 1) + (1,))
    nesting.places.append(Place(located, result.element, located.strides))
    own = len(nesting.places) - 1
    nesting.steps = [Load(s.element, own) if isinstance(s, Accumulated) else s for s in nesting.steps]
    nesting.stores = [(own, _without_subnormals(nesting.steps, result.element, nests.numbers[result]))]
    return _chosen(nesting, head)


def _without_subnormals(steps: list[Step], element: str, number: int) -> int:
    """Add steps that replace subnormal numbers by 0; return the number of the last one.

    Processors multiply subnormal numbers a hundred times more slowly, and attention masks of -100 produce
    whole rows of them.
    """
    first = len(steps)
    steps += [
        Apply(element, "abs", (number,)),
        ConstantStep(element, _LEAST_NORMAL[element]),
        Apply("bool", "lt", (first, first + 1)),
        ConstantStep(element, 0.0),
        Apply(element, "where", (first + 2, first + 3, number)),
    ]
    return len(steps) - 1


def _chosen(nesting: Nesting, head: Sequence[int]) -> Nesting:
    """Return a nest restricted to the batch axes `head` and the last two axes; the other axes have size 1."""
    count = len(nesting.sizes)
    axes = [*head, count - 2, count - 1]
    renamed = {axis: number for number, axis in enumerate(axes)}
    steps = [
        Position(s.element, renamed.get(s.axis, 0)) if isinstance(s, Position) else s for s in nesting.steps
    ]
    return Nesting(
        tuple(nesting.sizes[axis] for axis in axes),
        tuple(nesting.reduced[axis] for axis in axes),
        [p._replace(strides=tuple(p.strides[axis] for axis in axes)) for p in nesting.places],
        steps, nesting.stores, nesting.takes, nesting.arguments,
    )  # fmt: skip
