"""Regions of images that are pooled, as an expression of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

# the API reference looks up the type of an inherited field here
# ruff: ignore[unused-import]  the same
from sabir.loops._expressions import (
    Expression,
    Number,
    Sizes,  # pyright: ignore[reportUnusedImport] - the same
)

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, eq=False)
class PoolRegions(Expression):
    """The `mean` or the `max` of each bin of regions `[R, rows, columns, C]` of images `[N, H, W, C]`.

    `counts`, of int64, begin with the item of the batch of each region; one below 0 is an error of the run.
    Without `places` bins have whole pixels: the rest of `counts` are the first row of each bin and the row
    after its last one, for all rows of bins, then the same of columns. They are inside the image, and a bin
    without pixels is 0. Else bins have samples at equal distances, interpolated between four neighbours: the
    rest of `counts` are how many along both axes, and `places` are where the rows of bins begin, then the
    columns, then the sizes of a bin along both axes. A sample more than a pixel outside counts as 0. The
    maximum is that of the neighbours times their weights.
    """

    op: str = ""
    bins: tuple[int, int] = (1, 1)
    images: Expression = field(default_factory=lambda: Number("float", ()))
    counts: Expression = field(default_factory=lambda: Number("int64", ()))
    places: Expression | None = None

    @property
    def operands(self) -> tuple[Expression, ...]:
        """The images and the tables."""
        return (self.images, self.counts, *(() if self.places is None else (self.places,)))

    def of(self, operands: Sequence[Expression]) -> PoolRegions:
        """Return the same of other operands, in the order of `operands`."""
        return replace(self, **dict(zip(("images", "counts", "places"), operands, strict=False)))
