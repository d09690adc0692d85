"""The entries of convolutions by Winograd's algorithms: which of them, in which tiles.

F(2x2) rounds as little as products do. F(4x4) multiplies less, 36 times for 16 results and not 64 times, but
rounds three times as much, and its filters are more than twice as large: it is for `precision="fast"` and
images that are known to be large.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.elementwise.entries import nest_values, note_writes
from sabir.compilation.backends.cpu.products.direct import is_constant
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.products.spec import PART_STEPS
from sabir.compilation.backends.cpu.products.tiles import window_tiles
from sabir.compilation.backends.cpu.products.winograd_kernel import GAP, Winograd, places_of
from sabir.compilation.plan.entries import Computed, Entry, count_of, start_of
from sabir.compilation.plan.jobs import tiles_of_a_job, up
from sabir.loops import HALVES, Contract, element_bytes, is_finite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.elementwise.nesting import Nesting, Place
    from sabir.compilation.backends.cpu.emit.nest import Nest
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.plan.entries import Buffer
    from sabir.loops import Size

_FILTERS = {"float"} | HALVES  # transformed as floats
_TAPS = 3  # of a window along each of its axes
_SMALL, _LARGE = 2, 4  # results of a tile along an axis
_ROW_AXES = 3  # the batch, height and width
_LEAST_CHANNELS = 32  # and filters: with fewer, sums and differences cost what multiplications do
_LEAST_TILES = 36  # of an image: with fewer, the filters, which are larger, take longer to come from memory
_MOST_FILTERS = 1 << 16  # times channels, for images of unknown size: more belong to small images mostly
_SCRATCH = 3 << 18  # bytes of the transformed tiles of a job, in the cache of a core
_FEW_TILES = 48  # of a job: with fewer, filters come from memory more slowly than they are multiplied
_MOST_TILES = 128


def is_winograd(builder: PlanBuilder, contract: Contract, nesting: Nesting, a: Place, b: Place) -> bool:
    """Return whether a product is a convolution that one of Winograd's algorithms computes faster.

    Its windows of 3x3 elements are side by side in an image, its filters are constants, and finite: sums and
    differences of others are NaN. `nesting` has its loops, as few as possible. The answer is the same for
    every batch.
    """
    if contract.element != "float" or contract.b.element not in _FILTERS or contract.scale is not None:
        return False
    if contract.rows != _ROW_AXES or contract.depth != _ROW_AXES or contract.rank != _ROW_AXES + 1:
        return False
    *taps, channels = contract.a.shape[-_ROW_AXES:]
    height, width, columns = contract.shape[1:]
    if taps != [_TAPS, _TAPS] or nesting.sizes[-_ROW_AXES:] != (height, width, columns):
        return False
    if not isinstance(channels, int) or not isinstance(columns, int):
        return False
    if min(channels, columns) < _LEAST_CHANNELS:
        return False
    if not _pays((height, width), channels * columns, _SMALL):
        return False
    strides = a.located.strides
    beside = strides[-_ROW_AXES:] == (*strides[-2 * _ROW_AXES + 1 : -_ROW_AXES], 1)
    return beside and is_constant(builder.lowered, b.located) and is_finite(b.located.base) is True


def _pays(image: Sequence[Size], filters: int, results: int) -> bool:
    """Return whether an image has so many tiles that transforming `filters` elements of 3x3 filters pays."""
    tiles = _tiles_of_image(image, results)
    if isinstance(tiles, int):
        return tiles >= _LEAST_TILES
    return results == _SMALL and filters <= _MOST_FILTERS


def add_winograd(
    builder: PlanBuilder, group: Group, nest: Nest, nesting: Nesting, operands: tuple[Place, Place]
) -> None:
    """Add the entry of a convolution by Winograd's algorithm, and that of its filters."""
    contract, (a, b) = group.members[0], operands
    if not isinstance(contract, Contract):
        raise TypeError("the group begins with a product")
    tiling = _tiling(builder, contract)
    packed, panel = _filters(builder, contract, b, tiling)
    entry = Entry([], tiling.scratch, nodes=builder.origins.labels([*group.members, *group.inlined]))
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


def _tiling(builder: PlanBuilder, contract: Contract) -> _Tiling:
    channels, columns, lanes = contract.a.shape[-1], contract.shape[-1], lanes_of(builder, contract.element)
    if not isinstance(channels, int) or not isinstance(columns, int):
        raise TypeError("the channels are known")
    size, results = element_bytes(contract.element), _SMALL
    if builder.settings.precision == "fast" and _pays(contract.shape[1:3], channels * columns, _LARGE):
        results = _LARGE
    places = places_of(results)
    line = places * (up(channels, lanes) * lanes * size + GAP)
    most = min(max(_SCRATCH // line, _FEW_TILES), _MOST_TILES)
    job = partial(tiles_of_a_job, most=most, cores=builder.host.cores)
    image = _tiles_of_image(contract.shape[1:3], results)
    usual = job(image) if isinstance(image, int) else most
    ((_, tile),) = window_tiles(usual, columns, lanes, builder.host.registers)
    panel = tile.vectors * lanes
    scratch = most * line + (most + tile.rows) * places * panel * size
    return _Tiling(results, (tile.rows, tile.vectors), panel, scratch, job)


def _tiles_of_image(sizes: Sequence[Size], results: int) -> Size:
    """Return how many tiles cover an image of results."""
    return count_of([(size + (results - 1)) // results for size in sizes])
