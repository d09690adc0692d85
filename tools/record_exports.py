"""Record networks that PyTorch exports, and the losses that it has when it trains them; needs torch and onnx.

It writes tests/training/exports: each of six networks as its two exporters write it by default, and as they
do when they are asked to keep what training needs; and curves.json, with the loss before some of the steps.
Paths of this machine are removed from the files.
"""

from __future__ import annotations

import io
import json
import math
import sys
import warnings
from pathlib import Path
from typing import Any

import onnx  # ruff: ignore[banned-api]  removes paths from what is recorded
import torch  # pyright: ignore[reportMissingImports] - what it records; no dependency
from torch import nn  # pyright: ignore[reportMissingImports] - as above
from torch.nn import functional  # pyright: ignore[reportMissingImports] - as above

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import exported  # ruff: ignore[module-import-not-at-top-of-file]  after the path to it

FOLDER = ROOT / "tests" / "training" / "exports"
EVERY = 20
PRECISIONS = {"float": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
WIDTH, HEADS, CELLS, CHANNELS = 8, 2, 6, (4, 6)


class MLP(nn.Module):
    """Layers with normalizations, a learned slope, and statistics of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("input_mean", torch.full((exported.FEATURES,), 0.1))
        self.register_buffer("input_std", torch.linspace(0.9, 1.2, exported.FEATURES))
        self.fc1, self.norm1 = nn.Linear(exported.FEATURES, 16), nn.LayerNorm(16)
        self.fc2, self.norm2 = nn.Linear(16, 16), nn.LayerNorm(16)
        self.act, self.fc3 = nn.PReLU(), nn.Linear(16, exported.CLASSES)

    def forward(self, x: Any) -> Any:
        """Return the scores, or what the next layer reads."""
        x = (x - self.input_mean) / self.input_std
        x = self.act(self.norm1(self.fc1(x)))
        return self.fc3(torch.relu(self.norm2(self.fc2(x))))


class CNN(nn.Module):
    """Convolutions, each before a normalization by batches."""

    def __init__(self) -> None:
        super().__init__()
        one, two = CHANNELS
        self.conv1, self.bn1 = nn.Conv2d(1, one, 3, padding=1, bias=False), nn.BatchNorm2d(one)
        self.conv2, self.bn2 = nn.Conv2d(one, two, 3, padding=1), nn.BatchNorm2d(two)
        self.fc = nn.Linear(two * 4, exported.CLASSES)

    def forward(self, x: Any) -> Any:
        """Return the scores, or what the next layer reads."""
        x = functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = functional.max_pool2d(torch.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


class Block(nn.Module):
    """A block of a transformer, with the normalizations first."""

    def __init__(self, *, causal: bool) -> None:
        super().__init__()
        self.ln1, self.qkv, self.proj = (
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 3 * WIDTH),
            nn.Linear(WIDTH, WIDTH),
        )
        self.ln2, self.up, self.down = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)
        self.mask: Any
        blocked = torch.full((exported.LENGTH, exported.LENGTH), -1e9)
        self.register_buffer("mask", torch.triu(blocked, 1) if causal else None)

    def forward(self, x: Any) -> Any:
        """Return the scores, or what the next layer reads."""
        n, length, _ = x.shape
        parts = self.qkv(self.ln1(x)).reshape(n, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
        if self.mask is not None:
            scores = self.mask + scores
        x = self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, length, WIDTH)) + x
        return x + self.down(functional.gelu(self.up(self.ln2(x))))


class LM(nn.Module):
    """A language model whose head is its embedding, with a table of sines as positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(exported.WORDS, WIDTH)
        angles = torch.arange(exported.LENGTH)[:, None] * torch.tensor([
            1e4 ** (-i / WIDTH) for i in range(0, WIDTH, 2)
        ])
        self.register_buffer("positions", torch.stack((angles.sin(), angles.cos()), -1).flatten(1))
        self.blocks = nn.ModuleList([Block(causal=True) for _ in range(2)])
        self.ln, self.lm_head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, exported.WORDS, bias=False)
        self.lm_head.weight = self.embedding.weight

    def forward(self, x: Any) -> Any:
        """Return the scores, or what the next layer reads."""
        h = self.embedding(x) + self.positions
        for block in self.blocks:
            h = block(h)
        return self.lm_head(self.ln(h))


