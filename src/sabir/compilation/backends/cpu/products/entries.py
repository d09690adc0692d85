"""The entries of matrix products and convolutions: their tiles, operands, strides and scratch memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.axes import merged, nest_of
from sabir.compilation.backends.cpu.elementwise.entries import nest_values, note_writes
from sabir.compilation.backends.cpu.elementwise.nesting import Nesting, Place, nesting_of
from sabir.compilation.backends.cpu.jobs import rows_of_a_job
from sabir.compilation.backends.cpu.products.direct import (
    CONSTANT,
    DirectOperand,
    direct_operand,
    is_constant,
    why_packed,
)
from sabir.compilation.backends.cpu.products.formats import (
    apart,
    group_of,
    in_blocks,
    is_in_words,
    narrow_of,
    of_integers,
    packed_scales,
    registers_of,
    row_values,
    scale_values,
    scaled_product,
    unpacked_once,
    widened_once,
    zero_values,
)
from sabir.compilation.backends.cpu.products.panels import PackedOperand, Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.products.spec import INTEGER_BITS, PART_STEPS, WORD, Product
from sabir.compilation.backends.cpu.products.tiles import (
    VECTORS,
    Tile,
    blocks_of,
    is_usual,
    scratch_rows,
    tiles,
    window_tiles,
)
from sabir.compilation.backends.cpu.products.winograd import NO_CONVOLUTION, add_winograd, why_direct
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import Computed, Entry, count_of
from sabir.loops import SMALL_FLOATS, Contract, Expression, Size, element_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.emit.nest import Nest
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.fusion.views import Located
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Sizes

_WORD_BYTES = WORD // 8
_OWN_FILTERS = Reason(
    "filters are packed for this convolution alone, in panels that leave few columns unused"
)
_LONG_PIECES = Reason("memory is read in pieces as long as shares are wide")
_COLUMNS = Reason("its columns are side by side, not its rows")

# ---------------------------------------------------------------- products


def add_product(builder: PlanBuilder, group: Group) -> None:
    """Add the entry of a product with its epilogue, and the entries that pack its operands, to a plan."""
    contract, nesting = contract_of(group.members[0]), product_nesting(builder, group)
    loops, _ = _merged(nesting, contract)
    b, a = loops.places.pop(), loops.places.pop()
    direct = why_direct(builder, contract, loops, a, b)
    if direct is None:
        add_winograd(builder, group, _nest(builder, contract, loops), loops, (a, b))
        return
    if direct is not NO_CONVOLUTION:
        about = (*group.members, *group.inlined)
        builder.decisions.add(about, "algorithm", "direct", "winograd", direct)
    builder.entries.append(product_entry(builder, group, nesting))


def is_by_winograd(builder: PlanBuilder, group: Group) -> bool:
    """Return whether a product is computed by Winograd's algorithm."""
    contract = contract_of(group.members[0])
    loops, _ = _merged(product_nesting(builder, group), contract)
    b, a = loops.places.pop(), loops.places.pop()
    return why_direct(builder, contract, loops, a, b) is None


def product_nesting(builder: PlanBuilder, group: Group) -> Nesting:
    """Return the loops of a product and its epilogue; the last two places are its operands."""
    contract = contract_of(group.members[0])
    operands = map(builder.grouping.views.locate, builder.grouping.operands[contract])
    return with_operands(nesting_of(group, builder.grouping), contract, *operands)


def _nest(builder: PlanBuilder, contract: Contract, nesting: Nesting) -> Nest:
    nest = nest_of(nesting, builder.target.vector_bits, builder.heuristics, inner=len(nesting.sizes) - 1)
    return replace(nest, lanes=lanes_of(builder, contract.element))  # not those of the epilogue


