"""Chains: a product, windows over its results, and often a second product that reads the windows' results.

Nothing else reads these intermediate results. So the kernels can run band by band, and need memory only for
the rows of one band. This module finds chains, and chooses the number of rows of their bands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.jobs import up
from sabir.compilation.backends.cpu.products.direct import is_constant
from sabir.compilation.backends.cpu.products.entries import is_by_winograd
from sabir.compilation.fusion.views import VIEWS, Copy
from sabir.compilation.plan.decisions import NodesOf, Reason
from sabir.compilation.plan.entries import count_of
from sabir.loops import Contract, Pad, Slide, element_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.fusion.views import Located
    from sabir.loops import Expression, Size

ROWS = 1  # the axis of rows in the order (N, H, W, C)
_RANK, _TAPS = 4, 2  # the rank of images, the number of axes of taps
_FLOATS = frozenset({"float", "double"})

# the reasons for kernels that run for whole images
_VARYING = Reason("the weights of the windows vary from run to run")
_READ = Reason("something else reads the image")
_PADDING = Reason("its padding is computed by a kernel with other work")
_OTHER_RESULTS = Reason("the product has other results too")
_WINOGRAD = Reason("Winograd's algorithm computes whole images")
_SYMBOLIC = Reason("sizes or strides of the image are symbolic")
_NOT_BY_ROWS = Reason("its windows are not within whole rows of the image")
_IRREGULAR = Reason("the bands would have other rows of padding than those at the ends")


class BandedRows(NamedTuple):
    """The division of an image into bands of `rows` rows of results; the last band has the remaining rows.

    The windows produce `results` rows. Each reads `span` rows of the image, and begins `step` rows after the
    previous one. The image has `image` rows, after `before` rows of padding.
    """

    results: int
    image: int
    before: int
    step: int
    span: int
    rows: int = 0

    @property
    def number(self) -> int:
        """The number of bands."""
        return up(self.results, self.rows)

    @property
    def moved(self) -> int:
        """The number of rows of the image from the beginning of a band to that of the next."""
        return self.rows * self.step

    @property
    def kept(self) -> int:
        """The number of rows of the image at the end of a band that the next band reads too."""
        return self.span - self.step

    @property
    def read(self) -> int:
        """The number of rows of the image, with its padding, that a band reads."""
        return self.moved + self.kept

    @property
    def is_regular(self) -> bool:
        """Whether only the first band reads padding before the image, and only the last padding after it."""
        return (
            self.number > 1
            and 0 <= self.kept <= self.moved
            and self.before <= self.moved
            and self.moved * (self.number - 2) + self.read <= self.before + self.image
        )


class Chain(NamedTuple):
    """The groups of a chain, and the tensors between them.

    The windows read `image`. `between` is their result, if only `second` reads it; else both are None.
    """

    first: Group
    padding: tuple[Group, ...]
    windows: Group
    second: Group | None
    image: Expression
    between: Expression | None
    rows: BandedRows

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups; the last one runs last."""
        found = (self.first, *self.padding, self.windows)
        return found if self.second is None else (*found, self.second)


def chains_of(builder: PlanBuilder, groups: Iterable[Group]) -> dict[Group, Chain]:
    """Return the chains that can run in bands, by their last groups."""
    found: dict[Group, Chain] = {}
    used: dict[Group, Group] = {}  # the groups of chains, with the windows of their chain
    for group in groups:
        chain = _chain(builder, group) if group.kind == "windows" else None
        if isinstance(chain, Chain):
            other = next((used[g] for g in chain.groups if g in used), None)
            if other is None:
                found[chain.groups[-1]] = chain
                used.update(dict.fromkeys(chain.groups, group))
                continue
            chain = Reason("its product is in the bands of {}", (NodesOf(other.members[0]),))
        if chain is not None:
            reject(builder, group, chain)
    return found


def reject(builder: PlanBuilder, windows: Group, because: Reason) -> None:
    """Record the reason why the kernels around windows run for whole images."""
    builder.decisions.add((*windows.members, *windows.inlined), "bands", "whole images", "bands", because)


def _chain(builder: PlanBuilder, windows: Group) -> Chain | Reason | None:
    """Return the chain around windows or the reason against bands; None if no product precedes them."""
    grouping, slide = builder.grouping, windows.members[0]
    if not isinstance(slide, Slide) or slide.element not in _FLOATS or len(windows.space) != _RANK:
        return None
    image, weights = grouping.operands[slide]
    at = grouping.views.locate(image)
    writers = _writers(builder, at.base)
    if not writers or not _is_product(builder, writers[0]):
        return None
    if slide.weights is not None and not is_constant(builder.lowered, grouping.views.locate(weights)):
        return _VARYING
    if _readers(builder, at.base) != [slide]:
        return _READ
    if is_by_winograd(builder, writers[0]):
        return _WINOGRAD
    first, *padding = writers
    if not all(_fills(part, at.base) for part in padding):
        return _PADDING
    if [x for x in first.members if x in grouping.stored] != [_written(first, at.base)]:
        return _OTHER_RESULTS
    second, between = _second(builder, windows)
    rows = _rows(builder, slide, at)
    if isinstance(rows, Reason):
        return rows
    rows = _in_bands(builder, rows, [at.base] if between is None else [at.base, between])
    if isinstance(rows, Reason):
        return rows
    return Chain(first, tuple(padding), windows, second, at.base, between, rows)


def _readers(builder: PlanBuilder, x: Expression) -> list[object]:
    """Return the readers of an expression, also through views; None represents the reader of an output."""
    grouping = builder.grouping
    found: list[object] = [None] if x in grouping.outputs.values() else []
    for user in grouping.users.get(x, ()):
        found += _readers(builder, user) if isinstance(user, VIEWS) else [user]
    return found