class Recurrent(nn.Module):
    """A classifier of sequences by an LSTM, or by a GRU in both directions."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        two = kind == "gru"
        make = nn.GRU if two else nn.LSTM
        self.rnn = make(exported.FEATURES, CELLS, batch_first=True, bidirectional=two)
        self.fc = nn.Linear(CELLS * (1 + two), exported.CLASSES)

    def forward(self, x: Any) -> Any:
        """Return the scores, or what the next layer reads."""
        return self.fc(self.rnn(x)[0].mean(1))


class ViT(nn.Module):
    """Patches, a token and places that are learned, and a temperature that is a scalar."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(1, WIDTH, 4, stride=4)
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, 5, WIDTH) * 0.02)
        self.block, self.norm = Block(causal=False), nn.LayerNorm(WIDTH)
        self.head, self.logit_scale = nn.Linear(WIDTH, exported.CLASSES), nn.Parameter(torch.tensor(1.0))

    def forward(self, x: Any) -> Any:
        """Return the scores, or what the next layer reads."""
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.block(x))[:, 0]) * self.logit_scale.exp()


NETWORKS = {
    "mlp": MLP,
    "cnn": CNN,
    "lm": LM,
    "lstm": lambda: Recurrent("lstm"),
    "gru": lambda: Recurrent("gru"),
    "vit": ViT,
}


def network(name: str) -> Any:
    """Return a network in training mode, with the same first weights each time."""
    torch.manual_seed(1)
    return NETWORKS[name]().train()


def exports(name: str) -> dict[str, bytes]:
    """Return the files of a network, by the exporter and by what it was asked to keep."""
    x = torch.tensor(exported.batches(name, 1)[0][0])
    shapes = {"dynamo": True, "dynamic_shapes": ({0: torch.export.Dim("N", min=2, max=64)},)}
    axes = {"dynamo": False, "dynamic_axes": {"x": {0: "N"}}}
    kept = {"training": torch.onnx.TrainingMode.TRAINING, "do_constant_folding": False}
    options: dict[str, dict[str, Any]] = {
        "dynamo": shapes,
        "dynamo-kept": {**shapes, "optimize": False},
        "script": axes,
        "script-kept": {**axes, **kept},
    }
    found = {}
    for kind, given in options.items():
        if given["dynamo"]:
            program = torch.onnx.export(network(name), (x,), input_names=["x"], verbose=False, **given)
            proto = program.model_proto
        else:
            target = io.BytesIO()
            torch.onnx.export(network(name), (x,), target, input_names=["x"], verbose=False, **given)
            proto = onnx.load_from_string(target.getvalue())
        found[kind] = without_paths(proto).SerializeToString()
    return found


def without_paths(proto: Any) -> Any:
    """Remove what says where the source of the network is."""
    for node in proto.graph.node:
        kept = [p for p in node.metadata_props if not p.key.endswith("stack_trace")]
        del node.metadata_props[:]
        node.metadata_props.extend(kept)
        node.doc_string = ""
    return proto


def curve(name: str, optimizer: str, precision: Any = None) -> list[float]:
    """Return the loss before every step; with a type, under autocast, and with a scaled loss for float16."""
    model = network(name)
    scaler = torch.amp.GradScaler("cpu", enabled=precision is torch.float16)
    make = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer]
    steps = make(model.parameters(), lr=exported.RATES[optimizer])
    losses = []
    for x, y in exported.batches(name):
        with torch.autocast("cpu", dtype=precision or torch.bfloat16, enabled=precision is not None):
            scores = model(torch.tensor(x))
        loss = functional.cross_entropy(scores.float().flatten(0, -2), torch.tensor(y).flatten())
        steps.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(steps)
        scaler.update()
        losses.append(loss.item())
    return losses


def main() -> None:
    """Write the files and the curves."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    found: dict[str, dict[str, list[float]]] = {}
    for name in exported.NETWORKS:
        for kind, data in exports(name).items():
            (FOLDER / f"{name}.{kind}.onnx").write_bytes(data)
        for optimizer in exported.RATES:
            found[f"{name} {optimizer}"] = {
                kind: curve(name, optimizer, precision)[EVERY - 1 :: EVERY]
                for kind, precision in PRECISIONS.items()
                if kind != "float16" or name not in {"lstm", "gru"}  # PyTorch has none on most processors
            }
    text = json.dumps({"torch": torch.__version__, "every": EVERY, "losses": found}, indent=1)
    (FOLDER / "curves.json").write_text(f"{text}\n")


if __name__ == "__main__":
    main()
