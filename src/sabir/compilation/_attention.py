"""The entries of attention: two products, and the rows of scores between them, which are never in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation import kernels
from sabir.compilation._axes import nest_of
from sabir.compilation._matrices import contract_of, packed_operand, with_operands
from sabir.compilation._nesting import NestBuilder, Nesting, Place, nesting_of
from sabir.compilation._panels import lanes_of, panels_of
from sabir.compilation._plan import Argument, Entry, count_of
from sabir.compilation._tiles import VECTORS, tile_for
from sabir.compilation._views import Located
from sabir.compilation.kernels import Accumulated, Load, Position, element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation._bounds import Reach
    from sabir.compilation._building import PlanBuilder
    from sabir.compilation._groups import Group
    from sabir.compilation.kernels import Attention
    from sabir.loops import Contract, Expression, Size

_USUAL_ROWS = 128  # the tile of a product whose number of rows is symbolic is that for so many


class _AttentionPlaces(NamedTuple):
    """The operands of attention over the batch axes `head` that are not of size 1."""

    head: list[int]
    queries: Place
    keys: Place
    values: Place


def add_attention(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of two products and the rows of scores between them."""
    scores = group.scores
    if scores is None:
        raise TypeError("attention has scores")
    first, second = contract_of(scores.members[0]), contract_of(group.members[0])
    places = _attention_places(builder, first, second)
    rows, results = (
        _rows_of_scores(builder, scores, second.a, places.head),
        _chosen(nesting_of(group, builder.grouping), places.head),
    )
    packed = packed_operand(builder, first, places.keys, [second.shape[axis] for axis in places.head])
    attention = _attention(builder, rows, results, second)
    entry = Entry([], nodes=builder.origins.labels([*scores.members, *scores.inlined, *group.members]))
    size = element_bytes(second.element)
    kept = builder.scratch(attention.scores, rows)
    width = attention.vectors * attention.lanes
    entry.scratch = kept + panels_of(first.b.shape[-1], attention.lanes) * (attention.rows * width * size)
    row = rows.places.pop()  # the row of scores, which the kernel places itself
    arguments = builder.arguments(attention.scores, rows, entry, entry.scratch, own=row)
    arguments += builder.arguments(attention.output, results, entry, entry.scratch)
    arguments += _operand_arguments(builder, places.queries, entry)
    arguments += [*packed.arguments(builder, entry), packed.panel, *packed.strides]
    arguments += _operand_arguments(builder, places.values, entry)
    entry.choices.append((None, 0, attention, [*arguments, first.b.shape[-2], kept]))
    entry.reaches += _attention_reaches(builder, places, results.sizes, first)
    entry.flops = 2 * count_of(first.shape) * (first.b.shape[-2] + second.shape[-1])
    builder.entries.append(entry)


def _attention_reaches(
    builder: PlanBuilder, places: _AttentionPlaces, sizes: Sequence[Size], first: Contract
) -> list[Reach]:
    """Return what the queries and the values touch; the packed keys are whole."""
    queries, values = places.queries, places.values
    *batch, rows, columns = sizes
    depth, keys = first.b.shape[-2:]
    outer = [
        list(zip([*batch, n], place.strides[:-1], strict=True))
        for n, place in ((rows, queries), (keys, values))
    ]
    return [
        builder.reach(queries.located, first.element, [*outer[0], (depth, 1)]),
        builder.reach(values.located, first.element, [*outer[1], (columns, 1)]),
    ]


def _attention(builder: PlanBuilder, rows: Nesting, results: Nesting, second: Contract) -> Attention:
    count, columns = second.shape[-2:]
    lanes = lanes_of(builder, second.element)
    tile = tile_for(count if isinstance(count, int) else _USUAL_ROWS, builder.host.registers)
    vectors = max(1, min(2, -(-columns // lanes))) if isinstance(columns, int) else 2
    whole = not builder.host.has_masks and isinstance(columns, int) and columns % (vectors * lanes) == 0
    return kernels.Attention(
        nest_of(rows, builder.host.vector_bits, inner=len(rows.sizes) - 1),
        nest_of(results, builder.host.vector_bits, inner=len(results.sizes) - 1),
        second.element, tile.rows, VECTORS, vectors, lanes, whole,
    )  # fmt: skip


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


def _operand_arguments(builder: PlanBuilder, place: Place, entry: Entry) -> list[Argument]:
    """Return where an operand lies, its bytes from row to row, and its strides along the batch axes."""
    size = element_bytes(place.element)
    *batch, row, _ = place.strides
    pointer = builder.pointer(place.located, place.element, entry)
    return [*pointer, row * size, *(stride * size for stride in batch)]


def _rows_of_scores(builder: PlanBuilder, scores: Group, result: Expression, head: Sequence[int]) -> Nesting:
    """Return the nest over the rows of scores, which reads and writes them as its last place."""
    nests = NestBuilder(scores, builder.grouping)
    nesting = nests.run()
    located = Located(result, 0, (0,) * (len(scores.space) - 1) + (1,))
    nesting.places.append(Place(located, result.element, located.strides))
    own = len(nesting.places) - 1
    nesting.steps = [Load(s.element, own) if isinstance(s, Accumulated) else s for s in nesting.steps]
    nesting.stores = [(own, nests.numbers[result])]
    return _chosen(nesting, head)


def _chosen(nesting: Nesting, head: Sequence[int]) -> Nesting:
    """Return a nest over some of its batch axes and the last two; the other axes have size 1."""
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