def product_entry(
    builder: PlanBuilder, group: Group, nesting: Nesting, whole: Mapping[str, int] | None = None
) -> Entry:
    """Return the entry of a product in tiles, and add the entries that pack its operands to the plan.

    `whole` maps symbols of the number of rows to the sizes for which tiles are chosen.
    """
    contract = contract_of(group.members[0])
    nesting, row_axes = _merged(nesting, contract)
    b, a = nesting.places.pop(), nesting.places.pop()
    nest = _nest(builder, contract, nesting)
    rows = count_of(nesting.sizes[-row_axes - 1 : -1])
    if whole and not isinstance(rows, int):
        rows = rows.substitute(whole)
    entry = Entry([], nodes=builder.origins.labels([*group.members, *group.inlined]))
    choices = _tiles(builder, contract, rows, entry)
    depth, run = _depth(contract, a.located)
    second = direct_operand(builder, contract, b, nesting.sizes[:-2], entry) or packed_operand(
        builder, contract, b, nesting.sizes[: -row_axes - 1], choices[0][1].vectors, run
    )
    entry.flops = 2 * count_of([n for n, _ in depth]) * count_of(nesting.sizes)
    entry.reaches.append(
        builder.reach(a.located, a.element, [*zip(nesting.sizes[:-1], a.strides[:-1], strict=True), *depth])
    )
    for limit, tile in choices:
        product = replace(
            _tiled(nest, contract, tile),
            row_axes=row_axes,
            narrow=narrow_of(contract),
            apart=depth[-1][1] != 1,
            direct=isinstance(second, DirectOperand),
            transposed=isinstance(second, DirectOperand) and second.transposed,
            streamed=_is_streamed(builder, second, rows),
            long=contract.is_float and not _is_short(depth if contract.scale is None else depth[-1:]),
        )
        product, blocks = _formed(builder, product, contract, depth, entry)
        values = {
            "nest": nest_values(builder, nest, nesting, entry, entry.scratch),
            "a": builder.pointer(a.located, a.element, entry),
            "b": second.start(builder, entry),
            **_product_values(builder, product, blocks, a, nesting.sizes, second),
            **zero_values(builder, contract, entry),
            **scale_values(builder, contract, entry, tile.vectors),
            **row_values(builder, contract, entry),
        }
        note_writes(builder, entry, nesting, product.signature.span("nest", "sizes"))
        entry.choices.append((rows, limit or 0, product, product.signature.pack(values)))
        if limit is None:
            _decide_operand(builder, contract, b, product, entry)
    return entry


def _is_streamed(builder: PlanBuilder, second: PackedOperand | DirectOperand, rows: Size) -> bool:
    """Return whether a product has few rows and streams its second operand, with stride 1 along columns."""
    if not isinstance(second, DirectOperand) or second.transposed:
        return False
    return isinstance(rows, int) and rows <= builder.heuristics.few_rows


def _decide_operand(
    builder: PlanBuilder, contract: Contract, b: Place, product: Product, entry: Entry
) -> None:
    """Record how a product reads its second operand."""
    add, subject = builder.decisions.add, "second operand"
    packed = why_packed(builder.heuristics, builder.lowered, contract, b.located)
    if packed is not None:
        if is_constant(builder.lowered, b.located):
            form = "second operand packed once, as {}" if product.narrow else "second operand packed once"
            add(entry.nodes, subject, Reason(form, (product.narrow,)), because=CONSTANT)
        else:
            add(entry.nodes, subject, "second operand packed in each run", "read in place", packed)
        return
    rows, few = contract.shape[-2], builder.heuristics.few_rows
    if product.streamed:
        streamed = Reason("{} rows <= {}", (rows, few))
        add(entry.nodes, subject, "second operand read in place and streamed", because=streamed)
        add(entry.nodes, "threads", "one share for each thread", "smaller shares", _LONG_PIECES)
        return
    blocks = _COLUMNS if product.transposed else Reason("{} rows > {}", (rows, few))
    add(entry.nodes, subject, "second operand read in place in blocks", "streamed", blocks)


