"""What a kernel of a product is: its tile and options, and where its arguments lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.terms import GROUPS, Dot, Groups
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.nest import Nest


PART_STEPS = 512  # of `k`, whose products of floats are one sum; a power of two
DIRECT_STEPS = 128  # of `k`, in a block that a direct product copies
_STREAMED_BYTES = 3 << 13  # of the sums of a strip, beside which rows pass through a near cache


@dataclass(frozen=True, slots=True)
class Product:
    """A product whose epilogue is a nest over `batch` axes, axes of rows, and columns.

    `depth_axes` are the axes of `k`; along the last one `a` lies side by side, or `apart`, as a transposed
    matrix does. A tile has `rows` rows by `panels` panels of `vectors` vectors. With `prefetch` the next
    panels are brought into the cache while these are computed: weights come from memory. A `blocked` one
    computes all rows of a job for each index of the first axis of `k` before the next: panels that the cache
    does not hold are read once for all of them. The sums wait in scratch memory. In a `whole` one the columns
    fill all panels. A `direct` one reads `b` where it lies, row by row, and copies a block of `k`
    into panels at a time, before the sums in scratch memory. A `streamed` one, of few rows, copies nothing:
    see `products/streaming`. In a `turned` direct one columns of `b` lie side by side, not rows.

    One of integers adds up groups of products by the instruction `dot`; it is `ragged` where groups may not
    fill the last axis of `k`. `zero` is the element type of the zero point of `a`, if it has one. The panels
    of one of floats may hold `narrow` numbers; those of a `scaled` one are multiplied by panels of that
    element type, which hold one line for each index of the first axis of `k`, less those of the element type
    `less`. One that `unpacks` computes what a panel, or a block of it, represents once for all rows of a job:
    these numbers wait in scratch memory, before the sums. A `long` one of floats may have so many `k` that
    they are added in parts, see `products/totals`.
    """

    nest: Nest
    element: str
    rows: int
    vectors: int
    panels: int = 1
    prefetch: bool = True
    row_axes: int = 1
    depth_axes: int = 1
    apart: bool = False
    blocked: bool = False
    whole: bool = False
    direct: bool = False
    streamed: bool = False
    turned: bool = False
    dot: Dot | None = None
    ragged: bool = False
    zero: str = ""
    narrow: str = ""
    scaled: str = ""
    less: str = ""
    unpacks: bool = False
    long: bool = False

    @property
    def batch(self) -> int:
        """The number of batch axes."""
        return self.nest.axes - self.row_axes - 1

    @property
    def group(self) -> Groups:
        """How many products one instruction adds up in a lane."""
        return 1 if self.dot is None else GROUPS[self.dot]

    @property
    def width(self) -> int:
        """The columns of a panel."""
        return self.vectors * self.nest.lanes

    def __str__(self) -> str:
        tile = f"tile {self.rows}x{self.panels}x{self.vectors}{' prefetch' if self.prefetch else ''}"
        axes = f" rows {self.row_axes} depth {self.depth_axes}{' blocked' if self.blocked else ''}"
        axes = axes if self.is_windowed else ""
        axes += " apart" if self.apart else ""
        axes += " direct" if self.direct else ""
        axes += " streamed" if self.streamed else ""
        axes += " turned" if self.turned else ""
        axes += f" by {self.narrow}" if self.narrow else ""
        axes += f" scaled by {self.scaled}" if self.scaled else ""
        axes += f" less {self.less}" if self.less else ""
        axes += " once" if self.unpacks else ""
        axes += " long" if self.long else ""
        if self.dot is not None:
            axes += f" groups of {self.group} by {self.dot}{' ragged' if self.ragged else ''}"
            axes += f" zero point {self.zero}" if self.zero else ""
        return f"product {self.element} {tile}{axes}{' whole' if self.whole else ''}\n{self.nest}"

    @property
    def direct_bytes(self) -> int:
        """The bytes of the panels of a block of `k` that a direct product copies."""
        return DIRECT_STEPS * self.width * self.panels * element_bytes(self.element)

    @property
    def tile_bytes(self) -> int:
        """The bytes of the sums of a tile."""
        return self.rows * self.width * self.panels * element_bytes(self.element)

    @property
    def waiting_bytes(self) -> int:
        """The bytes in which the sums of a tile wait, with the totals of a long product behind them."""
        return self.tile_bytes * (2 if self.long else 1)

    @property
    def streamed_tiles(self) -> int:
        """How many tiles a strip of a streamed product has at most."""
        return max(1, _STREAMED_BYTES // self.tile_bytes)

    @property
    def is_windowed(self) -> bool:
        """Whether there are several axes of rows, or of `k`."""
        return self.row_axes > 1 or self.depth_axes > 1


class ProductLayout:
    """Where the arguments of a product lie, after those of its nest.

    `a` and `b`: buffer and offset, then the strides of the axes of rows of `a` in bytes, the bytes of a panel
    of `b`, or of a row of it that is read directly, the sizes of the axes of `k`, the strides of `a` along
    all of them, but the last where `a` lies side by side, the rows of a job, and the strides of the batch
    axes of `a` and of `b`, in bytes; then buffer and offset of the zero point, if there is one, and of the
    panels of scales, and of what is subtracted, with the bytes of each.
    """

    def __init__(self, product: Product, nest_count: int) -> None:
        self.a, self.b = nest_count, nest_count + 2
        self.row_strides = nest_count + 4
        self.panel_bytes = self.row_strides + product.row_axes
        self.depths = self.panel_bytes + 1
        self.depth_strides = self.depths + product.depth_axes
        self.job_rows = self.depth_strides + product.depth_axes - (not product.apart)
        self.a_batch = self.job_rows + 1
        self.b_batch = self.a_batch + product.batch
        self.zero = self.b_batch + product.batch
        self.scale = self.zero + (2 if product.zero else 0)
        self.less = self.scale + (3 if product.scaled else 0)
        self.count = self.less + (3 if product.less else 0)
