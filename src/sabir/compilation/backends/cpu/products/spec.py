"""The specification of a product kernel: its tile, its options and its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.terms import GROUPS, Dot, Groups
from sabir.compilation.plan.signature import KernelSignature, declared, of_kind
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.nest import Nest


PART_STEPS = 512  # steps of `k` in one sum of floats; a power of two
WORD = 32  # bits
INTEGER_BITS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "uint8": 8}
DIRECT_STEPS = 128  # steps of `k` in a block that a direct product copies
PANELS = KernelSignature(tensor="tensor", bytes="bytes")
"""The arguments of packed panels: their address, and the bytes of a panel."""
OF_ROWS = KernelSignature(tensor="tensor", row="stride", block="stride")
"""The arguments of what blocks of rows have: the address, and the strides of rows and of blocks."""
_STREAMED_BYTES = 3 << 13  # of the accumulators of a strip, which stay in the nearest cache


@dataclass(frozen=True, slots=True)
class Product:
    """A product whose epilogue is a nest over the axes [batch..., rows..., columns].

    A tile has `rows` rows by `panels` panels of `vectors` vectors. The options:

    - `depth_axes` is the number of axes of `k`. `a` has stride 1 along the last one, unless it is `apart`,
      like a transposed matrix.
    - `prefetch`: a job prefetches the next panels while it computes, because weights come from memory.
    - `blocked`: the first axis of `k` is a loop around all rows of a job, so that a job reads each panel
      from memory once. Between its iterations the accumulators are in scratch memory.
    - `whole`: the columns fill all panels.
    - `direct`: `b` is not packed; each job copies one block of `k` at a time into panels in scratch memory,
      before the accumulators. If it is `transposed`, `b` has stride 1 along `k`, not along the columns.
    - `streamed`: few rows, and `b` is read in place without copies, see `products/streaming`.
    - `dot`: the instruction that adds groups of integer products. If it is `ragged`, the last group of the
      last axis of `k` may be partial. `zero` is the element type of the zero point of `a`, if any.
    - `narrow`: the element type of the panels, if they are converted to floats.
    - `scaled` and `zeros`: the element types of the scales and zero points of `(b - zero) * scale`, whose
      panels have one line for each index of the first axis of `k`, a block. The products of a block are
      added up, and the sum times the scales is added to totals.
    - `words`: panels have words of 32 bits, which pack integers of `narrow` along `k`. If they are `centred`,
      the middle of the range of unsigned ones is subtracted. `lookup`: an instruction looks up their values
      in a table of 16 floats.
    - `rounded`: `a` is of int8, and its blocks have scales and sums; panels have words. If it is `dotted`,
      an instruction multiplies and adds four of its elements, else they are converted to floats.
    - `unpacks`: panels, or blocks of them, are converted once for all rows of a job, into scratch memory
      before the accumulators.
    - `long`: `k` of floats may be so long that it is summed in parts, see `products/totals`.
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
    transposed: bool = False
    dot: Dot | None = None
    ragged: bool = False
    zero: str = ""
    narrow: str = ""
    scaled: str = ""
    zeros: str = ""
    words: bool = False
    centred: bool = False
    lookup: bool = False
    rounded: bool = False
    dotted: bool = False
    unpacks: bool = False
    long: bool = False

    @property
    def signature(self) -> KernelSignature:
        """The arguments.

        The strides of `a` are along the axes of rows (`row_strides`), `k` (`depth_strides`, without the last
        axis unless it is `apart`) and the batch. `panel_bytes` is the bytes of a panel of `b`, or the stride
        of its rows (`transposed`: columns) if it is read in place. Scales and zero points have panels of
        their own.
        """
        steps = self.depth_axes if self.apart else self.depth_axes - 1
        return declared(
            nest=self.nest.signature, a="tensor", b="tensor", row_strides=("stride", self.row_axes),
            panel_bytes="bytes", depths=("size", self.depth_axes), depth_strides=("stride", steps),
            job_rows="size", a_batch=("stride", self.batch), b_batch=("stride", self.batch),
            **of_kind("tensor", ["zero"] if self.zero else []), **dict.fromkeys(self.parameters, PANELS),
            **dict.fromkeys(("row_scale", "row_sum") if self.rounded else (), OF_ROWS),
        )  # fmt: skip

    @property
    def parameters(self) -> dict[str, str]:
        """The element types of the panels of scales and zero points, by the names of their arguments."""
        return {name: element for name, element in (("scale", self.scaled), ("zeros", self.zeros)) if element}

    @property
    def batch(self) -> int:
        """The number of batch axes."""
        return self.nest.axes - self.row_axes - 1

    @property
    def group(self) -> Groups:
        """The number of products that one instruction adds in a lane."""
        return 1 if self.dot is None else GROUPS[self.dot]

    @property
    def fields(self) -> int:
        """The steps of `k` in a line of a panel."""
        return WORD // INTEGER_BITS[self.narrow] if self.words else 1

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
        axes += " transposed" if self.transposed else ""
        axes += f" by {self.narrow}" if self.narrow else ""
        axes += " in words" if self.words else ""
        axes += " centred" if self.centred else ""
        axes += " lookup" if self.lookup else ""
        axes += " rounded" if self.rounded else ""
        axes += " dotted" if self.dotted else ""
        axes += f" scaled by {self.scaled}" if self.scaled else ""
        axes += f" zeros {self.zeros}" if self.zeros else ""
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
        """The bytes of the accumulators of a tile."""
        return self.rows * self.width * self.panels * element_bytes(self.element)

    @property
    def waiting_bytes(self) -> int:
        """The bytes of a tile in scratch memory: accumulators, then the totals of a `long` product."""
        return self.tile_bytes * (2 if self.long else 1)

    @property
    def streamed_tiles(self) -> int:
        """The largest number of tiles in a strip of a streamed product."""
        return max(1, _STREAMED_BYTES // self.tile_bytes)

    @property
    def is_windowed(self) -> bool:
        """Whether there are several axes of rows, or of `k`."""
        return self.row_axes > 1 or self.depth_axes > 1