def _formed(
    builder: PlanBuilder, product: Product, contract: Contract, depth: list[tuple[Size, Size]], entry: Entry
) -> tuple[Product, list[tuple[Size, Size]]]:
    """Return the product with the fields of its element types, and its axes of `k`, which may be split."""
    rows = count_of(contract.shape[-1 - contract.rows : -1])
    if contract.scale is not None:
        return _scaled(builder, product, contract, depth, rows, entry), depth
    if product.narrow in SMALL_FLOATS and len(depth) == 1:
        blocks = in_blocks(depth[0], builder.heuristics)
        found = unpacked_once(builder, replace(product, depth_axes=len(blocks)), blocks, rows, entry)
        return (found, blocks) if found.blocked else (product, depth)
    if contract.is_float:
        product, depth = _blocked(builder, product, depth, rows, entry)
        return widened_once(builder, product, depth, rows, entry), depth
    return of_integers(builder, product, contract, depth, entry), depth


def _scaled(
    builder: PlanBuilder, product: Product, contract: Contract, depth: list[tuple[Size, Size]], rows: Size,
    entry: Entry,
) -> Product:  # fmt: skip
    scaled = scaled_product(builder.target, product, contract)
    return unpacked_once(builder, scaled, depth, rows, entry)


def _tiles(
    builder: PlanBuilder, contract: Contract, rows: Size, entry: Entry
) -> list[tuple[int | None, Tile]]:
    """Return pairs of a limit of rows, None for the last, and a tile; all have panels of one width."""
    known, columns = rows if isinstance(rows, int) else None, contract.shape[-1]
    heuristics = builder.heuristics
    lanes, registers = lanes_of(builder, contract.element), registers_of(builder.target, contract)
    unusual = _why_unusual(heuristics, contract, lanes)
    if unusual is None or not isinstance(columns, int):
        found = tiles(known, registers, heuristics)
    else:
        found = window_tiles(known, columns, lanes, registers, heuristics)
    _, tile = found[-1]
    chosen = Reason("tiles of {} rows by {} panels of {} vectors", tile)
    if unusual is None or tile.vectors == VECTORS:
        builder.decisions.add(entry.nodes, "tiles", chosen)
    else:
        builder.decisions.add(entry.nodes, "tiles", chosen, because=unusual)
    return found


def _why_unusual(heuristics: Heuristics, contract: Contract, lanes: int) -> Reason | None:
    """Return why panels may have another width than the usual one; None if they may not."""
    columns = contract.shape[-1]
    if not isinstance(columns, int) or contract.scale is not None:
        return None
    if contract.depth > 1:
        return _OWN_FILTERS
    unused = heuristics.unused_columns if contract.rows > 1 else heuristics.unused_matrix_columns
    if is_usual(columns, lanes, unused):
        return None
    return Reason(
        "{} columns would leave more than {:.0%} of panels of {} vectors unused", (columns, unused, VECTORS)
    )


def _blocked(
    builder: PlanBuilder, product: Product, depth: list[tuple[Size, Size]], rows: Size, entry: Entry
) -> tuple[Product, list[tuple[Size, Size]]]:
    """Return the product and its axes of `k`; tiles of one large panel are `blocked` along the first.

    So is one that reads `a` with a stride along `k` and has several axes of `k`, because each step of `k`
    reads another cache line of a row, and one of several axes whose number of steps is symbolic: its panels
    may be large. Scratch memory is reserved for the accumulators.
    """
    heuristics = builder.heuristics
    width = product.width * product.panels * element_bytes(product.element)  # of a row of accumulators
    waiting = width * (2 if product.long else 1)  # bytes of a row of a tile in scratch memory
    if product.streamed:
        entry.whole = True  # one share for each thread: wide strips are long contiguous reads
        _keep_scratch(entry, product.streamed_tiles * product.waiting_bytes)
        return product, depth
    if product.direct:
        _keep_scratch(entry, scratch_rows(rows, product.rows, heuristics) * waiting + product.direct_bytes)
        return product, depth
    count = count_of([n for n, _ in depth])
    blocks = blocks_of(count, width, rows, product.rows, heuristics)
    if blocks > 1:
        because = Reason("a panel of {} bytes > {}", (count * width, heuristics.large_panel))
        builder.decisions.add(entry.nodes, "k", Reason("{} blocks of k", (blocks,)), "one", because)
    along_first = len(depth) > 1 and (product.apart or not isinstance(count, int))
    if product.panels > 1 or (blocks == 1 and not along_first):
        return replace(product, depth_axes=len(depth)), depth
    if len(depth) == 1:
        ((count, step),) = depth
        part = count // blocks
        depth = [(blocks, part * step), (part, step)]
    _keep_scratch(entry, scratch_rows(rows, product.rows, heuristics) * waiting)
    return replace(product, depth_axes=len(depth), blocked=True), depth


