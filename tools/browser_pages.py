"""Writes the pages that the tests in the browser open: `python tools/browser_pages.py FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import sabir
from sabir.debugging import trace
from sabir.viewing import html_of, page_of, trace_layer

_NEAR = 30  # nodes, from which an operand comes
_HEAD = '<ir_version: 10, opset_import: ["" : 21]> g (float[N,8] x) => (float[N,8] y)'


def large() -> sabir.Model:
    """Return 20,000 nodes in 500 layers of names."""
    ops, value = ("Relu", "Neg", "Abs", "Exp", "Sigmoid", "Tanh", "Add"), "x"
    lines: list[str] = []
    for number in range(20_000):
        op, layer = ops[number % 40 % len(ops)], number // 40
        operands = f"{value}, {value}" if op == "Add" else value
        value = f"v{number}"
        lines.append(
            f'["/model/layers.{layer}/part{number % 40 // 10}/{op}_{number}"] {value} = {op} ({operands})'
        )
    return sabir.parse(f"{_HEAD} {{ {' '.join(lines)} y = Identity ({value}) }}")


def flat() -> sabir.Model:
    """Return 20,000 nodes without layers, in no pattern that repeats."""
    generator = np.random.default_rng(1)
    lines: list[str] = []
    for number in range(20_000):
        op = ("Relu", "Neg", "Abs", "Add", "Mul")[generator.integers(5)]
        first = f"v{number - 1}" if number else "x"
        other = f"v{number - generator.integers(1, _NEAR)}" if number >= _NEAR else "x"
        lines.append(f"v{number} = {op} ({first}{f', {other}' if op in {'Add', 'Mul'} else ''})")
    return sabir.parse(f"{_HEAD} {{ {' '.join(lines)} y = Identity (v19999) }}")


def hostile() -> sabir.Model:
    """Return names that would be markup, that are long, and that turn the direction of the text."""
    model = sabir.parse(f"{_HEAD} {{ a = Relu (x)  b = Neg (a)  c = Abs (b)  y = Exp (c) }}")
    names = (
        "</script><script>document.title = 'broken'</script>",
        "n" * 10_000,
        "\u202eright to left\u202c",
        "<img src=x onerror=alert(1)>",
    )
    for node, name in zip(model.graph, names, strict=True):
        node.name = name
        node.doc = name
        node.metadata = {name: name}
    model.graph.doc = model.doc = "<b>documentation</b>"
    model.producer_name = "<style>*{display:none}</style>"
    return model


def nested() -> sabir.Model:
    """Return a Loop in a branch of an If, with a function that is called in it."""
    return sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[8] x, bool c, int64 n) => (float[8] y) {
        h = local.Twice (x)
        y = If (c) <
            then_branch = then () => (float[8] t) {
                go = Constant <value = bool {1}> ()
                t = Loop (n, go, h) <body = body (int64 i, bool k, float[8] s) => (bool k2, float[8] s2) {
                    k2 = Identity (k)
                    s2 = local.Twice (s)
                }>
            },
            else_branch = else () => (float[8] e) { e = Neg (x) }
        >
    }
    <domain: "local", opset_import: ["" : 21]>
    Twice (a) => (b) { b = Add (a, a) }""")


def cyclic() -> sabir.Model:
    """Return two functions that call each other, and that nothing else calls."""
    return sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[8] x) => (float[8] y) { y = Relu (x) }
    <domain: "local", opset_import: ["" : 21, "local" : 1]> A (p) => (q) { q = local.B (p) }
    <domain: "local", opset_import: ["" : 21, "local" : 1]> B (p) => (q) { q = local.A (p) }""")


def weighted() -> sabir.Model:
    """Return twelve equal blocks of two products, with a finding, and a NaN among the weights."""
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 16])
    generator = np.random.default_rng(0)
    for layer in range(12):
        for part in ("up", "down"):
            weight = generator.normal(size=(16, 16)).astype(np.float32)
            weight[0, 0] = np.nan if (layer, part) == (3, "up") else 0
            kernel = b.initializer(f"layers.{layer}.{part}.weight", weight)
            x = b.Relu(
                b.MatMul(x, kernel, name=f"/layers.{layer}/{part}/MatMul"),
                name=f"/layers.{layer}/{part}/Relu",
            )
    b.output(x, "y")
    model = b.model()
    model.graph[1].op = "Rellu"
    return model


def main() -> None:
    """Write the pages into the folder that the command line names."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (large, flat, hostile, nested, cyclic, weighted):
        (folder / f"{make.__name__}.html").write_bytes(html_of(page_of(make(), name=make.__name__)))
    model = sabir.parse(f"{_HEAD} {{ a = Sqrt (x)  y = Relu (a) }}")
    page = page_of(model, name="traced")
    page.add_layer(trace_layer(page, trace(model, {"x": -np.ones((1, 8), np.float32)})))
    (folder / "traced.html").write_bytes(html_of(page))


if __name__ == "__main__":
    main()
