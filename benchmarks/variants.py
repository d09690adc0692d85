"""The models of a folder as users deploy them: as 8-bit integers, as float16, and a token at a time.

    python benchmarks/variants.py FOLDER

onnxruntime's own tools make the variants: weights and activations as QuantizeLinear and DequantizeLinear
where a model has convolutions, else dynamically quantized products and tables; float16 with inputs and
outputs of that type. A model whose input has an open dimension `seq` also runs with one token.
`BENCH_THREADS` is the number of threads of both sides.
"""
# ruff: file-ignore[banned-api]  onnx is the format of the peer's tools

from __future__ import annotations

import argparse
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx
from onnxruntime import quantization
from onnxruntime.transformers.float16 import convert_float_to_float16
from zoo import difference, made_feeds

import sabir

if TYPE_CHECKING:
    from collections.abc import Iterator

CALIBRATED = 2  # drawn inputs from which the ranges of activations come
ONE_TOKEN = {"batch": 1, "seq": 1}


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path)
    paths = sorted(cli.parse_args().folder.glob("*.onnx"))
    logging.disable(logging.WARNING)
    print(
        f"{h.THREADS} thread(s) on both sides. The difference is that of the largest element, by the range.\n"
    )
    head = ("model", "variant", "Sabir", "onnxruntime", "ratio", "evaluated nodes", "difference")
    h.table(head, [row for path in paths for row in _rows(path)])
    print("Integers are equal but for roundings: a scale in single precision moves some by one step.")


def _rows(path: Path) -> Iterator[tuple[str, ...]]:
    session = sabir.Session(path, engine="reference")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in (("8-bit integers", _quantized), ("float16", _halved)):
            h.progress(f"{path.stem}, {name}")
            variant = Path(folder) / "variant.onnx"
            make(path, variant)
            yield (path.stem, name, *_figures(variant, {}))
    if any("seq" in map(str, port.shape or ()) for port in session.inputs):
        h.progress(f"{path.stem}, one token")
        yield (path.stem, "one token", *_figures(path, dict(ONE_TOKEN)))


def _figures(path: Path, sizes: dict[str, int]) -> tuple[str, ...]:
    peer = h.onnxruntime_session(path)
    session = sabir.Session(path, threads=h.THREADS, engine="compiled")
    feeds = made_feeds(session, sizes)
    ours, theirs = list(session.run(feeds).values()), peer.run(None, feeds)
    worst = max(map(difference, ours, theirs))
    evaluated = len(session.explain().evaluated)
    mine, other = h.blocks([
        h.Case("Sabir", lambda _: session.run(feeds)),
        h.Case("onnxruntime", lambda _: peer.run(None, feeds)),
    ]).values()
    return (
        h.time_text(mine), h.time_text(other), h.ratio_text(other, mine), str(evaluated), f"{worst:.1e}",
    )  # fmt: skip


def _quantized(path: Path, target: Path) -> None:
    if not any(node.op_type == "Conv" for node in onnx.load(path, load_external_data=False).graph.node):
        # recurrences would become an operator of onnxruntime's own
        quantization.quantize_dynamic(path, target, op_types_to_quantize=["MatMul", "Gemm", "Gather"])
        return
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quantization.quant_pre_process(str(path), str(prepared), skip_symbolic_shape=True)
        quantization.quantize_static(str(prepared), str(target), _Reader(path))


def _halved(path: Path, target: Path) -> None:
    onnx.save(convert_float_to_float16(onnx.load(path)), target)


class _Reader(quantization.CalibrationDataReader):
    """Feeds drawn from a normal distribution."""

    def __init__(self, path: Path) -> None:
        feeds = made_feeds(sabir.Session(path, engine="reference"), {})
        rng = np.random.default_rng(1)
        self._feeds = iter([
            {name: rng.standard_normal(x.shape).astype(x.dtype) for name, x in feeds.items()}
            for _ in range(CALIBRATED)
        ])

    def get_next(self) -> Any:
        return next(self._feeds, None)


if __name__ == "__main__":
    main()
