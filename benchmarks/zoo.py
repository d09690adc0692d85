"""Every model of a folder, run by `sabir.Session` and by onnxruntime: times, and how far they differ.

    python benchmarks/zoo.py FOLDER [--dim batch=1 --dim seq=128]

Floats are drawn from a normal distribution, integers below 100; a dimension that the file leaves open is
the one given by `--dim`, else 1 for the first of an input and 64 for the others.
"""

from __future__ import annotations

import argparse
from itertools import starmap
from pathlib import Path
from typing import Any

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnxruntime

import sabir
from sabir.ir import TensorType

ROUNDS = 5
FIRST, LATER = 1, 64  # sizes of open dimensions
HIGHEST = 100  # integers are mostly indices into vocabularies


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path)
    cli.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    given = cli.parse_args()
    sizes = {name: int(size) for name, size in (d.split("=", 1) for d in given.dim)}
    paths = sorted(given.folder.glob("*.onnx"))
    if not paths:
        raise SystemExit(f"no .onnx files in {given.folder}")
    rows = [_row(path, dict(sizes)) for path in paths]
    head = ("model", "inputs", "`sabir.Session`", "onnxruntime", "ratio", "largest difference / range")
    h.table(head, rows)


def _row(path: Path, sizes: dict[str, int]) -> tuple[str, ...]:
    h.progress(path.stem)
    peer = _peer(path)
    try:
        session = sabir.Session(path, threads=h.THREADS)
        feeds = made_feeds(session, sizes)
        ours = list(session.run(feeds).values())
    except sabir.SabirError as error:  # a model that does not run is a result like the others
        return path.stem, "", "fails", "", "", f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
    worst = max(starmap(difference, zip(ours, peer.run(None, feeds), strict=True)))
    found = h.medians(
        [
            h.Case(f"{path.stem}, sabir.Session", lambda _: session.run(feeds)),
            h.Case(f"{path.stem}, onnxruntime", lambda _: peer.run(None, feeds)),
        ],
        ROUNDS,
    )
    mine, other = found.values()
    shown = ", ".join(f"{name} {list(x.shape)}" for name, x in feeds.items())
    return path.stem, shown, h.time_text(mine), h.time_text(other), h.ratio_text(other, mine), f"{worst:.1e}"


def made_feeds(session: sabir.Session, sizes: dict[str, int]) -> dict[str, Any]:
    """Return seeded random arrays for every input that must be given."""
    rng = np.random.default_rng(0)
    feeds = {}
    for port in session.inputs:
        if port.optional:
            continue
        if port.shape is None or not isinstance(port.type, TensorType):
            raise SystemExit(f"the input {port.name!r} is no tensor with a shape; give the model one")
        shape = [_size(d, place, sizes) for place, d in enumerate(port.shape)]
        kind = port.type.element.dtype
        drawn = rng.integers(0, HIGHEST, shape) if kind.kind in "iu" else rng.standard_normal(shape)
        feeds[port.name] = drawn.astype(kind)
    return feeds


def difference(ours: Any, theirs: Any) -> float:
    """Return the largest difference as a part of the range of the other's values."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        raise SystemExit(f"{ours.dtype}{list(ours.shape)} against {theirs.dtype}{list(theirs.shape)}")
    if not ours.size:
        return 0.0
    spread = float(theirs.max() - theirs.min()) or 1.0
    return float(np.abs(ours.astype(np.float64) - theirs.astype(np.float64)).max()) / spread


def _size(dim: Any, place: int, sizes: dict[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    return sizes.setdefault(str(dim), LATER if place else FIRST)


def _peer(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = h.THREADS, 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


if __name__ == "__main__":
    main()
