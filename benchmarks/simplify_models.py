"""Ten small networks of common architectures, exported with both exporters of torch.

    python benchmarks/simplify_models.py FOLDER

It needs torch and onnxscript; `benchmarks/simplify.py` reads the files.
"""

# ruff: file-ignore[undocumented-public-class, undocumented-public-method, non-augmented-assignment]  names say it; += would change an input

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import torch  # pyright: ignore[reportMissingImports]  no package of ours needs it
from torch import nn  # pyright: ignore[reportMissingImports]  no package of ours needs it
from torch.nn import functional  # pyright: ignore[reportMissingImports]  no package of ours needs it

OPSETS = {"script": 17, "dynamo": 18}


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(), nn.Dropout(0.2),
        )  # fmt: skip
        self.head = nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        x = self.features(x)
        return self.head(x.mean(dim=(2, 3)).view(x.size(0), -1))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.a = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.b = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8))
        self.short = nn.Sequential(nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        x = functional.relu(self.b(self.a(x)) + self.short(x))
        return self.head(torch.flatten(functional.adaptive_avg_pool2d(x, 1), 1))


class Attention(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        weights = ((q @ k.transpose(-2, -1)) * (c // self.heads) ** -0.5).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first, self.second, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 32), nn.Embedding(64, 32)
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(32)

    def forward(self, ids: Any) -> Any:
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.norm(self.blocks(self.tokens(ids) + self.places(places)))


class RootMeanSquare(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Decoder(nn.Module):
    """One step with a cache: rotary positions, a gated feed-forward part."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.norm, self.after = RootMeanSquare(width), RootMeanSquare(width)
        self.gate, self.up, self.down = nn.Linear(width, 64), nn.Linear(width, 64), nn.Linear(64, width)
        self.register_buffer("frequencies", 1 / 10000 ** (torch.arange(0, self.size, 2) / self.size))

    def turned(self, x: Any, cos: Any, sin: Any) -> Any:
        half = torch.cat((-x[..., self.size // 2 :], x[..., : self.size // 2]), dim=-1)
        return x * cos + half * sin

    def forward(self, x: Any, keys: Any, values: Any) -> Any:
        b, n, c = x.shape
        past = keys.shape[2]
        places = torch.arange(past, past + n).to(torch.float32)
        angles = torch.outer(places, self.frequencies)
        angles = torch.cat((angles, angles), dim=-1)
        h = self.norm(x)
        q, k, v = (m(h).view(b, n, self.heads, self.size).transpose(1, 2) for m in (self.q, self.k, self.v))
        q, k = self.turned(q, angles.cos(), angles.sin()), self.turned(k, angles.cos(), angles.sin())
        keys, values = torch.cat((keys, k), dim=2), torch.cat((values, v), dim=2)
        weights = (q @ keys.transpose(-2, -1) / self.size**0.5).softmax(dim=-1)
        x = x + self.o((weights @ values).transpose(1, 2).reshape(b, n, c))
        h = self.after(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h)), keys, values


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, num_layers=2, batch_first=True), nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.low = self.block(3, 8), self.block(8, 16)
        self.up, self.merge = nn.ConvTranspose2d(16, 8, 2, stride=2), self.block(16, 8)
        self.head = nn.Conv2d(8, 1, 1)

    @staticmethod
    def block(a: int, b: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

    def forward(self, x: Any) -> Any:
        a = self.down(x)
        b = functional.interpolate(self.low(functional.max_pool2d(a, 2)), scale_factor=1.0)
        return torch.sigmoid(self.head(self.merge(torch.cat((self.up(b), a), dim=1))))


class Vit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, stride=4)
        self.cls, self.places = nn.Parameter(torch.rand(1, 1, 32)), nn.Parameter(torch.rand(1, 17, 32))
        self.blocks, self.norm, self.head = (
            nn.Sequential(Block(), Block()),
            nn.LayerNorm(32),
            nn.Linear(32, 7),
        )

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, stride=4)
        self.first, self.second, self.last = nn.LayerNorm(32), nn.LayerNorm(32), nn.LayerNorm(32)
        self.tokens = nn.Sequential(nn.Linear(16, 32), nn.GELU(approximate="tanh"), nn.Linear(32, 16))
        self.channels = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.head = nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = x + self.tokens(self.first(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.second(x))
        return self.head(self.last(x).mean(dim=1))


class Generator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = nn.Linear(16, 8 * 4 * 4)
        self.net = nn.Sequential(
            nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8),
            nn.LeakyReLU(0.2), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, z: Any) -> Any:
        return self.net(self.dense(z).view(-1, 8, 4, 4))


class Detector(nn.Module):
    """A head of boxes and classes over two scales."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.low = nn.Sequential(nn.Conv2d(8, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.head, self.outputs = nn.Conv2d(8, 3 * (5 + classes), 1), 5 + classes

    def decoded(self, x: Any, stride: int) -> Any:
        b, _, h, w = x.shape
        y = x.view(b, 3, self.outputs, h, w).permute(0, 1, 3, 4, 2).sigmoid()
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((columns, rows), dim=2).view(1, 1, h, w, 2).float()
        center = (y[..., :2] * 2 - 0.5 + grid) * stride
        return torch.cat((center, (y[..., 2:4] * 2) ** 2 * stride, y[..., 4:]), dim=-1).view(
            b, -1, self.outputs
        )

    def forward(self, x: Any) -> Any:
        high = self.stem(x)
        low = self.low(high)
        high = high + functional.interpolate(low, scale_factor=2.0, mode="nearest")
        return torch.cat((self.decoded(self.head(high), 2), self.decoded(self.head(low), 4)), dim=1)


IMAGE = torch.rand(2, 3, 16, 16)
CASES: dict[str, tuple[type[nn.Module], tuple[Any, ...], dict[str, dict[int, str]]]] = {
    "cnn": (Cnn, (IMAGE,), {"x": {0: "batch"}}),
    "residual": (Residual, (IMAGE,), {"x": {0: "batch"}}),
    "encoder": (Encoder, (torch.randint(0, 50, (2, 7)),), {"ids": {0: "batch", 1: "seq"}}),
    "decoder": (
        Decoder,
        (torch.rand(2, 3, 32), torch.rand(2, 4, 5, 8), torch.rand(2, 4, 5, 8)),
        {"x": {0: "batch", 1: "seq"}, "keys": {0: "batch", 2: "past"}, "values": {0: "batch", 2: "past"}},
    ),
    "lstm": (Recurrent, (torch.rand(2, 6, 8),), {"x": {0: "batch", 1: "seq"}}),
    "unet": (UNet, (IMAGE,), {"x": {0: "batch"}}),
    "vit": (Vit, (IMAGE,), {"x": {0: "batch"}}),
    "mixer": (Mixer, (IMAGE,), {"x": {0: "batch"}}),
    "gan": (Generator, (torch.rand(2, 16),), {"z": {0: "batch"}}),
    "yolo": (Detector, (IMAGE,), {"x": {0: "batch"}}),
}


def export(folder: Path) -> None:
    """Write each network twice; one that an exporter refuses is reported and left out."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (make, feeds, axes) in CASES.items():
        for exporter, opset in OPSETS.items():
            torch.manual_seed(0)
            network, path = make().eval(), folder / f"{name}_{exporter}.onnx"
            try:
                if exporter == "script":
                    torch.onnx.export(
                        network, feeds, path, input_names=list(axes), dynamic_axes=axes, opset_version=opset,
                        dynamo=False, do_constant_folding=False,
                    )  # fmt: skip
                else:
                    shapes = tuple(dict.fromkeys(d, torch.export.Dim.DYNAMIC) for d in axes.values())
                    torch.onnx.export(
                        network, feeds, path, input_names=list(axes), dynamic_shapes=shapes,
                        opset_version=opset, dynamo=True, external_data=False, optimize=False, verbose=False,
                    )  # fmt: skip
            except Exception as error:  # ruff: ignore[blind-except]  an exporter's errors are of any class
                print(f"{path.name}: {type(error).__name__}: {str(error)[:200]}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    export(Path(sys.argv[1]))
