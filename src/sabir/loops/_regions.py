"""Pooled regions of images, as an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops._expression import Expression, expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_RANK = 4


@expression
class PoolRegions(Expression):
    """The `mean` or the `max` of each bin of regions `[R, rows, columns, C]` of images `[N, H, W, C]`.

    `counts`, of int64, has a row for each region, which begins with the index of its image; an index below 0
    is an error of the run. Without `places`, bins have whole pixels, and the row goes on with the first pixel
    of a bin and the pixel after its last one, for all rows of bins, then for all columns of bins. They are
    inside the image, and a bin without pixels is 0.

    With `places` `[R, rows + columns + 2]`, bins have samples at equal distances, each interpolated between
    four neighbours: the row goes on with the numbers of samples of a bin along both axes, and `places` has
    where the rows of bins begin, where the columns of bins begin, and the sizes of a bin along both axes. A
    sample more than a pixel outside counts as 0. The maximum is that of the neighbours times their weights.
    """

    op: str
    bins: tuple[int, int]
    images: Expression
    counts: Expression
    places: Expression | None = None

    def violations(self) -> Iterator[str]:
        """Yield what is wrong with the ranks and the element types."""
        if self.rank != _RANK or self.images.rank != _RANK:
            yield "regions and images have four axes"
        if self.counts.element != "int64" or self.element != self.images.element:
            yield f"counts of {self.counts.element}, images of {self.images.element}"
