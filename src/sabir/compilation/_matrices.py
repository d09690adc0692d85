"""The entries of products and of attention: tiles, packed operands, and the places of both in memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation._nesting import NestBuilder, Nesting, Place, merged, nest_of, nesting_of
from sabir.compilation._plan import (
    Argument,
    Buffer,
    BufferKind,
    BufferNumber,
    Computed,
    Entry,
    Offset,
    count_of,
)
from sabir.compilation._tiles import VECTORS, Tile, rows_of_a_job, tile_for, tiles
from sabir.compilation._views import Located
from sabir.compilation.kernels import (
    Accumulated,
    Attention,
    Load,
    Packing,
    Position,
    Product,
    element_bytes,
)
from sabir.loops import Contract, Expression, Size, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation._bounds import Reach
    from sabir.compilation._building import PlanBuilder
    from sabir.compilation._groups import Group
    from sabir.compilation.kernels import Nest

_USUAL_ROWS = 128  # the tile of a product whose number of rows is symbolic is that for so many


class _Packed(NamedTuple):
    """The second operand of a product in panels: the bytes of one, and of each step along the batch axes."""

    buffer: Buffer
    panel: Size
    strides: list[Size]

    def arguments(self) -> list[Argument]:
        return [BufferNumber(self.buffer), Offset(self.buffer, 0)]


# ---------------------------------------------------------------- products


def add_product(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of a product and its epilogue, and before it that of packing where the operand varies."""
    contract = _contract(group.members[0])
    a, b = map(builder.grouping.views.locate, builder.grouping.operands[contract])
    nesting = _with_operands(nesting_of(group, builder.grouping), contract, a, b)
    nesting = merged(nesting, fixed=2)
    b_place, a_place = nesting.places.pop(), nesting.places.pop()
    nest = nest_of(nesting, builder.host.vector_bits, inner=len(nesting.sizes) - 1)
    nest = replace(nest, lanes=_lanes(builder, contract))  # whatever the epilogue computes with
    packed = _packed(builder, contract, b_place, nesting.sizes[:-2])
    entry = Entry([], nodes=builder.origins.labels(group.members))
    rows, depth = nesting.sizes[-2], contract.b.shape[-2]
    entry.reaches.append(
        builder.reach(a, contract.element, nesting.sizes[:-1], a_place.strides[:-1], (depth, 1))
    )
    for limit, tile in tiles(rows if isinstance(rows, int) else None, builder.host.registers):
        product = _tiled(nest, contract, tile)
        arguments = builder.arguments(nest, nesting, entry, 0)
        arguments += builder.pointer(a_place.located, contract.element, entry)
        builder.use(packed.buffer, entry)
        arguments += packed.arguments()
        arguments += _product_arguments(product, contract, a_place, nesting.sizes, packed)
        entry.choices.append((rows, limit or 0, product, arguments))
    entry.flops = 2 * depth * count_of(nesting.sizes)
    builder.entries.append(entry)


def _lanes(builder: PlanBuilder, contract: Contract) -> int:
    """Return the lanes of the vectors of a product: the width of its panels follows from them."""
    return builder.host.vector_bits // 8 // element_bytes(contract.element)


def _contract(x: Expression) -> Contract:
    if not isinstance(x, Contract):
        raise TypeError("the group begins with a product")
    return x


