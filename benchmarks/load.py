"""A model file of 1 GiB: loading it against the peers, and saving it against plainly writing its bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import harness as h  # before numpy: it pins the threads
import numpy as np

import sabir

LAYERS = 16
SIDE = 4096  # each weight is 64 MiB
ROUNDS = 5

LOADS = (
    h.Script("sabir.load", "import sabir", "model = sabir.load(path)"),
    h.Script("onnx.load", "import onnx", "model = onnx.load(path)"),
    h.Script("onnx_ir.load", "import onnx_ir", "model = onnx_ir.load(path)"),
)
READS = (
    h.Script("sabir.load", "import sabir", """
model = sabir.load(path)
total = sum(t.array().sum() for t in model.graph.initializers.values())
"""),
    h.Script("onnx.load", "import onnx, onnx.numpy_helper", """
model = onnx.load(path)
total = sum(onnx.numpy_helper.to_array(t).sum() for t in model.graph.initializer)
"""),
    h.Script("onnx_ir.load", "import onnx_ir", """
model = onnx_ir.load(path)
total = sum(v.const_value.numpy().sum() for v in model.graph.initializers.values())
"""),
)  # fmt: skip
CHECKS = (
    h.Script("sabir.check", "import sabir", "sabir.check(path)"),
    h.Script("onnx check_model", "from onnx import checker", "checker.check_model(path)"),
    h.Script(
        "onnx check_model, full_check",
        "from onnx import checker",
        "checker.check_model(path, full_check=True)",
    ),
)
_PLAIN = """
import mmap, os
source = open(path, "rb")
data = memoryview(mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ))
def write(synced):
    with open(path + ".copy.onnx", "wb") as file:
        file.write(data)
        if synced:
            file.flush()
            os.fsync(file.fileno())
"""
SAVES = (
    h.Script(
        "sabir.save", "import sabir", "sabir.save(model, path + '.copy.onnx')", "model = sabir.load(path)"
    ),
    h.Script("the same bytes, write and fsync", "", "write(True)", _PLAIN),
    h.Script("the same bytes, write alone", "", "write(False)", _PLAIN),
    h.Script("onnx.save", "import onnx", "onnx.save(model, path + '.copy.onnx')", "model = onnx.load(path)"),
    h.Script(
        "onnx_ir.save",
        "import onnx_ir",
        "onnx_ir.save(model, path + '.copy.onnx')",
        "model = onnx_ir.load(path)",
    ),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.onnx"
        h.progress("making the model")
        make(path)
        size = path.stat().st_size // h.MIB
        print(f"One file of {size} MiB, {LAYERS} weights, in the page cache; each run in a fresh process.\n")
        _print("load", h.costs(LOADS, path, ROUNDS))
        _print("load, then sum every weight", h.costs(READS, path, ROUNDS))
        _print("check, from the path", h.costs(CHECKS, path, ROUNDS))
        _print("save", h.costs(SAVES, path, ROUNDS))
        print("`sabir.save` ends with an fsync and a rename, so its peer is the write with fsync; the other")
        print("libraries leave the bytes in the page cache. `sabir.load` maps the file: the time to read the")
        print("data is paid when it is asked for, as the second table shows.")


def make(path: Path) -> None:
    """Write a chain of matrix products over weights that all share one array here, and none in the file."""
    weight = np.random.default_rng(0).standard_normal((SIDE, SIDE), np.float32)
    b = sabir.Builder(opset=18)
    x = b.input("x", "float", ["N", SIDE])
    for layer in range(LAYERS):
        x = b.MatMul(x, b.initializer(f"w{layer}", weight))
    b.output(x, "y", "float", ["N", SIDE])
    sabir.save(b.model(), path)


def _print(what: str, found: dict[str, h.Cost]) -> None:
    h.progress(f"done: {what}")
    ours = next(iter(found.values()))
    rows = []
    for name, cost in found.items():
        shown = f"`{name}`" if "." in name else name
        ratio = "" if cost is ours else h.ratio_text(cost.seconds, ours.seconds)
        rows.append((
            shown,
            h.time_text(cost.seconds),
            ratio,
            f"{cost.growth:.1f} MiB",
            f"{cost.peak:.1f} MiB",
        ))
    h.table((what, "time", "against sabir", "resident memory grows", "peak grows"), rows)


if __name__ == "__main__":
    main()
