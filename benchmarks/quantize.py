"""Quantized models against those of onnxruntime.quantization: accuracy, noise, size and speed.

    python benchmarks/quantize.py [--torch PYTHON] [--only NAME ...] ZOO

A network of timm is exported by an interpreter that has timm, torch and onnxscript (`--torch`, by default
this one). A network that is not there has a line that says so.
"""
# ruff: file-ignore[banned-api]  onnx is what the peer works on

from __future__ import annotations

import argparse
import contextlib
import subprocess  # ruff: ignore[suspicious-subprocess-import]  for the interpreter that has torch
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx
from machine import processor
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    matmul_nbits_quantizer,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers.float16 import convert_float_to_float16

import sabir
from sabir.demo import digits
from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NETWORKS = ("mobilenetv2", "resnet50", "convnext_tiny", "bert_base")
TIMM = "mobilenetv3_large_100"
RUNS, TESTS = 8, 8  # feeds to calibrate with, and others to measure the noise with
TOKENS = 128
ROUNDS = 15
FORMS: dict[str, dict[str, Any]] = {
    "int4 weights, blocks of 32": {"to": "int4"},
    "int8 weights, blocks of 32": {"weights_only": True},
    "dynamic int8": {},
    "static int8, minmax": {"method": "minmax"},
    "static int8, minmax, biases kept": {"method": "minmax", "correct_bias": False},
    "static int8, minmax, equalized": {"method": "minmax", "equalize": True},
    "static int8, percentile": {"method": "percentile"},
    "static int8, mse": {"method": "mse"},
    "static int8, entropy": {"method": "entropy"},
    "float16": {"to": "float16"},
    "bfloat16": {"to": "bfloat16"},
}
PEERS = {"static int8, minmax": CalibrationMethod.MinMax}  # its other methods take minutes for each network
COMPARED = (
    "int4 weights, blocks of 32",
    "dynamic int8",
    "static int8, minmax",
    "static int8, minmax, biases kept",
    "static int8, minmax, equalized",
    "static int8, mse",
    "static int8, entropy",
    "float16",
)


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("zoo", type=Path, help="a folder of .onnx files")
    cli.add_argument(
        "--torch", default=sys.executable, help="an interpreter that has timm, torch and onnxscript"
    )
    cli.add_argument("--only", nargs="*", metavar="NAME", help="these networks instead of all")
    given = cli.parse_args()
    zoo: Path = given.zoo
    wanted = (*NETWORKS, TIMM) if given.only is None else given.only
    print(f"{h.THREADS} thread(s) on both sides, on {processor()}.\n")
    demo()
    print(
        f"\nNetworks of the zoo and one of timm, with random weights. {RUNS} feeds of noise calibrate both,"
        f" and the signal-to-noise ratio is that of the first output for {TESTS} others, against the float"
        f" model in onnxruntime. Times are the least of {ROUNDS} runs with one image or {TOKENS} tokens."
        " A dash stands for what is not measured of the peer.\n"
    )
    head = ("by", "noise in Sabir", "in onnxruntime", "size", "time in Sabir", "in onnxruntime")
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            path = exported(given.torch, Path(folder)) if name == TIMM else zoo / f"{name}.onnx"
            if path.exists():
                h.table((name, *head), list(network(path, Path(folder))))
            else:
                reason = "the export failed; is timm installed?" if name == TIMM else f"{path} is missing"
                print(f"{name} is not measured: {reason}")
            print(flush=True)


def exported(python: str, folder: Path) -> Path:
    """Return the file of the network of timm, which does not exist where it could not be exported."""
    path = folder / f"{TIMM}.onnx"
    script = Path(__file__).with_name("timm_network.py")
    command = [python, str(script), TIMM, str(path)]
    # ruff: ignore[subprocess-without-shell-equals-true]  our own script, in the Python that the user names
    subprocess.run(command, stdout=sys.stderr, check=False)
    return path


def demo() -> None:
    """Print how many digits each form of the demo's model reads."""
    given = digits()
    model = sabir.loads(given.model)
    images = given.images.astype(np.float32).reshape(-1, 1, 8, 8)
    calibration = [{"image": images[start : start + 32]} for start in range(0, 128, 32)]
    rows = [("float", *read(model, images, given.labels))]
    for form, options in FORMS.items():
        data: dict[str, Any] = {"calibration": calibration} if "method" in options else {}
        rows.append((form, *read(sabir.quantize(model, **options, **data), images, given.labels)))
    h.table(("digits of `sabir demo`", "read correctly", "size"), rows)


def read(model: sabir.Model, images: Any, labels: Any) -> tuple[str, str]:
    found = sabir.Session(model).run({"image": images})["probabilities"].argmax(axis=1)
    return f"{(found == labels).mean():.2%}", f"{len(sabir.dumps(model)) / 1024:.1f} KiB"


