"""The work that `quick.py` measures, each by name; as a script, one of them in a process of its own.

python benchmarks/quick_cases.py NAME
"""
# ruff: file-ignore[banned-api]  some light models come with onnx

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx
import small
from zoo import made_feeds

import sabir
from sabir.training import AdamW, prepare

if TYPE_CHECKING:
    from collections.abc import Callable

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
OPSET, NODES = 21, 2_000
RNG = np.random.default_rng(0)
LOOP = """<ir_version: 10, opset_import: ["" : 21]>
g (float[8] x) => (float[8] y) {
  n = Constant <value_int = 10> ()
  yes = Constant <value = bool {1}> ()
  y = Loop (n, yes, x) <body = b (int64 i, bool go, float[8] s) => (bool more, float[8] t) {
    more = Identity (go)  t = Tanh (s)
  }>
}"""


def _weights(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def _session(model: Any, engine: Any = "auto") -> Callable[[], Any]:
    session = sabir.Session(model, threads=h.THREADS, engine=engine)
    feeds = made_feeds(session, {})
    return lambda: session.run(feeds)


def _built(shape: list[int], make: Callable[[Any, Any], Any]) -> Any:
    b = sabir.Builder(OPSET)
    b.output(make(b, b.input("x", "float", shape)), "y")
    return b.model()


def _attention(b: Any, x: Any) -> Any:
    q, k, v = (
        b.Transpose(b.Reshape(b.MatMul(x, _weights(256, 256)), [1, 128, 4, 64]), perm=[0, 2, 1, 3])
        for _ in range(3)
    )
    scores = b.Softmax(b.Mul(b.MatMul(q, b.Transpose(k, perm=[0, 1, 3, 2])), np.float32(0.125)))
    rows = b.Reshape(b.Transpose(b.MatMul(scores, v), perm=[0, 2, 1, 3]), [1, 128, 256])
    return b.LayerNormalization(b.Add(x, b.MatMul(rows, _weights(256, 256))), np.ones(256, np.float32))


def _convolution(b: Any, x: Any) -> Any:
    for _ in range(3):
        x = b.Relu(b.Conv(x, _weights(64, 64, 3, 3), pads=[1, 1, 1, 1]))
    return x


def _bytes(b: Any, x: Any) -> Any:
    scale, zero = np.float32(0.02), np.uint8(128)
    w = RNG.integers(-99, 99, (64, 64, 3, 3)).astype(np.int8)
    rounded = b.QuantizeLinear(x, scale, zero)
    for _ in range(3):
        rounded = b.QLinearConv(rounded, scale, zero, w, scale, np.int8(0), scale, zero, pads=[1, 1, 1, 1])
    return b.DequantizeLinear(rounded, scale, zero)


def _lstm(b: Any, x: Any) -> Any:
    y, *_ = b.op("LSTM", x, _weights(1, 512, 64), _weights(1, 512, 128), outputs=3, hidden_size=128)
    return y


def _chain() -> Any:
    def make(b: Any, x: Any) -> Any:
        for number in range(NODES // 2):
            x = b.Relu(b.Add(x, _weights(8))) if number % 2 else b.Identity(b.Mul(x, x))
        return x

    return _built([4, 8], make)


def _small(number: int) -> Any:
    return [*small.models()][number][1]


def _step() -> Callable[[], Any]:
    b = sabir.Builder(OPSET)
    x = b.input("x", "float", [16, 3, 32, 32])
    for number, (before, after) in enumerate(((3, 16), (16, 32))):
        w = b.initializer(f"w{number}", _weights(after, before, 3, 3))
        x = b.Relu(b.Conv(x, w, pads=[1, 1, 1, 1], strides=[2, 2]))
    b.output(b.MatMul(b.Flatten(x), b.initializer("head", _weights(2048, 10))), "scores")
    session = sabir.TrainingSession(
        prepare(b.model(), loss="cross_entropy", optimizer=AdamW(1e-3)), threads=h.THREADS
    )
    feeds = {"x": RNG.standard_normal((16, 3, 32, 32)).astype(np.float32), "label": np.arange(16) % 10}
    return lambda: session.step(feeds, 0, outputs="loss")


def _on(work: Callable[[Any], Any], make: Callable[[], Any]) -> Callable[[], Callable[[], Any]]:
    def prepared() -> Callable[[], Any]:
        subject = make()
        return lambda: work(subject)

    return prepared


CASES: dict[str, Callable[[], Callable[[], Any]]] = {
    "two nodes": lambda: _session(_small(0)),
    "policy network, 1 row": lambda: _session(_small(1)),
    "small image network": lambda: _session(_small(5)),
    "squeezenet": lambda: _session(LIGHT / "light_squeezenet.onnx"),
    "shufflenet": lambda: _session(LIGHT / "light_shufflenet.onnx"),
    "three convolutions 64x28x28": lambda: _session(_built([1, 64, 28, 28], _convolution)),
    "the same with 8-bit integers": lambda: _session(_built([1, 64, 28, 28], _bytes)),
    "attention 128x256": lambda: _session(_built([1, 128, 256], _attention)),
    "LSTM of 128, 32 steps": lambda: _session(_built([32, 1, 64], _lstm)),
    "Loop of ten turns": lambda: _session(sabir.parse(LOOP)),
    "interpreter, small image network": lambda: _session(_small(5), "reference"),
    "training step, small network": _step,
    f"load {NODES:,} nodes": _on(sabir.loads, lambda: sabir.dumps(_chain())),
    f"write {NODES:,} nodes": _on(sabir.dumps, _chain),
    f"infer {NODES:,} nodes": _on(sabir.infer, _chain),
    f"check {NODES:,} nodes": _on(sabir.check, _chain),
    f"simplify {NODES:,} nodes": _on(lambda model: sabir.simplify(model, verify=False), _chain),
}


def main() -> None:
    """Answer each line, a number of runs, with their median in seconds.

    The first answer is how long the preparation and the first run took.
    """
    started = time.perf_counter()
    work = CASES[sys.argv[1]]()
    work()
    print(json.dumps(time.perf_counter() - started), flush=True)
    for line in sys.stdin:
        taken: list[float] = []
        for _ in range(int(line)):
            started = time.perf_counter()
            work()
            taken.append(time.perf_counter() - started)
        print(json.dumps(statistics.median(taken)), flush=True)


if __name__ == "__main__":
    main()
