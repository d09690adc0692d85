"""Record loss curves of PyTorch for the tests of training; it needs torch, and nothing of Sabir.

It trains the models of tests/support/curves.py, and writes tests/training/curves.json: the losses before some
of the steps, in single and in double precision.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports] - what it records; no dependency
from torch.nn import functional  # pyright: ignore[reportMissingImports] - as above

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import curves  # ruff: ignore[module-import-not-at-top-of-file]  after the path to it

EVERY = 20


def forward(model: str, w: dict[str, Any], x: Any) -> Any:
    """Return the scores of a model, with the classes along the axis 1."""
    match model:
        case "mlp":
            h = torch.relu(x @ w["w1"] + w["b1"])
            return torch.relu(h @ w["w2"] + w["b2"]) @ w["w3"] + w["b3"]
        case "cnn":
            h = torch.relu(functional.conv2d(x, w["k1"], w["c1"], padding=1))
            h = functional.max_pool2d(h, 2)
            h = torch.relu(functional.conv2d(h, w["k2"], w["c2"], padding=1))
            return functional.max_pool2d(h, 2).flatten(1) @ w["w"] + w["b"]
        case "transformer":
            return transformer(w, x)
        case _:
            return lstm(w, x)


def transformer(w: dict[str, Any], x: Any) -> Any:
    """One block with the normalization first, and a causal mask."""
    n, length, width = x.shape[0], curves.LENGTH, curves.WIDTH
    h = w["words"][x] + w["places"]
    q, k, v = (
        (functional.layer_norm(h, (width,), w["g1"], w["n1"]) @ w["qkv"])
        .reshape(n, length, 3, curves.HEADS, -1)
        .permute(2, 0, 3, 1, 4)
    )
    scores = q @ k.transpose(-1, -2) / np.sqrt(width // curves.HEADS)
    mask = torch.triu(torch.full((length, length), -1e9, dtype=scores.dtype), 1)
    mixed = (torch.softmax(scores + mask, -1) @ v).transpose(1, 2).reshape(n, length, width)
    h = torch.add(h, mixed @ w["out"])
    mixed = functional.gelu(functional.layer_norm(h, (width,), w["g2"], w["n2"]) @ w["up"]) @ w["down"]
    return ((h + mixed) @ w["head"]).transpose(1, 2)


def lstm(w: dict[str, Any], x: Any) -> Any:
    """The classes of the last hidden state; gates in the order of ONNX."""
    h = c = torch.zeros(x.shape[1], curves.CELLS, dtype=x.dtype)
    bias = w["b"][0, : 4 * curves.CELLS] + w["b"][0, 4 * curves.CELLS :]
    for step in x:
        i, o, f, g = (step @ w["w"][0].T + h @ w["r"][0].T + bias).chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h @ w["v"]


def optimizer(name: str, parameters: Any) -> Any:
    """Return the optimizer of PyTorch for a name."""
    options = {**curves.OPTIMIZERS[name]}
    options["lr"] = options.pop("rate")
    kinds = {"adagrad": torch.optim.Adagrad, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds.get(name, torch.optim.SGD)(parameters, **options)


def curve(model: str, name: str, dtype: Any) -> list[float]:
    """Return the loss before every step."""
    w = {k: torch.tensor(v, dtype=dtype).requires_grad_() for k, v in curves.weights(model).items()}
    steps = optimizer(name, w.values())
    losses = []
    for x, y in curves.batches(model):
        given = torch.tensor(x) if x.dtype == np.int64 else torch.tensor(x, dtype=dtype)
        loss = functional.cross_entropy(forward(model, w, given), torch.tensor(y))
        steps.zero_grad()
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    """Write the curves."""
    torch.set_num_threads(1)
    found = {
        f"{model} {name}": {
            kind: curve(model, name, dtype)[EVERY - 1 :: EVERY]
            for kind, dtype in (("float", torch.float32), ("double", torch.float64))
        }
        for model, name in curves.CASES
    }
    text = json.dumps({"torch": torch.__version__, "every": EVERY, "losses": found}, indent=1)
    (ROOT / "tests" / "training" / "curves.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
