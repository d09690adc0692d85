"""The entries of convolutions by Winograd's algorithms: which of them, in which tiles.

F(2x2) rounds as little as products do. F(4x4) multiplies less, 36 times for 16 results and not 64 times, but
rounds three times as much, and its filters are more than twice as large: it is for `precision="fast"` and
images that are known to be large.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.elementwise.entries import nest_arguments, note_writes
from sabir.compilation.backends.cpu.products.direct import is_constant
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.products.spec import PART_STEPS
from sabir.compilation.backends.cpu.products.tiles import window_tiles
from sabir.compilation.backends.cpu.products.winograd_kernel import GAP, Winograd, places_of
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import BufferNumber, Computed, Entry, Offset, count_of
from sabir.compilation.plan.jobs import tiles_of_a_job, up
from sabir.loops import HALVES, Contract, element_bytes, is_finite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.elementwise.nesting import Nesting, Place
    from sabir.compilation.backends.cpu.emit.nest import Nest
    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.fusion.views import Located
    from sabir.compilation.plan.entries import Buffer
    from sabir.loops import Size

_FILTERS = {"float"} | HALVES  # transformed as floats
_TAPS = 3  # of a window along each of its axes
_SMALL, _LARGE = 2, 4  # results of a tile along an axis
_ROW_AXES = 3  # the batch, height and width

# why a convolution is computed directly
NO_CONVOLUTION = Reason("it is no convolution")
_NOT_PLANAR = Reason("its images have not two axes")
_MERGED = Reason("its rows and columns are one axis")
_SYMBOLIC = Reason("the number of channels or filters is symbolic")
_APART = Reason("its windows are not side by side")
_VARYING = Reason("its filters vary from run to run")
_INFINITE = Reason("its filters may have infinities or NaN, whose differences are NaN")
_SYMBOLIC_IMAGE = Reason("the size of the image is symbolic")


def why_direct(
    builder: PlanBuilder, contract: Contract, nesting: Nesting, a: Place, b: Place
) -> Reason | None:
    """Return why none of Winograd's algorithms computes a product faster; None where one does.

    They are for convolutions: windows of 3x3 elements are side by side in an image, filters are constants,
    and finite: sums and differences of others are NaN. `nesting` has the loops, as few as possible. The
    answer is the same for every batch.
    """
    if contract.rows == 1 or contract.depth == 1:
        return NO_CONVOLUTION
    if contract.element != "float" or contract.b.element not in _FILTERS or contract.scale is not None:
        return Reason("{} by {} elements, not float", (contract.a.element, contract.b.element))
    if contract.rows != _ROW_AXES or contract.depth != _ROW_AXES or contract.rank != _ROW_AXES + 1:
        return _NOT_PLANAR
    *taps, channels = contract.a.shape[-_ROW_AXES:]
    height, width, columns = contract.shape[1:]
    if taps != [_TAPS, _TAPS]:
        return Reason("windows of {}x{}, not 3x3", tuple(taps))
    if nesting.sizes[-_ROW_AXES:] != (height, width, columns):
        return _MERGED
    if not isinstance(channels, int) or not isinstance(columns, int):
        return _SYMBOLIC
    least = builder.heuristics.winograd_channels
    if min(channels, columns) < least:
        form = "{} channels < {}" if channels < least else "{} filters < {}"
        return Reason(form, (min(channels, columns), least))
    filters, most = channels * columns, builder.heuristics.winograd_filters
    if filters > most and not (isinstance(height, int) and isinstance(width, int)):
        return Reason("{} channels times filters > {} for an image of symbolic size", (filters, most))
    few = _why_few(builder.heuristics, (height, width), _SMALL)
    return few or _why_unfit(builder, a.located, b.located)


def _why_unfit(builder: PlanBuilder, a: Located, b: Located) -> Reason | None:
    """Return why windows or filters in memory are not those of Winograd's algorithms, else None."""
    strides = a.strides
    if strides[-_ROW_AXES:] != (*strides[-2 * _ROW_AXES + 1 : -_ROW_AXES], 1):
        return _APART
    if not is_constant(builder.lowered, b):
        return _VARYING
    return None if is_finite(b.base) is True else _INFINITE


def _why_few(heuristics: Heuristics, image: Sequence[Size], results: int) -> Reason | None:
    """Return why an image has too few tiles to transform filters for it, else None."""
    tiles, least = _tiles_of_image(image, results), heuristics.winograd_tiles
    if not isinstance(tiles, int) or tiles >= least:
        return None
    return Reason("{} tiles of {}x{} < {}", (tiles, results, results, least))


