"""Train a small character model with attention on the language reference that Python ships, and let it write.

    python examples/characters/train.py [STEPS]

It needs nothing but Sabir. The model is written to characters.onnx in the current folder.
"""

from __future__ import annotations

import sys
import time
from pydoc_data import topics
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

import sabir
from sabir.training import AdamW, Cosine, CrossEntropy, Group, Progress, prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Value

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

SEED = 1
LENGTH, WIDTH, HEADS, BLOCKS = 48, 64, 4, 2
BATCH, STEPS, RATE = 24, 800, 3e-3
WRITTEN = 300
TEMPERATURE = 0.7
TOPICS = ("assignment", "class", "compound", "function", "import", "with")


def main(steps: int) -> None:
    """Train, and print some lines that the model writes."""
    text = "\n".join(topics.topics[name] for name in TOPICS)
    letters = sorted(set(text))
    codes = np.array([letters.index(c) for c in text])
    model = characters(len(letters), np.random.default_rng(SEED))
    training = prepare(
        model,
        CrossEntropy(axis=-1),
        target="next",
        optimizer=AdamW(Cosine(RATE, steps, warmup=min(50, steps // 2)), weight_decay=0.1),
        trainable=["words", "places", "block*", "last.*"],  # and not the mask, a constant
        groups=[Group("*.scale", weight_decay=0), Group("*.shift", weight_decay=0)],
        clip=1.0,
    )
    session = sabir.TrainingSession(training)
    print(f"{len(text):,} characters of {len(letters)} kinds")
    started = time.perf_counter()

    def report(at: Progress) -> None:
        if at.batch % 100 == 0:
            seconds = time.perf_counter() - started
            print(f"step {at.batch}: loss {at.results['loss']:.3f} in the mean so far, {seconds:.0f} s")

    session.fit(Windows(codes, steps), progress=report)
    inference = session.export()
    sabir.check(inference)
    sabir.save(inference, "characters.onnx")
    print(written(sabir.Session(inference), letters, "The "))


class Windows:
    """Batches of parts of a text, and of the characters that come one later."""

    def __init__(self, codes: Array, steps: int) -> None:
        self.codes, self.steps = codes, steps

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Array]]:
        rng = np.random.default_rng(SEED)
        for _ in range(self.steps):
            starts = rng.integers(0, len(self.codes) - LENGTH, BATCH)
            parts = np.stack([self.codes[s : s + LENGTH + 1] for s in starts])
            yield {"text": parts[:, :-1], "next": parts[:, 1:]}


def written(session: sabir.Session, letters: list[str], start: str) -> str:
    """Return what the model writes after a start: each character is drawn from its probabilities."""
    rng, codes = np.random.default_rng(SEED), [letters.index(c) for c in start]
    for _ in range(WRITTEN):
        known = codes[-LENGTH:]
        padded = np.zeros((1, LENGTH), np.int64)
        padded[0, : len(known)] = known  # what comes later is masked
        scores = session.run({"text": padded})["scores"][0, len(known) - 1] / TEMPERATURE
        chances = np.exp((scores - scores.max()).astype(np.float64))
        codes.append(int(rng.choice(len(letters), p=chances / chances.sum())))
    return "".join(letters[c] for c in codes)


def characters(letters: int, rng: np.random.Generator) -> sabir.Model:
    """Return a model of some blocks of attention: the scores of the next character at each place."""
    b = sabir.Builder(21, name="characters")

    def random(name: str, *shape: int) -> Value:
        return b.initializer(name, (rng.standard_normal(shape) * 0.05).astype(np.float32))

    def normal(name: str, x: Value) -> Value:
        scale = b.initializer(f"{name}.scale", np.ones(WIDTH, np.float32))
        return b.LayerNormalization(x, scale, b.initializer(f"{name}.shift", np.zeros(WIDTH, np.float32)))

    mask = b.initializer("mask", np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1))
    words = b.Gather(random("words", letters, WIDTH), b.input("text", "int64", ["N", LENGTH]))
    x = b.Add(words, random("places", LENGTH, WIDTH))
    for i in range(BLOCKS):
        mixed = b.MatMul(normal(f"block{i}.first", x), random(f"block{i}.qkv", WIDTH, 3 * WIDTH))
        parts = b.Transpose(b.Reshape(mixed, [0, LENGTH, 3, HEADS, WIDTH // HEADS]), perm=[2, 0, 3, 1, 4])
        q, k, v = (b.Gather(parts, np.int64(j)) for j in range(3))
        likeness = b.Mul(b.MatMul(q, b.Transpose(k, perm=[0, 1, 3, 2])), np.float32((WIDTH / HEADS) ** -0.5))
        scores = b.Add(likeness, mask)
        seen = b.Transpose(b.MatMul(b.Softmax(scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = b.Add(x, b.MatMul(b.Reshape(seen, [0, LENGTH, WIDTH]), random(f"block{i}.out", WIDTH, WIDTH)))
        hidden = b.Gelu(b.MatMul(normal(f"block{i}.second", x), random(f"block{i}.up", WIDTH, 4 * WIDTH)))
        x = b.Add(x, b.MatMul(hidden, random(f"block{i}.down", 4 * WIDTH, WIDTH)))
    b.output(b.MatMul(normal("last", x), random("last.scores", WIDTH, letters)), "scores")
    return b.model(doc="Scores of the next character, trained by examples/characters/train.py.")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
