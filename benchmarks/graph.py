"""A graph of 20 000 nodes: load, save, text, infer and check against onnx and onnx_ir."""
# ruff: file-ignore[banned-api]  onnx is the peer

from __future__ import annotations

import tempfile
from pathlib import Path

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx
import onnx_ir
from onnx import checker, printer
from onnx.shape_inference import infer_shapes

import sabir
from sabir.syntax import text

BLOCKS = 5000  # of four nodes each
WIDTH = 8
ROUNDS = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.onnx"
        sabir.save(chain(), path)
        h.progress(f"made a chain of {4 * BLOCKS} nodes, {path.stat().st_size} bytes")
        print(f"A residual chain of {4 * BLOCKS} nodes and {2 * BLOCKS} small initializers.\n")
        rows = []
        for what, cases in subjects(path).items():
            h.progress(what)
            found = h.medians(cases, ROUNDS)
            ours = next(iter(found))
            rows += [(what if n == ours else "", f"`{n}`", t, r) for n, t, r in h.listed(found, ours)]
        h.table(("what", "with", "time", "against sabir"), rows)
        print(
            "`onnx` reads into protobuf messages and works on them in C++; `sabir` and `onnx_ir` make linked"
        )
        print("graphs of Python objects, and messages of them again for a save.")


def chain() -> sabir.Model:
    """Return blocks of `y = Relu(x · w + b) + x`, each with weights of its own."""
    weight = np.random.default_rng(0).standard_normal((WIDTH, WIDTH), np.float32)
    b = sabir.Builder(opset=18)
    x = b.input("x", "float", ["N", WIDTH])
    for block in range(BLOCKS):
        product = b.MatMul(x, b.initializer(f"w{block}", weight), name=f"matmul_{block}")
        summed = b.Add(product, b.initializer(f"b{block}", weight[0]), name=f"add_{block}")
        x = b.Add(b.Relu(summed, name=f"relu_{block}"), x, name=f"residual_{block}")
    b.output(x, "y", "float", ["N", WIDTH])
    return b.model(ir_version=8)


def subjects(path: Path) -> dict[str, list[h.Case]]:
    """Return what is measured, and with what."""
    target = path.with_name("copy.onnx")
    theirs = onnx.load(path)

    def model() -> sabir.Model:
        return sabir.load(path)

    def ir_model() -> onnx_ir.Model:
        return onnx_ir.load(path)

    return {
        "load": [
            h.Case("sabir.load", lambda _: sabir.load(path)),
            h.Case("onnx.load", lambda _: onnx.load(path)),
            h.Case("onnx_ir.load", lambda _: onnx_ir.load(path)),
        ],
        "model to bytes": [
            h.Case("sabir.dumps", sabir.dumps, model),
            h.Case("onnx, SerializeToString", lambda _: theirs.SerializeToString()),
            h.Case("onnx_ir.to_proto, and that", lambda m: onnx_ir.to_proto(m).SerializeToString(), ir_model),
        ],
        "save to a file": [
            h.Case("sabir.save, with fsync", lambda m: sabir.save(m, target), model),
            h.Case("onnx.save", lambda _: onnx.save(theirs, target)),
            h.Case("onnx_ir.save", lambda m: onnx_ir.save(m, target), ir_model),
        ],
        "to text": [
            h.Case("sabir.text", text, model),
            h.Case("onnx.printer.to_text", lambda _: printer.to_text(theirs)),
        ],
        "infer": [
            h.Case("sabir.infer", sabir.infer, model),
            h.Case("onnx infer_shapes, data_prop", lambda _: infer_shapes(theirs, data_prop=True)),
        ],
        "check, types included": [
            h.Case("sabir.check", sabir.check, model),
            h.Case("onnx check_model, full_check", lambda _: checker.check_model(theirs, full_check=True)),
        ],
        "check, types left out": [
            h.Case("sabir.check, types=False", lambda m: sabir.check(m, types=False), model),
            h.Case("onnx check_model", lambda _: checker.check_model(theirs)),
        ],
    }


if __name__ == "__main__":
    main()
