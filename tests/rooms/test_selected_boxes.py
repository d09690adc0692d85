"""NonMaxSuppression beside the plain loop of its definition, on boxes of all sizes and with odd numbers."""

import numpy as np
import pytest

import sabir

MODEL = sabir.parse("""<ir_version: 10, opset_import: ["" : 11]>
    g (float[1, N, 4] boxes, float[1, 1, N] scores, int64[1] most, float[1] threshold) => (int64[K, 3] y) {
        y = NonMaxSuppression (boxes, scores, most, threshold) }""")


def overlap(a, b):
    """The intersection over the union, in single precision."""
    (y0, x0, y1, x1), (v0, u0, v1, u1) = a, b
    high, wide = min(y1, v1) - max(y0, v0), min(x1, u1) - max(x0, u0)
    if not (high > 0 and wide > 0):
        return np.float32(0)
    common = high * wide
    union = (y1 - y0) * (x1 - x0) + (v1 - v0) * (u1 - u0) - common
    return common / union if union > 0 else np.float32(0)


def selected(boxes, scores, most, threshold):
    kept = []
    for candidate in np.argsort(-scores, kind="stable"):
        if len(kept) < most and all(overlap(boxes[k], boxes[candidate]) <= threshold for k in kept):
            kept.append(int(candidate))
    return kept


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("threshold", [0, 0.3, 0.7])
def test_the_loop_of_the_definition(seed, threshold):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 50))
    boxes = rng.random((count, 4)).astype(np.float32) * np.float32([1, 1, 10, 1e5][seed % 4])
    boxes[:, 2:] += boxes[:, :2]
    if seed % 3 == 0:
        boxes = np.round(boxes * 3)  # many touch at an edge, or are equal
    if seed % 5 == 0:
        boxes[rng.random(count) < 0.2, 2] = 1e30  # wide: nearly all others are inside
    scores = np.round(rng.random(count), 1).astype(np.float32)
    most = int(rng.integers(1, count + 2))
    feeds = {"boxes": boxes[None], "scores": scores[None, None], "most": np.array([most])}
    (y,) = sabir.evaluate(MODEL, feeds | {"threshold": np.float32([threshold])}).values()
    with np.errstate(over="ignore", invalid="ignore"):
        expected = selected(boxes, scores, most, np.float32(threshold))
    assert y[:, 2].tolist() == expected
    assert not y[:, :2].any()
