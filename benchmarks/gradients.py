"""Forward and backward of four small networks: both engines of Sabir beside PyTorch eager.

Each model computes a loss and its gradients with respect to all weights. PyTorch is optional: without it its
column is left out, and the ratios with it. `--nodes` lists the nodes that the compiled engine evaluates on
arrays, each with the reason. `BENCH_THREADS` is the number of threads of all sides.
"""
# ruff: file-ignore[ambiguous-unicode-character-string]  the sign of multiplication

from __future__ import annotations

import argparse
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import harness as h  # before numpy: it pins the threads
import numpy as np

import sabir

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

torch: Any = None
functional: Any = None
if find_spec("torch") is not None:  # else the column of the peer is left out
    torch, functional = import_module("torch"), import_module("torch.nn.functional")

ROUNDS = 20
OPSET = 21
DRAW = np.random.default_rng(0)
TOLERANCE = 2e-3  # of the largest number of a gradient
Weights = dict[str, np.ndarray]


class Network(NamedTuple):
    """A model with its loss, the feeds, the weights, and the loss by PyTorch."""

    name: str
    model: sabir.Model
    feeds: Mapping[str, np.ndarray]
    weights: Weights
    loss: Callable[..., Any]


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument(
        "names", nargs="*", metavar="NAME", help="MLP, CNN, transformer, LSTM; all without names"
    )
    cli.add_argument(
        "--nodes", action="store_true", help="list the nodes that are evaluated, instead of times"
    )
    given = cli.parse_args()
    made = [make() for make in (mlp, cnn, transformer, lstm)]
    networks = [n for n in made if not given.names or n.name.split()[0] in given.names]
    if given.nodes:
        for network in networks:
            _explain(network)
        return
    beside = "PyTorch is not installed: its column and the ratios are left out."
    if torch is not None:
        beside = f"Ratios are against PyTorch {torch.__version__} eager."
    print(f"{h.THREADS} thread(s) on every side. {beside}\n")
    reasons: set[str] = set()
    rows = [_row(network, reasons) for network in networks]
    h.table(
        ("forward and backward", "reference engine", "compiled engine", "PyTorch", "ratio, reference",
         "ratio, compiled", "evaluated nodes", "largest difference"), rows)  # fmt: skip
    print(
        f"The compiled engine evaluates nodes on arrays because {'; '.join(sorted(reasons)) or 'of nothing'}."
    )


def _row(network: Network, reasons: set[str]) -> tuple[str, ...]:
    """Measure one network; `reasons` receives why nodes are evaluated."""
    h.progress(network.name)
    gradients = _differentiated(network)
    sessions = {e: sabir.Session(gradients, engine=e, threads=h.THREADS) for e in ("reference", "compiled")}
    cases = [h.Case(e, lambda _, s=s: s.run(network.feeds)) for e, s in sessions.items()]
    results = {e: s.run(network.feeds) for e, s in sessions.items()}
    others = [results["compiled"]]
    if torch is not None:
        step, found = _peer(network)
        others.append(found)
        cases.append(h.Case("PyTorch", lambda _: step()))
    worst = max(_difference(results["reference"], other) for other in others)
    if worst > TOLERANCE:
        raise SystemExit(f"{network.name}: the gradients differ by {worst:.1e}")
    taken = h.blocks(cases, ROUNDS)
    theirs = taken.get("PyTorch")
    evaluated = _evaluated(sessions["compiled"], network)
    reasons.update(entry.reason for entry in evaluated)
    ratios = [h.ratio_text(theirs, taken[e]) if theirs else "" for e in sessions]
    return (
        network.name, *(h.time_text(taken[e]) for e in sessions), h.time_text(theirs) if theirs else "",
        *ratios, str(len(evaluated)), f"{worst:.1e}",
    )  # fmt: skip


def _differentiated(network: Network) -> sabir.Model:
    return sabir.differentiate(network.model, "loss", list(network.weights))


def _explain(network: Network) -> None:
    """Print what the compiled engine evaluates on arrays."""
    session = sabir.Session(_differentiated(network), engine="compiled", threads=h.THREADS)
    session.run(network.feeds)
    print(f"{network.name}:")
    for entry in _evaluated(session, network):
        print(f"  {entry}")


def _evaluated(session: sabir.Session, network: Network) -> Any:
    return session.explain({n: x.shape for n, x in network.feeds.items()}).evaluated


def _difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> float:
    """Return the largest difference of a gradient as a part of its largest number."""
    return max(float(np.abs(ours[n] - x).max() / (np.abs(ours[n]).max() or 1)) for n, x in theirs.items())


