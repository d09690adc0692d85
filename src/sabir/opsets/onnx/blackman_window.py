"""BlackmanWindow: a sum of two cosines."""

from collections.abc import Iterator

from sabir.opsets.families.spectra import cosine_windows
from sabir.schema import Example, Operator

blackman_window = Operator(
    "BlackmanWindow", summary="`0.42 - 0.5 cos(t) + 0.08 cos(2t)`, with t from 0 to a full turn."
)

cosine_windows.declare(blackman_window, 0.42, 0.5, 0.08)


@blackman_window.examples
def examples() -> Iterator[Example]:
    quarters, sixths = [0, 0.34, 1, 0.34], [0, 0.13, 0.63, 1, 0.63, 0.13]
    yield from cosine_windows.examples(17, quarters, sixths)
