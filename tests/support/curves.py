"""Weights and batches of four small models, in numpy alone: tools/record_training.py trains the same in PyTorch."""

import numpy as np

STEPS = 200
BATCH, FEATURES, HIDDEN, CLASSES = 16, 10, 32, 4
IMAGE, CHANNELS = 8, (1, 6, 12)
WORDS, LENGTH, WIDTH, HEADS = 12, 8, 16, 2
CELLS = 12

SHAPES = {
    "mlp": {
        "w1": (FEATURES, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, HIDDEN), "b2": (HIDDEN,),
        "w3": (HIDDEN, CLASSES), "b3": (CLASSES,),
    },
    "cnn": {
        "k1": (CHANNELS[1], CHANNELS[0], 3, 3), "c1": (CHANNELS[1],), "k2": (CHANNELS[2], CHANNELS[1], 3, 3),
        "c2": (CHANNELS[2],), "w": (CHANNELS[2] * 4, CLASSES), "b": (CLASSES,),
    },
    "transformer": {
        "words": (WORDS, WIDTH), "places": (LENGTH, WIDTH), "qkv": (WIDTH, 3 * WIDTH), "out": (WIDTH, WIDTH),
        "g1": (WIDTH,), "n1": (WIDTH,), "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH),
        "g2": (WIDTH,), "n2": (WIDTH,), "head": (WIDTH, WORDS),
    },
    # gates in the order of ONNX: input, output, forget, cell
    "lstm": {"w": (1, 4 * CELLS, FEATURES), "r": (1, 4 * CELLS, CELLS), "b": (1, 8 * CELLS), "v": (CELLS, CLASSES)},
}  # fmt: skip
OPTIMIZERS = {
    "sgd": {"rate": 0.1},
    "momentum": {"rate": 0.05, "momentum": 0.9, "weight_decay": 0.01},
    "nesterov": {"rate": 0.02, "momentum": 0.8, "nesterov": True},
    "adagrad": {"rate": 0.05, "weight_decay": 0.001},
    "adam": {"rate": 0.004, "weight_decay": 0.005},
    "adamw": {"rate": 0.003},
}
CASES = [
    *((model, name) for model in SHAPES for name in ("momentum", "adagrad", "adam", "adamw")),
    ("mlp", "sgd"), ("mlp", "nesterov"),
]  # fmt: skip


def weights(model: str) -> dict[str, np.ndarray]:
    """Return the first weights of a model, in double precision."""
    rng = np.random.default_rng(7)
    found = {}
    for name, shape in SHAPES[model].items():
        fan = int(np.prod(shape[1:])) if len(shape) == 4 else shape[-2] if len(shape) > 1 else 1
        scale = (1 / np.sqrt(fan)) if len(shape) > 1 else 0.1
        found[name] = rng.standard_normal(shape) * scale + (name in {"g1", "g2"})
    # those of single precision are the same numbers
    return {name: value.astype(np.float32).astype(np.float64) for name, value in found.items()}


def batches(model: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a batch for each step, of inputs in double precision (words: int64) and labels."""
    rng = np.random.default_rng(11)
    found = []
    for _ in range(STEPS):
        if model == "transformer":
            words = rng.integers(0, WORDS, (4, LENGTH))
            x, y = words, (words + np.roll(words, 1, axis=1)) % WORDS
        elif model == "cnn":
            x = rng.standard_normal((BATCH, 1, IMAGE, IMAGE))
            y = x[:, 0].reshape(BATCH, 2, 4, 2, 4).sum((2, 4)).reshape(BATCH, 4).argmax(1)
        elif model == "lstm":
            x = rng.standard_normal((LENGTH, BATCH, FEATURES))
            y = x[:, :, :CLASSES].sum(0).argmax(1)
        else:
            x = rng.standard_normal((BATCH, FEATURES))
            y = x[:, :CLASSES].argmax(1)
        if model != "transformer":
            x = x.astype(np.float32).astype(np.float64)
        found.append((x, y.astype(np.int64)))
    return found
