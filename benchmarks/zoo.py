"""Every model of a folder, run by both engines of `sabir.Session`, by onnxruntime and by OpenVINO: times.

    python benchmarks/zoo.py FOLDER [--dim batch=1 --dim seq=128]

Floats are drawn from a normal distribution, integers below 100; a dimension that the file leaves open is
the one given by `--dim`, else 1 for the first of an input and 64 for the others. `BENCH_THREADS` is the
number of threads of all sides. OpenVINO, in float32, has figures where it is installed.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from itertools import starmap
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np

import sabir
from sabir.compilation import Compiled
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS, REFERENCE_ROUNDS, FRESH_ROUNDS = 15, 3, 3
FIRST, LATER = 1, 64  # sizes of open dimensions
HIGHEST = 100  # integers are mostly indices into vocabularies
GIGA = 1e9


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("folder", type=Path)
    cli.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    given = cli.parse_args()
    sizes = {name: int(size) for name, size in (d.split("=", 1) for d in given.dim)}
    paths = sorted(given.folder.glob("*.onnx"))
    if not paths:
        raise SystemExit(f"no .onnx files in {given.folder}")
    print(
        f"{h.THREADS} thread(s) on every side. Of peak: the part of the operations a second that a kernel of"
    )
    print("nothing but multiplications and additions reaches on this machine with as many threads.\n")
    rows = [_row(path, dict(sizes)) for path in paths]
    h.table(
        ("model", "inputs", "compiled", "onnxruntime", "ratio", "OpenVINO", "ratio", "GFLOP/s", "of peak",
         "evaluated nodes", "reference engine", "compiled against it", "largest difference / range"),
        rows,
    )  # fmt: skip
    print("A session and its first run, each in a fresh process that has imported numpy and the engine, and")
    print("in one that imports the engine too; cold is without a cache on disk.\n")
    h.table(
        ("model", "warm", "cold", "onnxruntime", "ratio, warm", "ratio, cold",
         "warm, with the import", "onnxruntime, with the import", "ratio"),
        [_start(path, dict(sizes)) for path in paths],
    )  # fmt: skip


def _row(path: Path, sizes: dict[str, int]) -> tuple[str, ...]:
    h.progress(path.stem)
    peer = h.onnxruntime_session(path)
    try:
        session = sabir.Session(path, threads=h.THREADS, engine="compiled")
        feeds = made_feeds(session, sizes)
        ours = list(session.run(feeds).values())
    except sabir.SabirError as error:  # a model that does not run is a result like the others
        return (
            path.stem,
            "",
            "fails",
            f"{type(error).__name__}: {str(error).splitlines()[0][:120]}",
            *[""] * 9,
        )
    worst = max(starmap(difference, zip(ours, peer.run(None, feeds), strict=True)))
    cases = [
        h.Case("compiled", lambda _: session.run(feeds)),
        h.Case("onnxruntime", lambda _: peer.run(None, feeds)),
    ]
    if importlib.util.find_spec("openvino") is not None:
        cases.append(h.Case("OpenVINO", _openvino(path, feeds)))
    mine, other, *third = h.blocks(cases, ROUNDS).values()
    reference = sabir.Session(path, threads=h.THREADS, engine="reference")
    (slow,) = h.blocks([h.Case("reference", lambda _: reference.run(feeds))], REFERENCE_ROUNDS).values()
    compiled = Compiled(sabir.load(path), threads=h.THREADS)
    plan = compiled.compile(feeds)
    rate = plan.flops / mine
    shown = ", ".join(f"{name} {list(x.shape)}" for name, x in feeds.items())
    return (
        path.stem, shown, h.time_text(mine), h.time_text(other), h.ratio_text(other, mine),
        *([h.time_text(third[0]), h.ratio_text(third[0], mine)] if third else ["", ""]),
        f"{rate / GIGA:.0f}", f"{rate / compiled.roofline().flops:.0%}", str(len(plan.explain().evaluated)),
        h.time_text(slow), h.ratio_text(slow, mine), f"{worst:.1e}",
    )  # fmt: skip


_COMMON = "import sys; sys.path.insert(0, {folder!r}); import harness, numpy"
_FEEDS = "feeds = dict(numpy.load({file!r}))"
_OURS = "session = sabir.Session(path, threads={threads}); session.run(feeds)"
_PEERS = "session = harness.onnxruntime_session(path); session.run(None, feeds)"


def _start(path: Path, sizes: dict[str, int]) -> tuple[str, ...]:
    """Return what a session and its first run take in a fresh process, without and with the import.

    No process has used Sabir or onnxruntime before it is measured: the feeds are made here.
    """
    common, ours = _COMMON.format(folder=str(Path(__file__).parent)), _OURS.format(threads=h.THREADS)
    off = "import os; os.environ['SABIR_CACHE'] = 'off'"
    with TemporaryDirectory() as folder:
        file = Path(folder, "feeds.npz")
        np.savez(file, **made_feeds(sabir.Session(path, engine="reference"), sizes))
        make = _FEEDS.format(file=str(file))
        found = h.costs(
            [
                h.Script("warm", f"{common}, sabir; sabir.Session", ours, make),
                h.Script("cold", f"{off}; {common}, sabir; sabir.Session", ours, make),
                h.Script("onnxruntime", f"{common}, onnxruntime", _PEERS, make),
                h.Script("warm, with the import", common, f"import sabir; {ours}", make),
                h.Script("onnxruntime, with the import", common, _PEERS, make),
            ],
            path,
            FRESH_ROUNDS,
        )
    warm, cold, other, whole, other_whole = (cost.seconds for cost in found.values())
    return (
        path.stem, h.time_text(warm), h.time_text(cold), h.time_text(other),
        h.ratio_text(other, warm), h.ratio_text(other, cold),
        h.time_text(whole), h.time_text(other_whole), h.ratio_text(other_whole, whole),
    )  # fmt: skip


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


def _openvino(path: Path, feeds: dict[str, Any]) -> Callable[[Any], Any]:
    """Return a run of a model by OpenVINO, in single precision: its default is bfloat16."""
    openvino: Any = importlib.import_module("openvino")
    settings = {"INFERENCE_NUM_THREADS": h.THREADS, "INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda _: request.infer(feeds)


if __name__ == "__main__":
    main()
