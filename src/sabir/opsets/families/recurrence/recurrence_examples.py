"""Examples of recurrent layers of one unit, whose numbers a room computes step by step with scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import ml_dtypes
import numpy as np

from sabir.schema import Example

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.opsets.typing import Array

NUMBERS = INPUT, WEIGHT, RECURRENT = 0.5, 0.8, -0.3  # all elements of X, of W and of R
STEPS = 3


class UnitLayer(NamedTuple):
    """One unit with `rows` equal weights in W and R, and what it computes from equal inputs."""

    rows: int
    outputs: Sequence[float]  # h after each step
    states: Sequence[tuple[float, float]]  # each state at first and at last


def over_time(
    layer: UnitLayer, opsets: Sequence[int], *, output_sequence: int, no_layout: int, layout: int
) -> Iterator[Example]:
    """Yield calls with two equal sequences, one for each of `opsets`.

    The other arguments are opsets: one with `output_sequence`, one before `layout`, and one with it.
    """
    x = _full(INPUT, STEPS, 2, 1)
    weights = _full(WEIGHT, 1, layer.rows, 1), _full(RECURRENT, 1, layer.rows, 1), None, None
    first, last = ([_full(value, 1, 2, 1) for value in column] for column in zip(*layer.states, strict=True))
    y = np.array(layer.outputs, np.float32).reshape(STEPS, 1, 1, 1).repeat(2, 2)
    count, inputs = 1 + len(first), (x, *weights, *first)
    for opset in opsets:
        yield Example(opset, *inputs, outputs=count, hidden_size=1, expect=[y, *last])
    yield Example(output_sequence, *inputs, output_sequence=1, direction="reverse", expect=[y[::-1]])
    batch_first = x.swapaxes(0, 1), *weights, *(s.swapaxes(0, 1) for s in first)
    expected = [y.transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in last)]
    yield Example(layout, *batch_first, outputs=count, layout=1, expect=expected)
    yield Example(no_layout, x[:0], *weights, *first, outputs=count, expect=[y[:0], *first])
    for dtype in (np.float16, ml_dtypes.bfloat16):
        cast = [None if v is None else v.astype(dtype) for v in inputs]
        yield Example(opsets[-1], *cast, expect=[y.astype(dtype)], tolerance=2e-3)


def both_ways(layer: UnitLayer, opset: int) -> Example:
    """Return a bidirectional call, whose second sequence ends after one step."""
    h1, h2, h3 = layer.outputs
    weights = _full(WEIGHT, 2, layer.rows, 1), _full(RECURRENT, 2, layer.rows, 1)
    states = [_full(first, 2, 2, 1) for first, _ in layer.states]
    y = [[[[h1], [h1]], [[h3], [h1]]], [[[h2], [0]], [[h2], [0]]], [[[h3], [0]], [[h1], [0]]]]
    return Example(
        opset, _full(INPUT, STEPS, 2, 1), *weights, None, [3, 1], *states, outputs=2,
        direction="bidirectional", hidden_size=1, expect=[y, [[[h3], [h1]]] * 2],
    )  # fmt: skip


def _full(value: float, *shape: int) -> Array:
    return np.full(shape, value, np.float32)
