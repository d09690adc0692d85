"""Pooling of regions of images (RoiAlign, MaxRoiPool), as an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sabir.loops._expression import Expression, expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_RANK = 4


@expression
class PoolRegions(Expression):
    """The `mean` or the `max` of each bin of regions `[R, rows, columns, C]` of images `[N, H, W, C]`.

    `counts`, of int64, has a row for each region, which begins with the index of its image; an index below 0
    is an error of the run. There are two forms:

    - Without `places`, a bin is a range of pixels. The row of `counts` is `[image, begin, end of each row of
      bins..., begin, end of each column of bins...]`; all are inside the image, and an empty bin is 0.
    - With `places`, a bin is a grid of samples at equal distances, each interpolated between four pixels. The
      row of `counts` is `[image, samples along H, samples along W]` of a bin. The row of `places`, of
      `rows + columns + 2` numbers, is `[begin of each row of bins..., begin of each column of bins..., height
      of a bin, width of a bin]`. A sample more than a pixel outside of the image is 0. The maximum is the
      greatest product of a pixel and its weight.
    """

    op: str
    bins: tuple[int, int]
    images: Expression
    counts: Expression
    places: Expression | None = None

    checks_indices: ClassVar[bool] = True

    def violations(self) -> Iterator[str]:
        """Yield violations of the ranks and the element types."""
        if self.rank != _RANK or self.images.rank != _RANK:
            yield "regions and images have four axes"
        if self.counts.element != "int64" or self.element != self.images.element:
            yield f"counts of {self.counts.element}, images of {self.images.element}"