def _is_short(depth: Sequence[tuple[Size, Size]]) -> bool:
    """Return whether `k` is known to be so short that one sum runs over all of it: PART_STEPS or less."""
    count = count_of([n for n, _ in depth])
    return isinstance(count, int) and count <= PART_STEPS


def _keep_scratch(entry: Entry, size: int) -> None:
    """Raise the scratch memory of an entry to at least `size` bytes, unless its size is symbolic."""
    if isinstance(entry.scratch, int):
        entry.scratch = max(entry.scratch, size)


def _merged(nesting: Nesting, contract: Contract) -> tuple[Nesting, int]:
    """Return the loops with axes merged where all strides allow it, and the number of axes of rows."""
    if contract.rows == 1:
        return merged(nesting, fixed=2), 1
    count = len(nesting.sizes)
    first = count - 1 - contract.rows
    nesting.reduced = tuple(first <= axis < count - 1 for axis in range(count))  # not merged with the batch
    found = merged(nesting, fixed=1)
    rows = sum(found.reduced)
    if not rows:
        found.sizes = (*found.sizes[:-1], 1, found.sizes[-1])
        found.places = [p._replace(strides=(*p.strides[:-1], 0, p.strides[-1])) for p in found.places]
        rows = 1
    found.reduced = (False,) * len(found.sizes)
    return found, rows


def _depth(contract: Contract, a: Located) -> tuple[list[tuple[Size, Size]], int]:
    """Return sizes and strides, in elements, of the merged axes of `k`; for integers the last has stride 1.

    The second result is the number of axes of the contract that merged into the last one.
    """
    if contract.scale is not None:
        return apart(contract, a), 1
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
    if found[-1][1] == 1 or found[-1][0] == 1:
        return [*found[:-1], (found[-1][0], 1)], runs[-1]
    return (found, runs[-1]) if contract.is_float else ([*found, (1, 1)], 0)


def contract_of(x: Expression) -> Contract:
    """Return the first member of a group, a product; raises TypeError if it is another expression."""
    if not isinstance(x, Contract):
        raise TypeError("the group begins with a product")
    return x


