"""HannWindow: one period of a raised cosine."""

from collections.abc import Iterator

from sabir.opsets.families.spectra import cosine_windows
from sabir.schema import Example, Operator

hann_window = Operator("HannWindow", summary="`(1 - cos(t)) / 2`, with t from 0 to a full turn.")

cosine_windows.declare(hann_window, 0.5, 0.5)


@hann_window.examples
def examples() -> Iterator[Example]:
    quarters, sixths = [0, 0.5, 1, 0.5], [0, 0.25, 0.75, 1, 0.75, 0.25]
    yield from cosine_windows.examples(17, quarters, sixths)