def add_winograd(
    builder: PlanBuilder, group: Group, nest: Nest, nesting: Nesting, operands: tuple[Place, Place]
) -> None:
    """Add the entry of a convolution by Winograd's algorithm, and that of its filters."""
    contract, (a, b) = group.members[0], operands
    if not isinstance(contract, Contract):
        raise TypeError("the group begins with a product")
    entry = Entry([], nodes=builder.origins.labels([*group.members, *group.inlined]))
    tiling = _tiling(builder, contract, _results(builder, contract, entry))
    builder.decisions.add(entry.nodes, "tiles", Reason("tiles of {} rows by {} vectors", tiling.tile))
    packed, panel = _filters(builder, contract, b, tiling)
    entry.scratch = tiling.scratch
    *batch, height, width, filters = nesting.sizes
    tiles = count_of(batch) * _tiles_of_image((height, width), tiling.results)
    channels = contract.a.shape[-1]
    entry.flops = 2 * places_of(tiling.results) * channels * filters * tiles
    entry.reaches.append(builder.reach(a.located, a.element, _extents(contract, nesting, a)))
    arguments = nest_arguments(builder, nest, nesting, entry, entry.scratch)
    arguments += builder.pointer(a.located, a.element, entry)
    builder.use(packed, entry)
    arguments += [BufferNumber(packed), Offset(packed, 0)]
    arguments += [stride * element_bytes(a.element) for stride in a.strides[:-1]]
    arguments += [panel, channels, Computed(tiling.job, (tiles,))]
    spec = Winograd(
        nest, contract.element, *tiling.tile, whole=tiling.is_whole(filters), results=tiling.results,
        long=isinstance(channels, int) and channels > PART_STEPS,
    )  # fmt: skip
    entry.choices.append((None, 0, spec, arguments))
    note_writes(builder, entry, nesting)
    builder.entries.append(entry)


def _filters(builder: PlanBuilder, contract: Contract, b: Place, tiling: _Tiling) -> tuple[Buffer, Size]:
    """Return the transformed filters, and the bytes of a panel of them."""
    *depth, columns = zip(contract.b.shape, b.located.strides, strict=True)
    panels = Panels(
        contract.element, [], depth, columns, tiling.panel, winograd=tiling.results, source=contract.b.element
    )
    return packed_panels(builder, contract, b.located, panels), panels.panel


def _extents(contract: Contract, nesting: Nesting, a: Place) -> list[tuple[Size, Size]]:
    """Return the sizes and strides along which a convolution reads its image."""
    taps = zip(contract.a.shape[-_ROW_AXES:], a.located.strides[-_ROW_AXES:], strict=True)
    return [*zip(nesting.sizes[:-1], a.strides[:-1], strict=True), *taps]


class _Tiling(NamedTuple):
    """What a convolution is divided into.

    That is how many results a tile has along an axis, the rows and vectors of a tile of the products, the
    columns of a panel, scratch memory, and jobs.
    """

    results: int
    tile: tuple[int, int]
    panel: int
    scratch: Size
    job: Callable[[int], int]

    def is_whole(self, columns: Size) -> bool:
        """Return whether columns fill all panels."""
        return isinstance(columns, int) and columns % self.panel == 0


def _results(builder: PlanBuilder, contract: Contract, entry: Entry) -> int:
    """Choose how many results a tile has along an axis."""
    subject, precision = "algorithm", builder.settings.precision
    chosen = Reason("winograd F({0}x{0})", (_SMALL,))
    larger = Reason("winograd F({0}x{0})", (_LARGE,))
    if precision != "fast":
        rejected = Reason("the precision is {}", (precision,))
    elif not all(isinstance(n, int) for n in contract.shape[1:3]):
        rejected = _SYMBOLIC_IMAGE
    else:
        rejected = _why_few(builder.heuristics, contract.shape[1:3], _LARGE)
    if rejected is None:
        builder.decisions.add(entry.nodes, subject, larger, because="the precision is fast")
        return _LARGE
    builder.decisions.add(entry.nodes, subject, chosen, larger, rejected)
    return _SMALL


def _tiling(builder: PlanBuilder, contract: Contract, results: int) -> _Tiling:
    heuristics = builder.heuristics
    channels, columns, lanes = contract.a.shape[-1], contract.shape[-1], lanes_of(builder, contract.element)
    if not isinstance(channels, int) or not isinstance(columns, int):
        raise TypeError("the channels are known")
    size, places = element_bytes(contract.element), places_of(results)
    line = places * (up(channels, lanes) * lanes * size + GAP)
    most = max(heuristics.winograd_bytes // line, heuristics.winograd_job_least)
    most = min(most, heuristics.winograd_job_most)
    job = partial(tiles_of_a_job, most=most, cores=builder.host.cores)
    image = _tiles_of_image(contract.shape[1:3], results)
    usual = job(image) if isinstance(image, int) else most
    ((_, tile),) = window_tiles(usual, columns, lanes, builder.host.registers, heuristics)
    panel = tile.vectors * lanes
    scratch = most * line + (most + tile.rows) * places * panel * size
    return _Tiling(results, (tile.rows, tile.vectors), panel, scratch, job)


def _tiles_of_image(sizes: Sequence[Size], results: int) -> Size:
    """Return how many tiles cover an image of results."""
    return count_of([(size + (results - 1)) // results for size in sizes])