def _writers(builder: PlanBuilder, x: Expression) -> Sequence[Group]:
    """Return the groups that write an image; of a Pad, the first is the group of its operand.

    An expression that no group computes, such as a Join, has none.
    """
    if isinstance(x, Pad):
        return builder.grouping.writers[x]
    return [builder.grouping.of[x]] if x in builder.grouping.of else []


def _is_product(builder: PlanBuilder, group: Group) -> bool:
    """Return whether a group is a tiled product of a float image, by NHW places, with constant weights."""
    contract = group.members[0]
    if not isinstance(contract, Contract) or group.kind != "product" or len(group.space) != _RANK:
        return False
    if contract.rows != _RANK - 1 or contract.element not in _FLOATS or contract.scale is not None:
        return False
    b = builder.grouping.views.locate(builder.grouping.operands[contract][1])
    return is_constant(builder.lowered, b)


def _written(group: Group, target: Expression) -> Expression | None:
    """Return the member of a group that is the target or is written into it; None if there is none."""
    return next((x for x in group.members if x is target or _into(x) is target), None)


def _into(x: Expression) -> Expression | None:
    return x.into if isinstance(x, Copy) else None


def _fills(group: Group, target: Expression) -> bool:
    """Return whether a group only fills a part of a padded tensor."""
    return group.kind == "nest" and len(group.members) == 1 and _into(group.members[0]) is target


def _rows(builder: PlanBuilder, slide: Slide, at: Located) -> BandedRows | Reason:
    """Return the rows of windows and image, not yet divided into bands, or the reason against bands."""
    image, line = at.base, _line(builder, at.base)
    *_, taps, beside = slide.operand.shape
    pad = image.before[ROWS] if isinstance(image, Pad) else 0
    items, inside, *_ = (image.operand if isinstance(image, Pad) else image).shape
    numbers = [pad, inside, slide.shape[ROWS], taps, at.strides[ROWS], at.strides[-2]]
    if not all(isinstance(n, int) for n in numbers):
        return _SYMBOLIC
    if not line or at.offset != 0 or slide.taps != _TAPS or not items == image.shape[0] == slide.shape[0]:
        return _NOT_BY_ROWS
    before, inside, results, taps, step, tap = (n for n in numbers if isinstance(n, int))
    across = [*zip(slide.operand.shape[2:-2], at.strides[2:-2], strict=True), (beside, at.strides[-1])]
    if results < 1 or step % line or tap % line or not _is_inside(across, line):
        return _NOT_BY_ROWS
    return BandedRows(results, inside, before, step // line, (taps - 1) * (tap // line) + 1)


def _line(builder: PlanBuilder, x: Expression) -> int:
    """Return the number of elements of a row of an image; 0 if its rows are not adjacent in memory."""
    if x.rank != _RANK:
        return 0
    line = count_of(x.shape[ROWS + 1 :])
    beside = builder.grouping.views.locate(x).strides[ROWS] == line
    return line if beside and isinstance(line, int) else 0


def _is_inside(extents: Sequence[tuple[Size, Size]], line: int) -> bool:
    """Return whether loops with these (size, stride) pairs stay within a row of `line` elements."""
    last: Size = 0
    for size, stride in extents:
        last += (size - 1) * stride
    return isinstance(last, int) and last < line


def _second(builder: PlanBuilder, windows: Group) -> tuple[Group | None, Expression | None]:
    """Return the product that is the only reader of the windows' results, and the results; else two Nones."""
    grouping = builder.grouping
    stored = [x for x in windows.members if x in grouping.stored]
    if len(stored) != 1 or _into(stored[0]) is not None:
        return None, None
    (between,) = stored
    readers, line = _readers(builder, between), _line(builder, between)
    contract = readers[0] if len(readers) == 1 else None
    group = grouping.of.get(contract) if isinstance(contract, Contract) else None
    if not line or group is None or not isinstance(contract, Contract) or not _is_product(builder, group):
        return None, None
    if is_by_winograd(builder, group):
        return None, None
    if group.members[0] is not contract or group.space[: ROWS + 1] != windows.space[: ROWS + 1]:
        return None, None
    a = grouping.views.locate(grouping.operands[contract][0])
    across = list(zip(contract.a.shape[2:], a.strides[2:], strict=True))
    if a.base is not between or a.offset != 0 or a.strides[ROWS] != line or not _is_inside(across, line):
        return None, None
    return group, between


def _in_bands(builder: PlanBuilder, rows: BandedRows, kept: Sequence[Expression]) -> BandedRows | Reason:
    """Return bands whose rows of the tensors `kept` fit the cache together, or the reason against bands."""
    cores, heuristics = builder.cores, builder.heuristics
    lines = [line_bytes(builder, x) for x in kept]
    whole = lines[0] * (rows.before + rows.image) + sum(lines[1:]) * rows.results
    items = kept[0].shape[0]
    whole *= items if isinstance(items, int) else 1
    if whole <= heuristics.banded_bytes * cores:
        form = "{} bytes between the kernels <= {} for each of {} cores"
        return Reason(form, (whole, heuristics.banded_bytes, cores))
    a_row = lines[0] * rows.step + sum(lines[1:])
    twice = lines[0] * max(rows.span - rows.step, 0)
    most = (heuristics.band_bytes - twice) // a_row
    if most < 1:
        return Reason("{} bytes of a band of one row > {}", (a_row + twice, heuristics.band_bytes))
    count = up(up(rows.results, most), cores) * cores
    found = rows._replace(rows=up(rows.results, count))
    return found if found.is_regular else _IRREGULAR


def line_bytes(builder: PlanBuilder, x: Expression) -> int:
    """Return the bytes of a row of an image."""
    return _line(builder, x) * element_bytes(x.element)