def _tiled(nest: Nest, contract: Contract, tile: Tile) -> Product:
    """Return the product in tiles, whose number of panels divides the number of all panels."""
    columns, width = contract.b.shape[-1], tile.vectors * nest.lanes
    panels, whole = 1, False
    if isinstance(columns, int):
        count = -(-columns // width)
        panels = max(n for n in range(1, tile.panels + 1) if count % n == 0)
        whole = columns % width == 0
    return Product(nest, contract.element, tile.rows, tile.vectors, panels, whole=whole)


def _product_values(
    builder: PlanBuilder, product: Product, depth: Sequence[tuple[Size, Size]], a: Place,
    sizes: Sequence[Size], second: PackedOperand | DirectOperand,
) -> dict[str, Packable]:  # fmt: skip
    """Return the sizes and strides (bytes) of both operands, and the rows of a job."""
    size = element_bytes(a.element)
    batch, rows, columns = sizes[: product.batch], sizes[product.batch : -1], sizes[-1]
    heuristics = builder.heuristics
    width = product.width * product.panels
    heuristics = builder.heuristics
    jobs = heuristics.jobs_of_a_core * builder.cores
    job = partial(rows_of_a_job, tile_rows=product.rows, width=width, most=heuristics.job_rows, jobs=jobs)
    job_rows = Computed(job, (count_of(rows), columns, count_of(batch)))
    strides = [stride * size for stride in a.strides[:-1]]
    counts, steps = zip(*depth, strict=True)
    read = steps if product.apart else steps[:-1]
    return {
        "row_strides": strides[product.batch :], "panel_bytes": second.panel, "depths": counts,
        "depth_strides": [step * size for step in read], "job_rows": job_rows,
        "a_batch": strides[: product.batch], "b_batch": second.strides,
    }  # fmt: skip


def with_operands(nesting: Nesting, contract: Contract, a: Located, b: Located) -> Nesting:
    """Append the operands to the places of a nest, so that axes merge only if their strides allow it."""
    last = contract.a.rank - contract.depth
    rows = a.strides[last - contract.rows : last]
    still = (0,) * (contract.rows + 1)
    batch = _batch_strides(contract, contract.a.shape[: last - contract.rows], a)
    nesting.places.append(Place(a, contract.a.element, (*batch, *rows, 0)))
    batch = _batch_strides(contract, contract.b.shape[: -1 - contract.depth], b)
    nesting.places.append(Place(b, contract.b.element, (*batch, *still)))
    return nesting


def _batch_strides(contract: Contract, shape: Sizes, located: Located) -> list[Size]:
    """Return the strides, in elements, of an operand along the batch axes, 0 where it is broadcast."""
    head = contract.rank - contract.rows - 1
    missing = head - len(shape)
    own = zip(shape, located.strides[: len(shape)], contract.shape[missing:head], strict=True)
    return [0] * missing + [0 if d == 1 and w != 1 else s for d, s, w in own]


# ---------------------------------------------------------------- packing


def packed_operand(
    builder: PlanBuilder, contract: Contract, place: Place, batch: Sequence[Size], vectors: int = VECTORS,
    run: int = 1,
) -> PackedOperand:  # fmt: skip
    """Return the second operand in panels of `vectors`; `place` has its strides along the batch axes.

    A constant is packed once, in a setup entry, and products share the panels. `run` is the number of last
    axes of `k` that are contiguous in the first operand.
    """
    first, located = contract.b.rank - 1 - contract.depth, place.located
    axes = list(zip(contract.b.shape[first:], located.strides[first:], strict=True))
    own = [(n, s) for n, s in zip(batch, place.strides, strict=False) if s != 0]
    width, group = vectors * lanes_of(builder, contract.element), group_of(builder.target, contract)
    if contract.packs > 1 or contract.a_scale is not None:
        panels = Panels("int32", own, *_as_words(axes), width)
    elif is_in_words(contract):
        fields = WORD // INTEGER_BITS[contract.b.element]
        panels = Panels(contract.b.element, own, axes[:-1], axes[-1], width, fields=fields)
    else:
        panels = Panels(contract.b.element, own, axes[:-1], axes[-1], width, group, run)
    found = packed_panels(builder, contract, located, panels)
    packed_scales(builder, contract, vectors)
    return PackedOperand(found, panels.panel, _packed_strides(panels.item, batch, place.strides))


def _as_words(
    axes: Sequence[tuple[Size, Size]],
) -> tuple[list[tuple[Size, Size]], tuple[Size, Size]]:
    """Return the axes of `k`, and that of columns, of a matrix of packed bytes as one of words.

    Raises TypeError unless blocks are whole words that begin at multiples of a word.
    """
    *outer, (count, step), columns = axes
    words = _divided(count)
    found = [(n, _divided(stride)) for n, stride in outer]
    if step != 1:
        raise TypeError("bytes that pack integers are side by side along `k`")
    return [*found, (words, 1)], (columns[0], _divided(columns[1]))


def _divided(size: Size) -> int:
    """Return a number of bytes as one of words; raises TypeError for one that is symbolic or no multiple."""
    if not isinstance(size, int) or size % _WORD_BYTES:
        raise TypeError(f"{size} bytes are no whole words")
    return size // _WORD_BYTES


def _packed_strides(item: Size, batch: Sequence[Size], strides: Sequence[Size]) -> list[Size]:
    """Return the strides of panels along each batch axis, in bytes, 0 where the operand is broadcast."""
    found: list[Size] = []
    step = item
    for size, stride in zip(reversed(batch), reversed(strides[: len(batch)]), strict=True):
        found.append(0 if stride == 0 else step)
        step = step if stride == 0 else step * size
    return found[::-1]
