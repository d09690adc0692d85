"""HammingWindow: a raised cosine that stays above 0."""

from collections.abc import Iterator

from sabir.opsets.families.spectra import cosine_windows
from sabir.schema import Example, Operator

hamming_window = Operator("HammingWindow", summary="`25/46 - 21/46 cos(t)`, with t from 0 to a full turn.")

cosine_windows.declare(hamming_window, 25 / 46, 21 / 46)


@hamming_window.examples
def examples() -> Iterator[Example]:
    quarters, sixths = [4 / 46, 25 / 46, 1, 25 / 46], [4 / 46, 29 / 92, 71 / 92, 1, 71 / 92, 29 / 92]
    yield from cosine_windows.examples(17, quarters, sixths)