def _peer(network: Network) -> tuple[Callable[[], Any], dict[str, np.ndarray]]:
    """Return PyTorch's step, and its gradients by the names of ours."""
    torch.set_num_threads(h.THREADS)
    weights = {n: torch.tensor(w, requires_grad=True) for n, w in network.weights.items()}
    feeds = [torch.tensor(x) for x in network.feeds.values()]

    def step() -> Any:
        for weight in weights.values():
            weight.grad = None
        network.loss(weights, *feeds).backward()

    step()
    return step, {f"grad_{n}": w.grad.numpy() for n, w in weights.items()}


def _drawn(**shapes: tuple[int, ...]) -> Weights:
    """Return weights of the size that keeps the values about 1."""
    return {
        n: (DRAW.standard_normal(s) / np.sqrt(np.prod(s[1:]) if len(s) > 1 else 10)).astype(np.float32)
        for n, s in shapes.items()
    }


def _images(*shape: int) -> np.ndarray:
    return DRAW.standard_normal(shape).astype(np.float32)


def _finished(
    name: str,
    b: sabir.Builder,
    given: tuple[Any, Any],
    weights: Weights,
    loss: Callable[..., Any],
    **feeds: Any,
) -> Network:
    """Return the network whose scores and labels are given."""
    b.output(b.SoftmaxCrossEntropyLoss(*given), "loss")
    return Network(name, b.model(), feeds, weights, loss)


def mlp() -> Network:
    weights = _drawn(w1=(256, 784), b1=(256,), w2=(256, 256), b2=(256,), w3=(10, 256), b3=(10,))
    b = sabir.Builder(OPSET)
    x, t = b.input("x", "float", ["N", 784]), b.input("t", "int64", ["N"])
    w = {n: b.initializer(n, a) for n, a in weights.items()}
    y = b.Relu(b.Gemm(x, w["w1"], w["b1"], transB=1))
    y = b.Relu(b.Gemm(y, w["w2"], w["b2"], transB=1))
    scores = b.Gemm(y, w["w3"], w["b3"], transB=1)

    def loss(w: Any, x: Any, t: Any) -> Any:
        y = torch.relu(functional.linear(x, w["w1"], w["b1"]))
        y = torch.relu(functional.linear(y, w["w2"], w["b2"]))
        return functional.cross_entropy(functional.linear(y, w["w3"], w["b3"]), t)

    return _finished(
        "MLP 64×784-256-256-10", b, (scores, t), weights, loss, x=_images(64, 784), t=DRAW.integers(0, 10, 64)
    )


def cnn() -> Network:
    weights = _drawn(w1=(16, 1, 3, 3), b1=(16,), w2=(32, 16, 3, 3), b2=(32,), w3=(10, 1568), b3=(10,))
    b = sabir.Builder(OPSET)
    x, t = b.input("x", "float", ["N", 1, 28, 28]), b.input("t", "int64", ["N"])
    w = {n: b.initializer(n, a) for n, a in weights.items()}
    y = x
    for i in ("1", "2"):
        y = b.Relu(b.Conv(y, w[f"w{i}"], w[f"b{i}"], pads=[1, 1, 1, 1]))
        y = b.MaxPool(y, kernel_shape=[2, 2], strides=[2, 2])
    scores = b.Gemm(b.Flatten(y), w["w3"], w["b3"], transB=1)

    def loss(w: Any, x: Any, t: Any) -> Any:
        for i in ("1", "2"):
            x = functional.max_pool2d(torch.relu(functional.conv2d(x, w[f"w{i}"], w[f"b{i}"], padding=1)), 2)
        return functional.cross_entropy(functional.linear(x.flatten(1), w["w3"], w["b3"]), t)

    return _finished(
        "CNN 32×1×28×28", b, (scores, t), weights, loss, x=_images(32, 1, 28, 28), t=DRAW.integers(0, 10, 32)
    )


BATCH, STEPS, WIDTH, HEADS, WORDS = 16, 64, 128, 4, 100


def transformer() -> Network:
    shapes: dict[str, tuple[int, ...]] = {"table": (WORDS, WIDTH), "out": (WORDS, WIDTH)}
    for i in range(2):
        shapes |= {
            f"s{i}": (WIDTH,),
            f"b{i}": (WIDTH,),
            f"qkv{i}": (WIDTH, 3 * WIDTH),
            f"o{i}": (WIDTH, WIDTH),
        }
        shapes |= {
            f"t{i}": (WIDTH,),
            f"c{i}": (WIDTH,),
            f"up{i}": (WIDTH, 4 * WIDTH),
            f"down{i}": (4 * WIDTH, WIDTH),
        }
    weights = _drawn(**shapes)
    b = sabir.Builder(OPSET)
    ids, t = b.input("ids", "int64", ["N", STEPS]), b.input("t", "int64", ["M"])
    w = {n: b.initializer(n, a) for n, a in weights.items()}
    y = b.Gather(w["table"], ids)
    for i in range(2):
        y = _block(b, y, {n.removesuffix(str(i)): v for n, v in w.items() if n.endswith(str(i))})
    rows = b.Reshape(y, [-1, WIDTH])
    scores = b.Gemm(rows, w["out"], transB=1)
    feeds = {"ids": DRAW.integers(0, WORDS, (BATCH, STEPS)), "t": DRAW.integers(0, WORDS, BATCH * STEPS)}
    return _finished(
        "transformer 16×64, width 128, 2 layers", b, (scores, t), weights, _transformer_loss, **feeds
    )


