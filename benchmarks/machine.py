"""The machine under the figures: its processor, and the peaks that it was measured to reach."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path

import harness as h  # before numpy: it pins the threads
import numpy as np

import sabir

SIDE = 2048
COPIED = 256 * h.MIB
PEERS = ("numpy", "protobuf", "onnx", "onnx-ir", "onnxruntime")


def main() -> None:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PEERS)
    h.table(
        ("what", "value"),
        [
            ("processor", processor()),
            ("cores", os.cpu_count()),
            ("threads pinned, both sides", h.THREADS),
            ("fp32 matrix product through numpy", f"{gigaflops():.0f} GFLOP/s"),
            ("memory copy, read and written", f"{bandwidth():.1f} GB/s"),
            ("versions", f"Python {platform.python_version()}, sabir {sabir.__version__}, {versions}"),
        ],
    )


def processor() -> str:
    """Return the processor's name and its widest vectors."""
    info = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    pairs = (line.split(":", 1) for line in info if ":" in line)
    facts = {name.strip(): value.strip() for name, value in pairs}
    vectors = next((v for v in ("avx512f", "avx2", "avx") if v in facts.get("flags", "").split()), "")
    family = f", family {facts['cpu family']} model {facts['model']}" if "cpu family" in facts else ""
    return f"{facts.get('model name', platform.machine())}{family}{f', {vectors}' if vectors else ''}"


def gigaflops() -> float:
    """Return the speed of a large float32 matrix product, the best of several rounds."""
    a = np.random.default_rng(0).standard_normal((SIDE, SIDE), np.float32)
    out = np.empty_like(a)
    case = h.Case("matrix product", lambda _: np.matmul(a, a, out=out))
    return 2 * SIDE**3 / h.medians([case], rounds=15, pick=min)[case.name] / 1e9


def bandwidth() -> float:
    """Return the bytes a second that a large copy moves, in and out, at its best."""
    source, target = np.ones(COPIED, np.uint8), np.zeros(COPIED, np.uint8)
    case = h.Case("memory copy", lambda _: np.copyto(target, source))
    return 2 * COPIED / h.medians([case], rounds=15, pick=min)[case.name] / 1e9


if __name__ == "__main__":
    main()
