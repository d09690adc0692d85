"""The entries of products, also of convolutions: tiles, packed operands, and the places of both in memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation._nesting import Nesting, Place, merged, nest_of, nesting_of
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
from sabir.compilation._tiles import (
    VECTORS,
    Tile,
    blocks_of,
    is_usual,
    rows_of_a_job,
    scratch_rows,
    tiles,
    window_tiles,
)
from sabir.compilation.kernels import Packing, Product, element_bytes
from sabir.loops import BYTES, Contract, Expression, Size, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation._building import PlanBuilder
    from sabir.compilation._groups import Group
    from sabir.compilation._views import Located
    from sabir.compilation.kernels import Groups, Nest
    from sabir.compilation.native import Host
    from sabir.loops import Sizes


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
    contract = contract_of(group.members[0])
    nesting = with_operands(
        nesting_of(group, builder.grouping),
        contract,
        *map(builder.grouping.views.locate, builder.grouping.operands[contract]),
    )
    nesting, row_axes = _merged(nesting, contract)
    b, a = nesting.places.pop(), nesting.places.pop()
    nest = nest_of(nesting, builder.host.vector_bits, inner=len(nesting.sizes) - 1)
    nest = replace(nest, lanes=lanes_of(builder, contract.element))  # whatever the epilogue computes with
    rows = count_of(nesting.sizes[-row_axes - 1 : -1])
    choices = _tiles(builder, contract, rows)
    depth, run = _depth(contract, a.located) if contract.scale is None else (_apart(contract, a.located), 1)
    packed = packed_operand(builder, contract, b, nesting.sizes[: -row_axes - 1], choices[0][1].vectors, run)
    parameters = _parameters(builder, contract, choices[0][1].vectors)
    entry = Entry([], nodes=builder.origins.labels([*group.members, *group.inlined]))
    entry.flops = 2 * count_of([n for n, _ in depth]) * count_of(nesting.sizes)
    extents = [*zip(nesting.sizes[:-1], a.strides[:-1], strict=True), *depth]
    entry.reaches.append(builder.reach(a.located, a.element, extents))
    for limit, tile in choices:
        product = replace(_tiled(nest, contract, tile), row_axes=row_axes)
        if contract.scale is not None:
            product, blocks = _scaled(product, contract), depth
        elif contract.is_float:
            product, blocks = _blocked(product, depth, rows, entry)
            product = replace(product, narrow=_narrow(contract))
        else:
            product, blocks = _of_integers(builder, product, contract, depth), depth
        arguments = builder.arguments(nest, nesting, entry, entry.scratch)
        arguments += builder.pointer(a.located, a.element, entry)
        builder.use(packed.buffer, entry)
        arguments += packed.arguments()
        arguments += _product_arguments(product, blocks, a, nesting.sizes, packed, builder.host.cores)
        arguments += _zero_arguments(builder, contract, entry)
        for panels in parameters:
            builder.use(panels.buffer, entry)
            arguments += [*panels.arguments(), panels.panel]
        entry.choices.append((rows, limit or 0, product, arguments))
    builder.note_writes(entry, nesting)
    builder.entries.append(entry)


def _tiles(builder: PlanBuilder, contract: Contract, rows: Size) -> list[tuple[int | None, Tile]]:
    """Return the tiles for numbers of rows up to a limit; all have panels of one width."""
    known, columns = rows if isinstance(rows, int) else None, contract.shape[-1]
    lanes, registers = lanes_of(builder, contract.element), builder.host.registers
    if not isinstance(columns, int) or contract.rows == 1 or contract.scale is not None:
        return tiles(known, registers)
    if contract.depth == 1 and is_usual(columns, lanes):
        return tiles(known, registers)
    return window_tiles(known, columns, lanes, registers)


def _of_integers(
    builder: PlanBuilder, product: Product, contract: Contract, depth: Sequence[tuple[Size, Size]]
) -> Product:
    """Return the product of integers: how many it adds at a time, and what it subtracts."""
    group, last = group_of(builder.host, contract), depth[-1][0]
    ragged = not isinstance(last, int) or last % group != 0
    zero = "" if contract.zero is None else contract.zero.element
    return replace(product, depth_axes=len(depth), group=group, ragged=ragged, zero=zero)


def _apart(contract: Contract, a: Located) -> list[tuple[Size, Size]]:
    """Return sizes and strides of both axes of `k`, of which the first counts blocks with scales."""
    return list(zip(contract.a.shape[-2:], (a.strides[-2], 1), strict=True))


def _scaled(product: Product, contract: Contract) -> Product:
    """Return the product by blocks of weights with scales."""
    less = "" if contract.less is None else contract.less.element
    return replace(product, depth_axes=2, narrow=_narrow(contract), scaled=True, less=less)


def _parameters(builder: PlanBuilder, contract: Contract, vectors: int) -> list[_Packed]:
    """Return the panels of scales, and of what is subtracted, with one line for each block of weights."""
    found: list[_Packed] = []
    for x in (contract.scale, contract.less):
        if x is not None:
            located = builder.grouping.views.locate(builder.grouping.more[contract][x])
            lines, _, columns = zip(x.shape, located.strides, strict=True)
            panels = Panels(x.element, [], [lines], columns, vectors * lanes_of(builder, contract.element))
            found.append(_Packed(packed_panels(builder, contract, located, panels), panels.panel, []))
    return found


def _narrow(contract: Contract) -> str:
    """Return the element type of the panels of a product of floats, if it is another one."""
    if contract.b.element == contract.element:
        return ""
    return "int8" if contract.b.element in BYTES else contract.b.element


def group_of(host: Host, contract: Contract) -> Groups:
    """Return how many neighbours along `k` one instruction multiplies and adds up."""
    if contract.is_float:
        return 1
    return 4 if host.has("avx512vnni") or host.has("avxvnni") else 2


def _zero_arguments(builder: PlanBuilder, contract: Contract, entry: Entry) -> list[Argument]:
    """Return where the zero point of a product of integers lies, if it has one."""
    if contract.zero is None:
        return []
    zero = builder.grouping.more[contract][contract.zero]
    located = builder.grouping.views.locate(zero)
    if not entry.choices:
        entry.reaches.append(builder.reach(located, zero.element, []))
    return builder.pointer(located, zero.element, entry)


def _blocked(
    product: Product, depth: list[tuple[Size, Size]], rows: Size, entry: Entry
) -> tuple[Product, list[tuple[Size, Size]]]:
    """Return the product and its axes of `k`, by whose first one large panels are divided."""
    width = product.width * product.panels * element_bytes(product.element)  # of sums, which wait as floats
    blocks = blocks_of(count_of([n for n, _ in depth]), width, rows, product.rows)
    if blocks == 1 or product.panels > 1:
        return replace(product, depth_axes=len(depth)), depth
    if len(depth) == 1:
        ((count, _),) = depth
        part = count // blocks
        depth = [(blocks, part), (part, 1)]
    if isinstance(entry.scratch, int):  # of all choices
        entry.scratch = max(entry.scratch, scratch_rows(rows, product.rows) * width)
    return replace(product, depth_axes=len(depth), blocked=True), depth


def _merged(nesting: Nesting, contract: Contract) -> tuple[Nesting, int]:
    """Return the loops over as few axes as the operands allow, and how many of these are axes of rows."""
    if contract.rows == 1:
        return merged(nesting, fixed=2), 1
    count = len(nesting.sizes)
    first = count - 1 - contract.rows
    nesting.reduced = tuple(first <= axis < count - 1 for axis in range(count))  # keeps rows apart
    found = merged(nesting, fixed=1)
    rows = sum(found.reduced)
    if not rows:
        found.sizes = (*found.sizes[:-1], 1, found.sizes[-1])
        found.places = [p._replace(strides=(*p.strides[:-1], 0, p.strides[-1])) for p in found.places]
        rows = 1
    found.reduced = (False,) * len(found.sizes)
    return found, rows


def _depth(contract: Contract, a: Located) -> tuple[list[tuple[Size, Size]], int]:
    """Return sizes and strides of the axes of `k`, as few as possible, the last of which has stride 1.

    The second result is how many axes of the product the last one is.
    """
    first = contract.a.rank - contract.depth
    found: list[tuple[Size, Size]] = []
    runs: list[int] = []
    for size, stride in zip(contract.a.shape[first:], a.strides[first:], strict=True):
        if found and (found[-1][1] == stride * size or size == 1):
            found[-1] = found[-1][0] * size, stride if size != 1 else found[-1][1]
            runs[-1] += 1
        elif found and found[-1][0] == 1:
            found[-1] = size, stride
            runs[-1] += 1
        else:
            found.append((size, stride))
            runs.append(1)
    if contract.depth == 1:
        return [(found[0][0], 1)], 1
    if found[-1][1] == 1 or found[-1][0] == 1:
        return [*found[:-1], (found[-1][0], 1)], runs[-1]
    return [*found, (1, 1)], 0


def lanes_of(builder: PlanBuilder, element: str) -> int:
    """Return the lanes of the vectors of a product: the width of its panels follows from them."""
    return builder.host.vector_bits // 8 // max(4, element_bytes(element))


def contract_of(x: Expression) -> Contract:
    """Return the first member of a group as the product that it is."""
    if not isinstance(x, Contract):
        raise TypeError("the group begins with a product")
    return x


def _tiled(nest: Nest, contract: Contract, tile: Tile) -> Product:
    """Return the product in tiles, with no more panels at a time than there are, all of them whole groups."""
    columns, width = contract.b.shape[-1], tile.vectors * nest.lanes
    panels, whole = 1, False
    if isinstance(columns, int):
        count = -(-columns // width)
        panels = max(n for n in range(1, tile.panels + 1) if count % n == 0)
        whole = columns % width == 0
    return Product(nest, contract.element, tile.rows, tile.vectors, panels, whole=whole)


def _product_arguments(
    product: Product, depth: Sequence[tuple[Size, Size]], a: Place, sizes: Sequence[Size], packed: _Packed,
    cores: int,
) -> list[Argument]:  # fmt: skip
    """Return the arguments after the pointers to both operands."""
    size = element_bytes(a.element)
    batch, rows, columns = sizes[: product.batch], sizes[product.batch : -1], sizes[-1]
    width = product.width * product.panels
    job = partial(_job_rows, tile_rows=product.rows, width=width, cores=cores)
    job_rows = Computed(job, (count_of(rows), columns, count_of(batch)))
    strides = [stride * size for stride in a.strides[:-1]]
    counts, steps = zip(*depth, strict=True)
    return [
        *strides[product.batch :], packed.panel, *counts, *(step * size for step in steps[:-1]), job_rows,
        *strides[: product.batch], *packed.strides,
    ]  # fmt: skip


def _job_rows(rows: int, columns: int, batch: int, *, tile_rows: int, width: int, cores: int) -> int:
    return rows_of_a_job(rows, columns, batch, tile_rows=tile_rows, width=width, cores=cores)


def with_operands(nesting: Nesting, contract: Contract, a: Located, b: Located) -> Nesting:
    """Add the operands as places, so that axes merge only where both allow it."""
    last = contract.a.rank - contract.depth
    rows = a.strides[last - contract.rows : last]
    still = (0,) * (contract.rows + 1)
    batch = _batch_strides(contract, contract.a.shape[: last - contract.rows], a)
    nesting.places.append(Place(a, contract.a.element, (*batch, *rows, 0)))
    batch = _batch_strides(contract, contract.b.shape[: -1 - contract.depth], b)
    nesting.places.append(Place(b, contract.b.element, (*batch, *still)))
    return nesting


def _batch_strides(contract: Contract, shape: Sizes, located: Located) -> list[Size]:
    """Return the strides of an operand along the batch axes of the product, 0 where it is broadcast."""
    head = contract.rank - contract.rows - 1
    missing = head - len(shape)
    own = zip(shape, located.strides[: len(shape)], contract.shape[missing:head], strict=True)
    return [0] * missing + [0 if d == 1 and w != 1 else s for d, s, w in own]


# ---------------------------------------------------------------- packing


def packed_operand(
    builder: PlanBuilder, contract: Contract, place: Place, batch: Sequence[Size], vectors: int = VECTORS,
    run: int = 1,
) -> _Packed:  # fmt: skip
    """Return the second operand in panels of `vectors`; `place` has its places along the batch axes.

    A constant is packed once, when the plan is made, and for all products of it. `run` is how many axes of
    `k`, the last ones, lie side by side in the first operand.
    """
    first = contract.b.rank - 1 - contract.depth
    axes = list(zip(contract.b.shape[first:], place.located.strides[first:], strict=True))
    own = [(n, s) for n, s in zip(batch, place.strides, strict=False) if s != 0]
    width, group = vectors * lanes_of(builder, contract.element), group_of(builder.host, contract)
    panels = Panels(contract.b.element, own, axes[:-1], axes[-1], width, group, run)
    found = packed_panels(builder, contract, place.located, panels)
    return _Packed(found, panels.panel, _packed_strides(panels.item, batch, place.strides))


class Panels(NamedTuple):
    """A matrix `[batch..., k..., n]` in panels of a width: the size and the stride of each of its axes.

    Groups of neighbours are along the last `run` axes of `k`.
    """

    element: str
    batch: Sequence[tuple[Size, Size]]
    depth: Sequence[tuple[Size, Size]]
    columns: tuple[Size, Size]
    width: int
    group: Groups = 1
    run: int = 1

    @property
    def panel(self) -> Size:
        """The bytes of a panel."""
        if self.group > 1:
            outer = len(self.depth) - self.run
            count = count_of([n for n, _ in self.depth[outer:]])
            groups = count_of([n for n, _ in self.depth[:outer]]) * ((count + (self.group - 1)) // self.group)
            return groups * (self.width * self.group) + 4 * self.width
        return count_of([n for n, _ in self.depth]) * (self.width * element_bytes(self.element))

    @property
    def item(self) -> Size:
        """The bytes of the panels of an item of the batch."""
        return self.panel * ((self.columns[0] + (self.width - 1)) // self.width)


def packed_panels(builder: PlanBuilder, x: Expression, b: Located, panels: Panels) -> Buffer:
    """Return the memory of packed panels, which an entry before all that follow fills."""
    constant = isinstance(b.base, Stored) and b.base.slot in builder.lowered.prepared.constants
    layout = f"{b.offset}/{panels.batch}/{panels.depth}/{panels.columns}/{panels.width}"
    layout += f"/{panels.run}" if panels.group > 1 else ""
    key = (b.base, layout) if constant else (x, layout)
    found = builder.buffers.get(key)
    if found is None:
        kind: BufferKind = "packed" if constant else "arena"
        size = panels.item * count_of([n for n, _ in panels.batch])
        found = builder.buffers[key] = builder.new_buffer(kind, panels.element, (), size=size)
        entry = _packing(builder, x, b, panels, found)
        (builder.setup if constant else builder.entries).append(entry)
    return found


def _packing(builder: PlanBuilder, x: Expression, b: Located, panels: Panels, target: Buffer) -> Entry:
    """Return the entry that packs an operand."""
    size = element_bytes(panels.element)
    batch, depth, columns = panels.batch, panels.depth, panels.columns
    packing = Packing(
        panels.element, len(batch), panels.width, lanes_of(builder, panels.element),
        next_column=columns[1] == 1, depth_axes=len(depth), group=panels.group, run=panels.run,
    )  # fmt: skip
    axes = [*batch, *depth, columns]
    entry = Entry([], nodes=builder.origins.labels([x]))
    arguments: list[Argument] = [n for n, _ in axes]
    entry.writes, entry.axes = [target], len(arguments)
    arguments += builder.pointer(b, panels.element, entry)
    arguments += [stride * size for _, stride in axes]
    entry.reaches.append(builder.reach(b, panels.element, axes))
    builder.use(target, entry)
    entry.choices.append((
        None,
        0,
        packing,
        [*arguments, BufferNumber(target), Offset(target, 0), panels.item],
    ))
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