def _block(b: sabir.Builder, y: Any, w: Mapping[str, Any]) -> Any:
    """Return what one layer of the transformer computes."""
    n = b.LayerNormalization(y, w["s"], w["b"])
    parts = b.Reshape(b.MatMul(n, w["qkv"]), [0, 0, 3, HEADS, WIDTH // HEADS])
    q, k, v = (b.Gather(b.Transpose(parts, perm=[2, 0, 3, 1, 4]), j, axis=0) for j in range(3))
    scores = b.Mul(b.MatMul(q, b.Transpose(k, perm=[0, 1, 3, 2])), np.float32((WIDTH // HEADS) ** -0.5))
    mixed = b.Transpose(b.MatMul(b.Softmax(scores), v), perm=[0, 2, 1, 3])
    y = b.Add(y, b.MatMul(b.Reshape(mixed, [0, 0, WIDTH]), w["o"]))
    n = b.LayerNormalization(y, w["t"], w["c"])
    return b.Add(y, b.MatMul(b.Gelu(b.MatMul(n, w["up"])), w["down"]))


def _transformer_loss(w: Any, ids: Any, t: Any) -> Any:
    y = functional.embedding(ids, w["table"])
    for i in range(2):
        n = functional.layer_norm(y, (WIDTH,), w[f"s{i}"], w[f"b{i}"])
        parts = (n @ w[f"qkv{i}"]).reshape(BATCH, STEPS, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(*parts.unbind(0))
        y = mixed.transpose(1, 2).reshape(BATCH, STEPS, WIDTH) @ w[f"o{i}"] + y
        n = functional.layer_norm(y, (WIDTH,), w[f"t{i}"], w[f"c{i}"])
        y = functional.gelu(n @ w[f"up{i}"]) @ w[f"down{i}"] + y
    return functional.cross_entropy(functional.linear(y.flatten(0, 1), w["out"]), t)


ORDER = (0, 2, 3, 1)  # ONNX's gates i, o, f, c in PyTorch's order i, f, c, o


def lstm() -> Network:
    wide = 4 * WIDTH
    weights = _drawn(w=(1, wide, WIDTH), r=(1, wide, WIDTH), b=(1, 2 * wide), out=(10, WIDTH))
    weights["w"] /= 5
    weights["r"] /= 5
    b = sabir.Builder(OPSET)
    x, t = b.input("x", "float", [STEPS, "N", WIDTH]), b.input("t", "int64", ["N"])
    w = {n: b.initializer(n, a) for n, a in weights.items()}
    _, last, _ = b.LSTM(x, w["w"], w["r"], w["b"], hidden_size=WIDTH, outputs=3)
    scores = b.Gemm(b.Squeeze(last, [0]), w["out"], transB=1)
    feeds = {"x": _images(STEPS, BATCH, WIDTH), "t": DRAW.integers(0, 10, BATCH)}
    return _finished("LSTM 16×64, width 128", b, (scores, t), weights, _lstm_loss(), **feeds)


def lstm_weights(w: Any, r: Any, b: Any) -> dict[str, Any]:
    """Return the weights of an LSTM of ONNX by the names of PyTorch, in its order of the gates."""

    def ordered(x: Any) -> Any:
        parts = x.chunk(4)
        return torch.cat([parts[i] for i in ORDER])

    first, second = b[0].chunk(2)
    return {
        "weight_ih_l0": ordered(w[0]), "weight_hh_l0": ordered(r[0]),
        "bias_ih_l0": ordered(first), "bias_hh_l0": ordered(second),
    }  # fmt: skip


def _lstm_loss() -> Callable[..., Any]:
    layer = None if torch is None else torch.nn.LSTM(WIDTH, WIDTH)

    def loss(w: Any, x: Any, t: Any) -> Any:
        named = lstm_weights(w["w"], w["r"], w["b"])
        _, (last, _) = torch.func.functional_call(layer, named, (x,))
        return functional.cross_entropy(functional.linear(last[0], w["out"]), t)

    return loss


if __name__ == "__main__":
    main()