def network(path: Path, folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the rows of one network: float, then each form by both packages."""
    model = sabir.load(path)
    data = [feeds(model, seed) for seed in range(RUNS)]
    tests = [feeds(model, 100 + seed) for seed in range(TESTS)]
    peer = h.onnxruntime_session(path)
    wanted = [peer.run(None, test)[0] for test in tests]
    yield measured("float", "", path, tests, wanted)
    for form in COMPARED:
        h.progress(f"{path.stem}: {form}")
        ours = folder / "ours.onnx"
        options: dict[str, Any] = FORMS[form] | ({"calibration": data} if "method" in FORMS[form] else {})
        sabir.save(sabir.quantize(model, **options), ours)
        yield measured(form, "sabir", ours, tests, wanted)
        theirs = folder / "theirs.onnx"
        absent = "-"
        with contextlib.redirect_stdout(sys.stderr):  # the peer prints what it does
            try:
                has_form = by_peer(form, path, theirs, data)
            except onnx.shape_inference.InferenceError:
                has_form, absent = False, "fails"
        if has_form:
            yield measured("", "onnxruntime", theirs, tests, wanted)
        else:
            yield "", "onnxruntime", *[absent] * 5


def feeds(model: sabir.Model, seed: int) -> dict[str, Any]:
    """Return noise for images, and random tokens without padding for texts."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    for value in model.graph.inputs:
        kind = value.type
        if not isinstance(kind, TensorType) or kind.shape is None:
            raise SystemExit(f"the input {value.name} has no shape")
        shape = [d if isinstance(d, int) else (TOKENS if axis else 1) for axis, d in enumerate(kind.shape)]
        if kind.element.is_float:
            found[value.name] = rng.standard_normal(shape, dtype=np.float32)
        elif "mask" in value.name:
            found[value.name] = np.ones(shape, np.int64)
        else:
            found[value.name] = rng.integers(0, 2 if "type" in value.name else 1000, shape)
    return found


class Reader(CalibrationDataReader):
    """The feeds, as onnxruntime reads them."""

    def __init__(self, data: list[dict[str, Any]]) -> None:
        self._data = iter(data)

    def get_next(self) -> dict[str, Any]:
        """Return the feeds of the next run; an empty dictionary ends them."""
        return next(self._data, {})


def by_peer(form: str, path: Path, output: Path, data: list[dict[str, Any]]) -> bool:
    """Write the model that onnxruntime.quantization makes; return whether it has such a form."""
    prepared = output.with_name("prepared.onnx")
    quant_pre_process(path, prepared, skip_symbolic_shape=True)
    if form.startswith("int4"):
        quantizer = matmul_nbits_quantizer.MatMulNBitsQuantizer(
            onnx.load(prepared), block_size=32, is_symmetric=True, quant_format=QuantFormat.QDQ
        )
        quantizer.process()
        made: Any = quantizer.model  # a wrapper of onnxruntime's, declared as the message
        made.save_model_to_file(str(output))
    elif form == "float16":
        onnx.save(convert_float_to_float16(onnx.load(prepared), keep_io_types=True), output)
    elif form.startswith("dynamic"):
        quantize_dynamic(prepared, output, per_channel=True, weight_type=QuantType.QInt8)
    elif form in PEERS:
        quantize_static(
            prepared, output, Reader(data), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, calibrate_method=PEERS[form],
        )  # fmt: skip
    else:
        return False
    return True


def measured(
    form: str, by: str, path: Path, tests: list[dict[str, Any]], wanted: list[Any]
) -> tuple[str, ...]:
    """Return a row: noise, size and time of a model in both runtimes."""
    ours, theirs = sabir.Session(path, threads=h.THREADS), h.onnxruntime_session(path)
    noise = [
        ratio([next(iter(ours.run(test).values())) for test in tests], wanted),
        ratio([theirs.run(None, test)[0] for test in tests], wanted),
    ]
    feed: Mapping[str, Any] = tests[0]
    cases = [
        h.Case("sabir", lambda _: ours.run(feed)),
        h.Case("onnxruntime", lambda _: theirs.run(None, feed)),
    ]
    times = h.blocks(cases, ROUNDS, pick=min)
    size = f"{path.stat().st_size / h.MIB:.1f} MiB"
    return form, by, *noise, size, *(f"{seconds * 1e3:.3g} ms" for seconds in times.values())


def ratio(found: list[Any], wanted: list[Any]) -> str:
    """Return the signal-to-noise ratio in decibels."""
    noise = sum(float(np.square(f - w, dtype=np.float64).sum()) for f, w in zip(found, wanted, strict=True))
    signal = sum(float(np.square(w, dtype=np.float64).sum()) for w in wanted)
    return f"{10 * np.log10(signal / noise):.1f} dB" if noise else "exact"


if __name__ == "__main__":
    main()
