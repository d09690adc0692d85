"""Graphs of 20 000 and 200 000 nodes: load, dump, text, parse, infer, check, convert, clone, simplify.

`python benchmarks/graph.py 20000 200000` names the sizes; onnx_ir takes part in the smallest alone.
"""
# ruff: file-ignore[banned-api]  onnx is the peer

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness as h  # before numpy: it pins the threads
import numpy as np
import onnx
import onnx_ir
from onnx import checker, parser, printer, version_converter
from onnx.shape_inference import infer_shapes

import sabir
from sabir.syntax import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIZES = (20_000, 200_000)
WIDTH = 8
HEADS = 2
ROUNDS = 2
OPSET, NEWER = 18, 21
_SMALL = 50_000  # nodes; a larger graph is measured once, without onnx_ir and without onnx's slow converter


def main(sizes: tuple[int, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            for name, make in GRAPHS.items():
                path = Path(folder) / f"{name}.onnx"
                sabir.save(make(size), path)
                count = sum(1 for _ in sabir.load(path).graph.all_nodes())
                h.progress(f"made {count} nodes of {name}, {path.stat().st_size} bytes")
                print(f"\n### {count:,} nodes, {name}: {NOTES[name]}\n")
                _print(path, is_small=size < _SMALL)
        print(
            "CPU time, the least of the rounds. `onnx` reads into protobuf messages and works on them in C++;"
        )
        print("`sabir` and `onnx_ir` make linked graphs of Python objects, and messages of these for a save.")


def _print(path: Path, *, is_small: bool) -> None:
    rows: list[tuple[str, str, str, str]] = []
    for what, cases in subjects(path, is_small=is_small):
        h.progress(what)
        found = h.medians(cases, ROUNDS if is_small else 1, min, time.process_time)
        ours = next(iter(found))
        rows += [(what if n == ours else "", f"`{n}`", t, r) for n, t, r in h.listed(found, ours)]
    h.table(("what", "with", "time", "against sabir"), rows)


# graphs


def chain(nodes: int) -> sabir.Model:
    """Return blocks of `y = Relu(x · w + b) + x`, each with weights of its own."""
    weight = _weight()
    b = sabir.Builder(opset=OPSET)
    x = b.input("x", "float", ["N", WIDTH])
    for block in range(nodes // 4):
        product = b.MatMul(x, b.initializer(f"w{block}", weight), name=f"matmul_{block}")
        summed = b.Add(product, b.initializer(f"b{block}", weight[0]), name=f"add_{block}")
        x = b.Add(b.Relu(summed, name=f"relu_{block}"), x, name=f"residual_{block}")
    b.output(x, "y", "float", ["N", WIDTH])
    return b.model(ir_version=8)


def attention(nodes: int) -> sabir.Model:
    """Return layers of self-attention as an exporter writes them: with types, names and metadata."""
    b = sabir.Builder(opset=OPSET)
    x: Any = b.input("x", "float", ["N", "S", WIDTH])
    for layer in range(nodes // 23):
        x = _attention_layer(b, x, f"/encoder/layer.{layer}")
    b.output(x, "y", "float", ["N", "S", WIDTH])
    model = sabir.infer(b.model(ir_version=10))
    for node in model.graph:
        node.metadata = {"namespace": node.name, "pkg.torch.onnx.class_hierarchy": "Encoder"}
    return model


def _attention_layer(b: sabir.Builder, x: Any, prefix: str) -> Any:
    """Append 23 nodes: three projections into heads, their attention, a residual and a normalization."""
    weight = _weight()
    perms = {"q": (0, 2, 1, 3), "k": (0, 2, 3, 1), "v": (0, 2, 1, 3)}
    heads: list[Any] = []
    for name, perm in perms.items():
        at = f"{prefix}/{name}"
        y = b.MatMul(x, b.initializer(f"{at}.weight", weight), name=f"{at}/MatMul")
        y = b.Add(y, b.initializer(f"{at}.bias", weight[0]), name=f"{at}/Add")
        shape = b.Constant(value=np.asarray([0, 0, HEADS, WIDTH // HEADS], np.int64), name=f"{at}/Constant")
        heads.append(
            b.Transpose(b.Reshape(y, shape, name=f"{at}/Reshape"), perm=perm, name=f"{at}/Transpose")
        )
    query, key, value = heads
    weights = b.Softmax(b.MatMul(query, key, name=f"{prefix}/MatMul"), axis=-1, name=f"{prefix}/Softmax")
    mixed = b.Transpose(b.MatMul(weights, value, name=f"{prefix}/MatMul_1"), perm=(0, 2, 1, 3), name=prefix)
    shape = b.Constant(value=np.asarray([0, 0, WIDTH], np.int64), name=f"{prefix}/Constant")
    summed = b.Add(b.Reshape(mixed, shape, name=f"{prefix}/Reshape"), x, name=f"{prefix}/Add")
    scale, bias = (b.initializer(f"{prefix}.norm.{part}", weight[0]) for part in ("weight", "bias"))
    return b.LayerNormalization(summed, scale, bias, axis=-1, name=f"{prefix}/LayerNormalization")


def branches(nodes: int) -> sabir.Model:
    """Return a chain of `If` nodes, with two small subgraphs each."""
    shown = f"float[N, {WIDTH}]"
    calls = [
        f"y{i + 1} = If (c) <"
        f"then_branch = t () => ({shown} a{i}) {{ b{i} = Relu (y{i})  a{i} = Add (b{i}, y{i}) }},"
        f"else_branch = e () => ({shown} d{i}) {{ d{i} = Neg (y{i}) }}>"
        for i in range(nodes // 4)
    ]
    head = f'<ir_version: 8, opset_import: ["" : {OPSET}]> g ({shown} y0, bool c) => ({shown} y{len(calls)})'
    return sabir.parse("\n".join([head, "{", *calls, "}"]))


def _weight() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(0).standard_normal((WIDTH, WIDTH), np.float32)


def redundant(nodes: int) -> sabir.Model:
    """Return blocks of two Transposes that cancel, a product with a bias, a scale of 1, two Relus, a sum."""
    weight = _weight()
    b = sabir.Builder(opset=OPSET)
    x = b.input("x", "float", ["N", WIDTH])
    for block in range(nodes // 8):
        moved = b.Transpose(x, perm=(1, 0), name=f"transpose_{block}")
        back = b.Transpose(moved, perm=(1, 0), name=f"transpose_back_{block}")
        product = b.MatMul(back, b.initializer(f"w{block}", weight), name=f"matmul_{block}")
        summed = b.Add(product, b.initializer(f"b{block}", weight[0]), name=f"add_{block}")
        scaled = b.Mul(summed, b.initializer(f"scale{block}", np.float32(1)), name=f"mul_{block}")
        positive = b.Relu(b.Relu(scaled, name=f"relu_{block}"), name=f"relu_again_{block}")
        x = b.Add(positive, x, name=f"residual_{block}")
    b.output(x, "y", "float", ["N", WIDTH])
    return b.model(ir_version=8)


GRAPHS: dict[str, Callable[[int], sabir.Model]] = {
    "chain": chain,
    "attention": attention,
    "branches": branches,
    "redundant": redundant,
}
NOTES = {
    "chain": "a residual chain with an initializer for every second node",
    "attention": "layers with constants, value_info and metadata",
    "branches": "`If` nodes, with two subgraphs each",
    "redundant": "blocks of which five nodes of eight can be removed",
}


# jobs


def subjects(path: Path, *, is_small: bool) -> Iterator[tuple[str, list[h.Case]]]:
    """Yield what is measured, and with what."""
    theirs = onnx.load(path)
    ours_text, theirs_text = text(sabir.load(path)), printer.to_text(theirs)

    def model() -> sabir.Model:
        return sabir.load(path)

    def ir(name: str, work: Callable[[Any], Any], setup: Callable[[], Any] = lambda: None) -> list[h.Case]:
        return [h.Case(name, work, setup)] if is_small else []

    def ir_model() -> onnx_ir.Model:
        return onnx_ir.load(path)

    yield (
        "load",
        [
            h.Case("sabir.load", lambda _: sabir.load(path)),
            h.Case("onnx.load", lambda _: onnx.load(path)),
            *ir("onnx_ir.load", lambda _: onnx_ir.load(path)),
        ],
    )
    yield (
        "model to bytes",
        [
            h.Case("sabir.dumps", sabir.dumps, model),
            h.Case("onnx, SerializeToString", lambda _: theirs.SerializeToString()),
            *ir("onnx_ir.to_proto, and that", lambda m: onnx_ir.to_proto(m).SerializeToString(), ir_model),
        ],
    )
    yield (
        "to text",
        [
            h.Case("sabir.text", text, model),
            h.Case("onnx.printer.to_text", lambda _: printer.to_text(theirs)),
        ],
    )
    yield (
        "from text",
        [
            h.Case("sabir.parse", lambda _: sabir.parse(ours_text)),
            *_onnx_parser(theirs_text),
        ],
    )
    yield (
        "infer",
        [
            h.Case("sabir.infer", sabir.infer, model),
            h.Case("onnx infer_shapes, data_prop", lambda _: infer_shapes(theirs, data_prop=True)),
        ],
    )
    yield (
        "check, types included",
        [
            h.Case("sabir.check", sabir.check, model),
            h.Case("onnx check_model, full_check", lambda _: checker.check_model(theirs, full_check=True)),
        ],
    )
    yield (
        "check, types left out",
        [
            h.Case("sabir.check, types=False", lambda m: sabir.check(m, types=False), model),
            h.Case("onnx check_model", lambda _: checker.check_model(theirs)),
        ],
    )
    yield (
        f"convert, {OPSET} → {NEWER}",
        [
            h.Case("sabir.convert", lambda m: sabir.convert(m, NEWER), model),
            *ir("onnx convert_version", lambda _: version_converter.convert_version(theirs, NEWER)),
        ],
    )
    yield (
        "clone",
        [
            h.Case("Model.clone", lambda m: m.clone(), model),
            h.Case("onnx, CopyFrom", lambda _: onnx.ModelProto().CopyFrom(theirs)),
            *ir("onnx_ir.Model.clone", lambda m: m.clone(), ir_model),
        ],
    )

    yield (
        "simplify",
        [h.Case("sabir.simplify, verify=False", lambda m: sabir.simplify(m, verify=False), model)],
    )


def _onnx_parser(written: str) -> list[h.Case]:
    """Return the case of onnx's parser, which does not read all that onnx's printer writes."""
    try:
        parser.parse_model(written)
    except parser.ParseError as error:
        h.progress(f"onnx.parser: {str(error)[:200]}")
        return []
    return [h.Case("onnx.parser.parse_model", lambda _: parser.parse_model(written))]


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
