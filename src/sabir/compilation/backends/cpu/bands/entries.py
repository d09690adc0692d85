"""The entries of chains: kernels that run for one band of rows after another.

The kernels are the same as for a whole image. Their arguments contain symbols, such as the first row of the
image that a band computes and the number of rows. They are laid out for the first band, one in the middle and
the last one; from band to band, the address of a tensor advances by the bytes of its rows. If one thread
computes two consecutive bands, it copies the rows that both read; else both bands compute them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.bands.chains import ROWS, chains_of, line_bytes, reject
from sabir.compilation.backends.cpu.bands.kernel import MOST_TENSORS, Bands
from sabir.compilation.backends.cpu.elementwise.entries import nest_entry
from sabir.compilation.backends.cpu.elementwise.nesting import Nesting, Place, nesting_of
from sabir.compilation.backends.cpu.emit.nest import Load, Position, TakeStep
from sabir.compilation.backends.cpu.products.entries import product_entry, product_nesting
from sabir.compilation.backends.cpu.windows.entries import windows_entry, windows_nesting
from sabir.compilation.fusion.views import Copy, Located
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import BandPart, BandParts, Entry
from sabir.ir import Expr, symbol
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sabir.compilation.backends.cpu.bands.chains import BandedRows, Chain
    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.bounds import Reach
    from sabir.compilation.plan.entries import Buffer
    from sabir.loops import Expression, Size

# the symbols of a band: the first row of the image that it computes, relative to row `band * moved`; and the
# numbers of rows of the image that are computed, of padding before and after it, of results, and of rows
# that are copied from the previous band
_SYMBOLS = [symbol(f"band:{name}") for name in ("first", "image", "before", "after", "results", "kept")]
_FIRST, _IMAGE, _BEFORE, _AFTER, _RESULTS, _KEPT = _SYMBOLS
_TWO_WAYS = Reason("its kernels read a tensor along different rows")
_SYMBOLIC = Reason("what its kernels read depends on sizes that only a run knows")
_LONG_SHARES = Reason("the first band of a share computes rows that the one before computes too")
_PACKED = 3  # packed operands of the kernels of a chain, at most
_LINE = 64  # bytes to which memory between kernels is rounded


class _Work(NamedTuple):
    """A kernel of a chain: its group and its loops over the whole image.

    From band to band, the loops advance by `moved` rows. In band b, they run over `rows` rows, from row
    `b * moved + first` on.
    """

    group: Group
    nesting: Nesting
    moved: int
    first: Size
    rows: Size

    def restricted(self) -> Nesting:
        """Return the loops over the rows of a band of one item of the batch."""
        places: list[Place] = []
        for place in self.nesting.places:
            offset = place.located.offset + self.first * place.strides[ROWS]
            places.append(place._replace(located=place.located._replace(offset=offset)))
        return replace(self.nesting, sizes=(1, self.rows, *self.nesting.sizes[ROWS + 1 :]), places=places)


class BandedChain(NamedTuple):
    """A chain in bands: its kernels, and for each tensor the bytes between items and between bands."""

    chain: Chain
    works: list[_Work]
    moves: dict[Expression, tuple[int, int]]


def banded_chains(builder: PlanBuilder, groups: Iterable[Group]) -> dict[Group, BandedChain]:
    """Return the chains that run in bands, by their last groups; other groups run for whole images."""
    found: dict[Group, BandedChain] = {}
    for last, chain in chains_of(builder, groups).items():
        works = list(_works(builder, chain))
        moves = _moves(chain, works)
        if isinstance(moves, Reason):
            reject(builder, chain.windows, moves)
        elif not all(_is_affine(work.nesting) for work in works):
            reject(builder, chain.windows, _SYMBOLIC)
        else:
            found[last] = BandedChain(chain, works, moves)
    return found


def schedule_bands(builder: PlanBuilder, groups: Sequence[Group]) -> Iterator[Group]:
    """Yield the groups outside of banded chains, in order; add the entry of a chain at its last group."""
    found = banded_chains(builder, groups)
    within = {group for banded in found.values() for group in banded.chain.groups}
    for group in groups:
        if group in found:
            add_bands(builder, found[group])
        elif group not in within:
            yield group


def add_bands(builder: PlanBuilder, banded: BandedChain) -> None:
    """Add the entry of a chain that runs in bands."""
    chain, works, moves = banded
    own = _own(builder, chain)
    parts = [BandPart(_copy(builder, chain), _KEPT)]
    parts += [BandPart(_made(builder, chain, work), work.rows) for work in works]
    builder.entries.append(_entry(builder, chain, parts, own, moves))


# ---------------------------------------------------------------- kernels


def _works(builder: PlanBuilder, chain: Chain) -> Iterable[_Work]:
    """Yield the kernels of a chain in the order in which they run."""
    rows = chain.rows
    for group in chain.padding:
        yield _Work(group, nesting_of(group, builder.grouping), rows.moved, *_padded(group, rows))
    yield _Work(chain.first, product_nesting(builder, chain.first), rows.moved, _FIRST, _IMAGE)
    yield _Work(chain.windows, windows_nesting(builder, chain.windows), rows.rows, 0, _RESULTS)
    if chain.second is not None:
        yield _Work(chain.second, product_nesting(builder, chain.second), rows.rows, 0, _RESULTS)


def _padded(group: Group, rows: BandedRows) -> tuple[Size, Size]:
    """Return the first row that a part of the padding fills in a band, and the number of rows."""
    copy = group.members[0]
    if not isinstance(copy, Copy):
        raise TypeError("padding is a copy of a number")
    if copy.starts[ROWS] == rows.before + rows.image:
        return -(rows.number - 1) * rows.moved, _AFTER
    return (_FIRST, _IMAGE) if copy.starts[ROWS] == rows.before else (0, _BEFORE)


def _is_affine(nesting: Nesting) -> bool:
    """Return whether sizes, strides and offsets are numbers, and no step depends on an index or a size.

    Only the number of items may be symbolic.
    """
    offsets = [place.located.offset for place in nesting.places]
    numbers = [*offsets, *(s for place in nesting.places for s in place.strides), *nesting.sizes[ROWS:]]
    fixed = not any(isinstance(step, (Position, TakeStep)) for step in nesting.steps)
    return fixed and all(isinstance(n, int) for n in numbers) and not nesting.arguments


def _moves(chain: Chain, works: Iterable[_Work]) -> dict[Expression, tuple[int, int]] | Reason:
    """Return the bytes by which the address of each tensor advances from item to item, and from band to band.

    Return the reason against bands if the kernels disagree about a tensor, or there are too many.
    """
    found: dict[Expression, tuple[int, int]] = {}
    for work in works:
        for place in work.nesting.places:
            base = place.located.base
            item, row, *_ = (s if isinstance(s, int) else -1 for s in place.strides)
            size = element_bytes(place.element)
            one = work.nesting.sizes[0] == 1
            move = 0 if one else item * size, row * work.moved * size
            if base not in {chain.image, chain.between} and found.setdefault(base, move) != move:
                return _TWO_WAYS
    count = len(found) + _PACKED
    return found if count <= MOST_TENSORS else Reason("{} tensors > {}", (count, MOST_TENSORS))


def _made(builder: PlanBuilder, chain: Chain, work: _Work) -> Entry:
    """Return the entry of a kernel for one band, with the tiles of the kernel for the whole image."""
    nesting = work.restricted()
    if work.group is chain.windows:
        return windows_entry(builder, work.group, nesting)
    if work.group.kind == "product":
        return product_entry(builder, work.group, nesting, _whole(chain.rows))
    return nest_entry(builder, work.group, nesting)


def _copy(builder: PlanBuilder, chain: Chain) -> Entry:
    """Return the entry that copies the last rows of the previous band to where the rows of a band begin."""
    image, line = chain.image, builder.grouping.views.locate(chain.image).strides[ROWS]
    source = Place(Located(image, chain.rows.moved * line, (1,)), image.element, (1,))
    target = Place(Located(image, 0, (1,)), image.element, (1,))
    nesting = Nesting((_KEPT * line,), (False,), [source, target], [Load(image.element, 0)], [(1, 0)])
    return nest_entry(builder, chain.first, nesting)


# ---------------------------------------------------------------- memory


def _own(builder: PlanBuilder, chain: Chain) -> dict[Buffer, int]:
    """Add the buffers between the kernels, separate in each thread; return them with their rounded bytes."""
    found: dict[Buffer, int] = {}
    for x, rows in ((chain.image, chain.rows.read), (chain.between, chain.rows.rows)):
        if x is None:
            continue
        size = rows * line_bytes(builder, x)
        buffer = builder.new_buffer("own", x.element, (1, rows, *x.shape[ROWS + 1 :]), size=size)
        builder.buffers[x] = buffer
        found[buffer] = -(-size // _LINE) * _LINE
    return found


def _entry(
    builder: PlanBuilder, chain: Chain, parts: list[BandPart], own: dict[Buffer, int],
    moves: Mapping[Expression, tuple[int, int]],
) -> Entry:  # fmt: skip
    """Return the entry that runs the kernels of a chain."""
    rows, items, whole = chain.rows, chain.image.shape[0], _whole(chain.rows)
    members = [x for group in chain.groups for x in (*group.members, *group.inlined)]
    entry = Entry([(None, 0, Bands(), [])], nodes=builder.origins.labels(members))
    builder.decisions.add(entry.nodes, "bands", Reason("{} bands of {} rows", (rows.number, rows.rows)))
    builder.decisions.add(entry.nodes, "threads", "one share for each thread", "smaller shares", _LONG_SHARES)
    by_buffer = {builder.buffers[x]: move for x, move in moves.items() if x in builder.buffers}
    entry.whole = True  # the first band of a share computes rows that the band before it computes too
    entry.bands = BandParts(items, rows.number, parts, own, by_buffer, _variants(rows))
    entry.scratch = sum(own.values()) + max(n for n in (p.entry.scratch for p in parts) if isinstance(n, int))
    for part, _ in parts:
        entry.buffers += [b for b in part.buffers if b not in own and b not in entry.buffers]
        entry.flops += _settled(part.flops, whole) * items
        outside = [reach for reach in part.reaches if reach.buffer not in own]
        part.reaches = [reach for reach in part.reaches if reach.buffer in own]
        entry.reaches += [_of_all(reach, whole, items, by_buffer) for reach in outside]
    return entry


def _of_all(
    reach: Reach, whole: Mapping[str, int], items: Size, moves: Mapping[Buffer, tuple[int, int]]
) -> Reach:
    """Return the reach of all bands of all items, from a reach with the symbols of a band."""
    extents = [(_settled(n, whole), _settled(stride, whole)) for n, stride in reach.extents]
    item, _ = moves.get(reach.buffer, (0, 0))
    extents.append((items, item // reach.width))
    return reach._replace(offset=_settled(reach.offset, whole), extents=extents)


def _settled(size: Size, symbols: Mapping[str, int]) -> Size:
    return size.substitute(symbols) if isinstance(size, Expr) else size


# ---------------------------------------------------------------- sizes


def _whole(rows: BandedRows) -> dict[str, int]:
    """Return the values of the symbols for the whole image: for tiles, flops and bounds, not for a kernel."""
    after = (rows.results - 1) * rows.step + rows.span - rows.before - rows.image
    return _sizes(0, rows.image, rows.results, before=rows.before, after=max(0, after))


def _variants(rows: BandedRows) -> tuple[dict[str, int], ...]:
    """Return the values of the symbols for the first band, one in the middle and the last one.

    Each of the latter two is followed by the variant for a thread that has computed the previous band.
    """
    kept, before = rows.kept, rows.before
    results = rows.results - (rows.number - 1) * rows.rows
    read = (results - 1) * rows.step + rows.span
    image = min(read, before + rows.image - (rows.number - 1) * rows.moved)
    after = read - image
    return (
        _sizes(0, rows.read - before, rows.rows, before=before),
        _sizes(-before, rows.read, rows.rows),
        _sizes(kept - before, rows.moved, rows.rows, kept=kept),
        _sizes(-before, image, results, after=after),
        _sizes(kept - before, image - kept, results, after=after, kept=kept),
    )


def _sizes(
    first: int, image: int, results: int, *, before: int = 0, after: int = 0, kept: int = 0
) -> dict[str, int]:
    found = zip(_SYMBOLS, (first, image, before, after, results, kept), strict=True)
    return {str(symbol): size for symbol, size in found}