def _tiled(nest: Nest, contract: Contract, tile: Tile) -> Product:
    """Return the product in tiles, with no more panels at a time than there are, all of them whole groups."""
    columns, panels = contract.b.shape[-1], 1
    if isinstance(columns, int):
        count = -(-columns // (VECTORS * nest.lanes))
        panels = max(n for n in range(1, tile.panels + 1) if count % n == 0)
    return Product(nest, contract.element, tile.rows, VECTORS, panels)


def _product_arguments(
    product: Product, contract: Contract, a: Place, sizes: Sequence[Size], packed: _Packed
) -> list[Argument]:
    """Return the arguments after the pointers to both operands."""
    size = element_bytes(contract.element)
    *batch, rows, _ = sizes
    depth, columns = contract.b.shape[-2:]
    job = partial(_job_rows, tile_rows=product.rows, width=product.width * product.panels)
    job_rows = Computed(job, (rows, columns, count_of(batch)))
    strides = [stride * size for stride in a.strides[:-2]]
    return [a.strides[-2] * size, packed.panel, depth, job_rows, *strides, *packed.strides]


def _job_rows(rows: int, columns: int, batch: int, *, tile_rows: int, width: int) -> int:
    return rows_of_a_job(rows, columns, batch, tile_rows=tile_rows, width=width)


def _with_operands(nesting: Nesting, contract: Contract, a: Located, b: Located) -> Nesting:
    """Add the operands as places, so that axes merge only where both allow it."""
    nesting.places.append(
        Place(a, contract.element, (*_batch_strides(contract, contract.a, a), a.strides[-2], 0))
    )
    nesting.places.append(Place(b, contract.element, (*_batch_strides(contract, contract.b, b), 0, 0)))
    return nesting


def _batch_strides(contract: Contract, operand: Expression, located: Located) -> list[Size]:
    """Return the strides of an operand along the batch axes of the product, 0 where it is broadcast."""
    head = contract.rank - 2
    missing = head - (operand.rank - 2)
    own = zip(operand.shape[:-2], located.strides[:-2], contract.shape[missing:head], strict=True)
    return [0] * missing + [0 if d == 1 and w != 1 else s for d, s, w in own]


# ---------------------------------------------------------------- packing


def _packed(builder: PlanBuilder, contract: Contract, place: Place, batch: Sequence[Size]) -> _Packed:
    """Return the packed second operand, whose places along the batch axes `place` has.

    A constant is packed once, when the plan is made, and for all products of it.
    """
    b = place.located
    depth, columns = contract.b.shape[-2:]
    size = element_bytes(contract.element)
    lanes = _lanes(builder, contract)
    panel = depth * (VECTORS * lanes * size)
    item = panel * panels_of(columns, lanes)
    own = [(n, s) for n, s in zip(batch, place.strides, strict=False) if s != 0]
    strides = _packed_strides(item, batch, place.strides)
    constant = isinstance(b.base, Stored) and b.base.slot in builder.lowered.prepared.constants
    key = (b.base, f"{b.offset}/{b.strides}/{depth}/{columns}/{own}") if constant else (contract, "packed")
    found = builder.buffers.get(key)
    if found is None:
        kind: BufferKind = "packed" if constant else "arena"
        count = count_of([n for n, _ in own])
        found = builder.buffers[key] = builder.new_buffer(kind, contract.element, (), size=item * count)
        entry = _packing(builder, contract, b, own, found, item)
        (builder.setup if constant else builder.entries).append(entry)
    return _Packed(found, panel, strides)


def _packing(
    builder: PlanBuilder, contract: Contract, b: Located, batch: Sequence[tuple[Size, Size]], target: Buffer,
    item: Size,
) -> Entry:  # fmt: skip
    """Return the entry that packs an operand; `batch` has the size and the stride of its batch axes."""
    size = element_bytes(contract.element)
    lanes = _lanes(builder, contract)
    packing = Packing(contract.element, len(batch), VECTORS * lanes, lanes, next_column=b.strides[-1] == 1)
    entry = Entry([], nodes=builder.origins.labels([contract]))
    arguments: list[Argument] = [*(n for n, _ in batch), *contract.b.shape[-2:]]
    entry.writes, entry.axes = [target], len(arguments)
    arguments += builder.pointer(b, contract.element, entry)
    arguments += [stride * size for stride in (*(s for _, s in batch), *b.strides[-2:])]
    counts = [*(n for n, _ in batch), contract.b.shape[-2]]
    strides = [*(s for _, s in batch), b.strides[-2]]
    columns = contract.b.shape[-1], b.strides[-1]
    entry.reaches.append(builder.reach(b, contract.element, counts, strides, columns))
    builder.use(target, entry)
    entry.choices.append((None, 0, packing, [*arguments, BufferNumber(target), Offset(target, 0), item]))
    return entry


def _packed_strides(item: Size, batch: Sequence[Size], strides: Sequence[Size]) -> list[Size]:
    """Return the bytes from item to item along each batch axis, 0 where the operand is broadcast."""
    found: list[Size] = []
    step = item
    for size, stride in zip(reversed(batch), reversed(strides[: len(batch)]), strict=True):
        found.append(0 if stride == 0 else step)
        step = step if stride == 0 else step * size
    return found[::-1]


def panels_of(columns: Size, lanes: int) -> Size:
    """Return how many panels columns fill."""
    width = VECTORS * lanes
    return (columns + (width - 1)) // width


# ---------------------------------------------------------------- attention


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
    first, second = _contract(scores.members[0]), _contract(group.members[0])
    places = _attention_places(builder, first, second)
    rows, results = (
        _rows_of_scores(builder, scores, second.a, places.head),
        _chosen(nesting_of(group, builder.grouping), places.head),
    )
    packed = _packed(builder, first, places.keys, [second.shape[axis] for axis in places.head])
    attention = _attention(builder, rows, results, second)
    entry = Entry([], nodes=builder.origins.labels([*scores.members, *group.members]))
    size = element_bytes(second.element)
    kept = builder.scratch(attention.scores, rows)
    width = attention.vectors * attention.lanes
    entry.scratch = kept + panels_of(first.b.shape[-1], attention.lanes) * (attention.rows * width * size)
    row = rows.places.pop()  # the row of scores, which the kernel places itself
    arguments = builder.arguments(attention.scores, rows, entry, entry.scratch, own=row)
    arguments += builder.arguments(attention.output, results, entry, entry.scratch)
    arguments += _operand_arguments(builder, places.queries, entry)
    builder.use(packed.buffer, entry)
    arguments += [*packed.arguments(), packed.panel, *packed.strides]
    arguments += _operand_arguments(builder, places.values, entry)
    entry.writes, entry.axes = [], 0  # two nests have sizes
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
    element = first.element
    return [
        builder.reach(queries.located, element, [*batch, rows], queries.strides[:-1], (depth, 1)),
        builder.reach(values.located, element, [*batch, keys], values.strides[:-1], (columns, 1)),
    ]


def _attention(builder: PlanBuilder, rows: Nesting, results: Nesting, second: Contract) -> Attention:
    count, columns = second.shape[-2:]
    lanes = _lanes(builder, second)
    tile = tile_for(count if isinstance(count, int) else _USUAL_ROWS, builder.host.registers)
    vectors = min(2, -(-columns // lanes)) if isinstance(columns, int) else 2
    return Attention(
        nest_of(rows, builder.host.vector_bits, inner=len(rows.sizes) - 1),
        nest_of(results, builder.host.vector_bits, inner=len(results.sizes) - 1),
        second.element, tile.rows, VECTORS, max(1, vectors), lanes,
    )  # fmt: skip


def _attention_places(builder: PlanBuilder, first: Contract, second: Contract) -> _AttentionPlaces:
    locate = builder.grouping.views.locate
    head = [axis for axis in range(second.rank - 2) if second.shape[axis] != 1]

    def placed(contract: Contract, a: Located, b: Located) -> list[Place]:
        bare = Nesting(contract.shape, (False,) * contract.rank)
        return _chosen(_with_operands(bare, contract, a, b), head).places

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
