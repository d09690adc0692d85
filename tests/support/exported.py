"""Batches for six networks that PyTorch exported, in numpy alone: tools/record_exports.py trains on the same ones."""

import numpy as np

STEPS, BATCH, CLASSES = 200, 8, 4
FEATURES, IMAGE, WORDS, LENGTH = 10, 8, 12, 8
NETWORKS = ("mlp", "cnn", "lm", "lstm", "gru", "vit")
RATES = {"sgd": 0.05, "adamw": 0.002}


def batches(network: str, steps: int = STEPS) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the input and the labels of each step."""
    rng = np.random.default_rng(11)
    found = []
    for _ in range(steps):
        if network == "lm":
            words = rng.integers(0, WORDS, (BATCH, LENGTH))
            found.append((words, (words + np.roll(words, 1, axis=1)) % WORDS))
            continue
        shape = {"mlp": (FEATURES,), "lstm": (LENGTH, FEATURES), "gru": (LENGTH, FEATURES)}
        x = rng.standard_normal((BATCH, *shape.get(network, (1, IMAGE, IMAGE)))).astype(np.float32)
        found.append((
            x,
            x.reshape(BATCH, CLASSES, -1)[:, :, :4].sum(2).argmax(1) if x.ndim > 2 else x[:, :4].argmax(1),
        ))
    return found
