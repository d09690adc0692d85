"""The nine light models of the onnx package: evaluated beside its evaluator, run beside onnxruntime.

Every output is compared with the recorded one. `BENCH_THREADS` is the number of threads of all sides.
"""
# ruff: file-ignore[banned-api]  onnx is the peer

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

import sabir
from sabir.serial import load_tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
ROUNDS = 3
RTOL, ATOL = 1e-3, 1e-7  # the official runner's own


def main() -> None:
    paths = sorted(FOLDER.glob("*.onnx"))
    if not paths:
        raise SystemExit(f"no models in {FOLDER}")
    rows = [_row(path) for path in paths]
    reference, runtime = ("`sabir.evaluate`", "`ReferenceEvaluator`"), ("`sabir.Session`", "onnxruntime")
    h.table(("model", *reference, "ratio", *runtime, "ratio", "agrees"), rows)
    print(
        "\nsqueezenet's thousand scores are equal numbers of about 10^10: where the kernels of a BLAS round\n"
        "one of them otherwise than its neighbour, the softmax over them is not what was recorded.\n"
        "Most of shufflenet's time goes to convolutions in four groups of 34, 68 and 136 filters. Filters\n"
        "are the lanes of vectors: 34 take three of 16, of which a third is wasted. Vectors of pixels would\n"
        "not be."
    )


def _row(path: Path) -> Sequence[str]:
    name = path.stem.removeprefix("light_")
    h.progress(name)
    model = sabir.load(path)
    session, peer = sabir.Session(model, threads=h.THREADS), h.onnxruntime_session(path)
    feeds = {p.name: arange(p.shape) for p in session.inputs if not p.optional}
    expected = load_tensor(path.with_name(f"{path.stem}_output_0.pb")).array()
    found = next(iter(session.run(feeds).values()))
    # a new evaluator each time on both sides: this is the price of one evaluation of a loaded model
    proto = onnx.load(path)
    ours, reference = h.medians(
        [
            h.Case("sabir.evaluate", lambda _: sabir.evaluate(model, feeds)),
            h.Case("ReferenceEvaluator", lambda _: ReferenceEvaluator(proto).run(None, feeds)),
        ],
        ROUNDS,
    ).values()
    ran, theirs = h.blocks([
        h.Case("sabir.Session", lambda _: session.run(feeds)),
        h.Case("onnxruntime", lambda _: peer.run(None, feeds)),
    ]).values()
    agrees = "yes" if np.allclose(found, expected, RTOL, ATOL) else "NO"
    return (name, h.time_text(ours), h.time_text(reference), h.ratio_text(reference, ours),
            h.time_text(ran), h.time_text(theirs), h.ratio_text(theirs, ran), agrees)  # fmt: skip


def arange(shape: Any) -> np.ndarray:
    """Return the input that the recorded outputs belong to."""
    size = int(np.prod(shape))
    return (np.arange(size).reshape(shape) / size).astype(np.float32)


if __name__ == "__main__":
    main()
