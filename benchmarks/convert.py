"""Conversion between operator sets against onnx's converter, and what it adds to the models of a zoo."""
# ruff: file-ignore[banned-api]  onnx is the peer

from __future__ import annotations

import argparse
from pathlib import Path

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx
from graph import SIZES, chain
from machine import gigaflops, processor
from onnx.version_converter import convert_version

import sabir

ROUNDS = 5
WEIGHTS = 16  # of 64 MiB
SIDE = 4096
TARGETS = (9, 11, 13, 21, 28)


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__)
    cli.add_argument("zoo", nargs="?", type=Path, help="a folder of .onnx files")
    zoo: Path | None = cli.parse_args().zoo
    rows = []
    for what, model, opset in subjects(zoo):
        h.progress(what)
        rows += compared(what, model, opset)
    print("Each contestant converts a model that is in memory: objects here, protobuf messages in onnx.")
    print(f"Measured on {processor()}, where numpy's fp32 product reaches {gigaflops():.0f} GFLOP/s.\n")
    h.table(("what", "with", "time", "against sabir"), rows)
    if zoo is not None:
        growth(zoo)


def subjects(zoo: Path | None) -> list[tuple[str, sabir.Model, int]]:
    """Return what is converted, and to which opset."""
    found = [(f"a chain of {SIZES[0]:,} nodes, 18 → 21", chain(SIZES[0]), 21)]
    if zoo is not None and (zoo / "bert_base.onnx").exists():
        bert = sabir.load(zoo / "bert_base.onnx")
        found += [("BERT-base, 18 → 21", bert, 21), ("BERT-base, 18 → 13", bert, 13)]
    found.append(("1 GiB of weights, 17 → 18", large(), 18))
    return found


def large() -> sabir.Model:
    """Return a model of 1 GiB with one node that changes between the versions."""
    b = sabir.Builder(17)
    x = b.input("x", "float", ["N", SIDE])
    for place in range(WEIGHTS):
        x = b.MatMul(x, b.initializer(f"w{place}", np.full((SIDE, SIDE), place, np.float32)))
    b.output(b.ReduceMean(x, axes=[1]), "y")
    return b.model()


def compared(what: str, model: sabir.Model, opset: int) -> list[tuple[str, str, str, str]]:
    """Return the rows for one model: onnx converts it too, or fails."""
    theirs = onnx.load_from_string(sabir.dumps(model))
    cases = [h.Case("sabir.convert", lambda _: sabir.convert(model, opset=opset))]
    try:
        convert_version(theirs, opset)
    except (RuntimeError, ValueError) as error:
        refusal = str(error).splitlines()[0].rpartition("/")[2][:60]
    else:
        refusal = ""
        cases.append(h.Case("onnx convert_version", lambda _: convert_version(theirs, opset)))
    found = h.medians(cases, ROUNDS)
    ours = next(iter(found))
    rows = [(what if n == ours else "", f"`{n}`", t, r) for n, t, r in h.listed(found, ours)]
    return [*rows, ("", "`onnx convert_version`", f"fails: {refusal}", "")] if refusal else rows


def growth(zoo: Path) -> None:
    """Print the number of nodes before and after each conversion."""
    print("\nNodes of each model, and after a conversion; - where a node has no equivalent.\n")
    rows = []
    for path in sorted(zoo.glob("*.onnx")):
        h.progress(path.name)
        model = sabir.load(path)
        rows.append((
            path.stem,
            str(model.opset()),
            str(len(model.graph)),
            *(after(model, v) for v in TARGETS),
        ))
    h.table(("model", "opset", "nodes", *(f"to {v}" for v in TARGETS)), rows)


def after(model: sabir.Model, opset: int) -> str:
    try:
        return str(len(sabir.convert(model, opset=opset).graph))
    except sabir.ConversionError:
        return "-"


if __name__ == "__main__":
    main()
