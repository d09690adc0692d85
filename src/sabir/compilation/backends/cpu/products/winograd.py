"""The entries of convolutions by Winograd's algorithms: the choice of the algorithm, its tiles and jobs.

The rounding error of F(2x2, 3x3) is as small as that of direct products. F(4x4, 3x3) has 36 multiplications
for 16 results, where F(2x2, 3x3) has 64, but three times the rounding error, and filters more than twice as
large: it is chosen with `precision="fast"`, for images that are known to be large.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.elementwise.entries import nest_values, note_writes
from sabir.compilation.backends.cpu.jobs import tiles_of_a_job, up
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.products.spec import PART_STEPS
from sabir.compilation.backends.cpu.products.tiles import window_tiles
from sabir.compilation.backends.cpu.products.winograd_kernel import GAP, Winograd, places_of
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import Computed, Entry, count_of, start_of
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
_INFINITE = Reason("its filters may have infinities or NaN, whose differences are NaN")
_SYMBOLIC_IMAGE = Reason("the size of the image is symbolic")


def why_direct(
    builder: PlanBuilder, contract: Contract, nesting: Nesting, a: Place, b: Place
) -> Reason | None:
    """Return why a product is not computed by one of Winograd's algorithms; None if it is.

    They are for convolutions of 2-D images by 3x3 windows whose taps are as far apart as the windows, with
    finite filters: differences of infinities are NaN. Filters that vary are transformed in each run.
    `nesting` is the nest with merged axes. The answer does not depend on the size of the batch.
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
    return few or _why_unfit(contract, a.located, b.located)


def _why_unfit(contract: Contract, a: Located, b: Located) -> Reason | None:
    """Return why the strides of windows or the filters do not suit Winograd's algorithms; None if they do."""
    strides = a.strides
    if strides[-_ROW_AXES:] != (*strides[-2 * _ROW_AXES + 1 : -_ROW_AXES], 1):
        return _APART
    return None if contract.finite or is_finite(b.base) is True else _INFINITE


def _why_few(heuristics: Heuristics, image: Sequence[Size], results: int) -> Reason | None:
    """Return why an image has too few tiles for transformed filters; None if it has enough or is symbolic."""
    tiles, least = _tiles_of_image(image, results), heuristics.winograd_tiles
    if not isinstance(tiles, int) or tiles >= least:
        return None
    return Reason("{} tiles of {}x{} < {}", (tiles, results, results, least))


def add_winograd(
    builder: PlanBuilder, group: Group, nest: Nest, nesting: Nesting, operands: tuple[Place, Place]
) -> None:
    """Add the entry of a convolution by Winograd's algorithm, and the entry that transforms its filters."""
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
    values = {
        "nest": nest_values(builder, nest, nesting, entry, entry.scratch),
        "a": builder.pointer(a.located, a.element, entry), "b": start_of(packed),
        "row_strides": [stride * element_bytes(a.element) for stride in a.strides[:-1]],
        "panel_bytes": panel, "channels": channels, "job_tiles": Computed(tiling.job, (tiles,)),
    }  # fmt: skip
    builder.use(packed, entry)
    spec = Winograd(
        nest, contract.element, *tiling.tile, whole=tiling.is_whole(filters), results=tiling.results,
        long=isinstance(channels, int) and channels > PART_STEPS,
    )  # fmt: skip
    entry.choices.append((None, 0, spec, spec.signature.pack(values)))
    note_writes(builder, entry, nesting, spec.signature.span("nest", "sizes"))
    builder.entries.append(entry)


def _filters(builder: PlanBuilder, contract: Contract, b: Place, tiling: _Tiling) -> tuple[Buffer, Size]:
    """Return the buffer of the transformed filters, and the bytes of a panel."""
    *depth, columns = zip(contract.b.shape, b.located.strides, strict=True)
    panels = Panels(
        contract.element, [], depth, columns, tiling.panel, winograd=tiling.results, source=contract.b.element
    )
    return packed_panels(builder, contract, b.located, panels), panels.panel


def _extents(contract: Contract, nesting: Nesting, a: Place) -> list[tuple[Size, Size]]:
    """Return the sizes and strides, in elements, of the axes along which a convolution reads its image."""
    taps = zip(contract.a.shape[-_ROW_AXES:], a.located.strides[-_ROW_AXES:], strict=True)
    return [*zip(nesting.sizes[:-1], a.strides[:-1], strict=True), *taps]


class _Tiling(NamedTuple):
    """The tiles and jobs of a convolution.

    `results` is the results of a tile along an axis; `tile`, the rows and vectors of a GEMM tile of the
    products; `panel`, the columns of a panel; `scratch`, in bytes; `job` returns the tiles of a job.
    """

    results: int
    tile: tuple[int, int]
    panel: int
    scratch: Size
    job: Callable[[int], int]

    def is_whole(self, columns: Size) -> bool:
        """Return whether the number of columns is known and fills all panels."""
        return isinstance(columns, int) and columns % self.panel == 0


def _results(builder: PlanBuilder, contract: Contract, entry: Entry) -> int:
    """Return the number of results of a tile along an axis, and record the choice of the algorithm."""
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
    job = partial(tiles_of_a_job, most=most, cores=builder.cores)
    image = _tiles_of_image(contract.shape[1:3], results)
    usual = job(image) if isinstance(image, int) else most
    ((_, tile),) = window_tiles(usual, columns, lanes, builder.target.registers, heuristics)
    panel = tile.vectors * lanes
    scratch = most * line + (most + tile.rows) * places * panel * size
    return _Tiling(results, (tile.rows, tile.vectors), panel, scratch, job)


def _tiles_of_image(sizes: Sequence[Size], results: int) -> Size:
    """Return the number of tiles that cover an image, whose sizes are those of the results."""
    return count_of([(size + (results - 1)) // results for size in sizes])
