"""Runs models with each tensor beside pages that nobody may touch: a read or write outside of it kills the process.

`python tests/compilation/guarded.py --share N` runs one in N of the examples of all operators, and products,
rows and moves of many sizes; it prints the name of each model before it runs it. Tensors lie at the end of their
pages, where an access past the last element is found, or with `--before` at the begin.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import sabir
from sabir.base import SabirError
from support.guards import Guards, guarded, install, is_native
from support.rooms import OPERATORS, examples_of, model_of

if TYPE_CHECKING:
    from collections.abc import Iterator

# ---------------------------------------------------------------- models

BROKEN = '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Exp (x) }'
SIZES = (1, 2, 3, 5, 7, 8, 15, 17, 31, 33, 47, 48, 49, 65, 97)
TEXTS = {
    "product": "g (float[m,k] a, float[k,n] b) => (y) { p = MatMul (a, b)  y = Relu (p) }",
    "product of doubles": "g (double[m,k] a, double[k,n] b) => (y) { y = MatMul (a, b) }",
    "transposed product": "g (float[k,m] a, float[n,k] b) => (y) { y = Gemm <transA = 1, transB = 1> (a, b) }",
    "long epilogue": """g (float[m,k] a, float[k,n] b) => (y) {
        p = MatMul (a, b)  q = Gelu (p)  r = Erf (q)  s = Tanh (r)  t = Mish (s)  y = Softplus (t) }""",
    "batches": "g (float[3,m,k] a, float[k,n] b) => (y) { y = MatMul (a, b) }",
    "attention": """g (float[2,m,k] a, float[2,n,k] b) => (y) {
        t = Transpose <perm = [0, 2, 1]> (b)  p = MatMul (a, t)  s = Softmax (p)  y = MatMul (s, b) }""",
    "rows": """g (float[m,k] a, float[k,n] b) => (x, y, z) {
        x = Softmax (a)  y = LogSoftmax <axis = 0> (b)
        k = Constant <value_ints = [0]> ()  t = Exp (b)  u = ReduceMean (t, k)  v = Sub (t, u)  z = ReduceMax (v, k) }""",
    "narrow types": """g (float[m,k] a, float[k,n] b) => (w, x, y, z) {
        i = Cast <to = 3> (a)  h = Cast <to = 10> (a)  d = Cast <to = 11> (b)  z = Exp (d)
        j = Add (i, i)  w = Cast <to = 9> (j)  x = Sqrt (h)  l = Cast <to = 7> (b)  y = Mul (l, l) }""",
    "moves": """g (float[m,k] a, float[k,n] b) => (u, v, w, x, y) {
        t = Transpose (a)  u = Neg (t)  v = Concat <axis = 1> (t, b)
        p = Constant <value_ints = [1, 2, 3, 0]> ()  e = Exp (b)  w = Pad (e, p)
        s = Constant <value_ints = [-1]> ()  f = Constant <value_ints = [-100000]> ()  o = Constant <value_ints = [1]> ()
        r = Slice (e, s, f, o, s)  x = Abs (r)  m1 = Constant <value_ints = [-1]> ()  q = Reshape (t, m1)  y = Exp (q) }""",
    "assumed sizes": """g (float[m,k] a, float[k,n] b) => (u, v, w, x, y, z) {
        s = Constant <value_ints = [-9]> ()  f = Constant <value_ints = [-100000]> ()  o = Constant <value_ints = [1]> ()
        t = Constant <value_ints = [-1]> ()  d = Slice (a, s, f, o, t)  u = Exp (d)
        p = Constant <value_ints = [0, -3, 0, 5]> ()  x = Pad (b, p)
        y = Einsum <equation = "ij,jk,lj->kil"> (a, b, a)  g = Transpose (a)  h = MatMul (a, g)
        z = Einsum <equation = "ii->i"> (h)  q = Constant <value_ints = [4, 6]> ()  v = CenterCropPad (a, q)
        r = Constant <value_ints = [3, -1]> ()  c = Concat <axis = 0> (a, a, a)  w = Reshape (c, r) }""",
    "indices": """g (float[m,k] a, float[k,n] b) => (x, y) {
        o = Constant <value_ints = [0]> ()  h = ArgMax <axis = 1, keepdims = 0> (b)  e = Exp (b)
        x = Gather <axis = 0> (e, h)  l = Cast <to = 7> (a)  y = Gather <axis = 1> (e, l) }""",
    "windows": """g (float[m,k] a, float[k,n] b) => (u, v, w, x, y) {
        o = Constant <value_ints = [0, 1]> ()  c = Unsqueeze (a, o)  s = Constant <value_ints = [3, 17, 1, 1]> ()
        d = Expand (c, s)  f = Constant <value_ints = [21, 17, 3, 2]> ()  g = ConstantOfShape (f)
        u = Conv <pads = [1, 1, 1, 1]> (d, g)  h = Constant <value_ints = [17, 1, 2, 3]> ()  i = ConstantOfShape (h)
        v = Conv <group = 17, pads = [2, 1, 0, 1], strides = [1, 2]> (d, i)
        w = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (u)
        z = Constant <value_ints = [0]> ()  l = Unsqueeze (b, z)
        x = AveragePool <kernel_shape = [3], pads = [2, 1]> (l)  t = Relu (u)  y = Flatten (t) }""",
    "windows by tiles": """g (float[m,k] a, float[k,n] b) => (w, x, y, z) {
        o = Constant <value_ints = [0, 1]> ()  c = Unsqueeze (a, o)  s = Constant <value_ints = [2, 33, 1, 1]> ()
        d = Expand (c, s)  f = Constant <value_ints = [50, 33, 3, 3]> ()  g = ConstantOfShape (f)
        x = Conv <pads = [1, 1, 1, 1]> (d, g)  y = MatMul (a, b)
        h = Constant <value_ints = [2, 33, 3, 3]> ()  i = ConstantOfShape (h)
        z = Conv <pads = [1, 1, 1, 1]> (d, i)  l = Constant <value_ints = [1, 20, 1, 1]> ()
        p = Expand (c, l)  q = Constant <value_ints = [20, 4, 2, 3]> ()  r = ConstantOfShape (q)
        w = Conv <group = 5, pads = [1, 1, 0, 1]> (p, r) }""",
    "images": """g (float[m,k] a, float[k,n] b) => (x, y, z) {
        o = Constant <value_ints = [0, 1]> ()  c = Unsqueeze (a, o)  s = Constant <value_ints = [2, 5, 1, 1]> ()
        d = Expand (c, s)  f = Constant <value_ints = [5, 18, 3, 2]> ()  w = ConstantOfShape (f)
        x = ConvTranspose <strides = [2, 3], pads = [1, 0, 0, 1]> (d, w)  e = Exp (b)  g = Unsqueeze (e, o)
        r = Constant <value_floats = [1.0, 1.0, 2.0, 0.5]> ()  y = Resize <mode = "linear"> (g, , r)
        z = Resize <nearest_mode = "ceil"> (x, , r) }""",
    "recurrences": """g (float[m,k] a, float[k,n] b) => (x, y, z, r, s, t) {
        i = Constant <value_ints = [0]> ()  q = Unsqueeze (a, i)
        c = Shape <start = 1> (a)  o = Constant <value_ints = [1, 68]> ()  g = Concat <axis = 0> (o, c)
        w = ConstantOfShape (g)  p = Constant <value_ints = [1, 68, 17]> ()  u = ConstantOfShape (p)
        x, y, z = LSTM <hidden_size = 17, layout = 1> (q, w, u)
        j = Unsqueeze (b, i)  d = Shape <start = 1> (b)  e = Constant <value_ints = [1, 240]> ()
        h = Concat <axis = 0> (e, d)  l = ConstantOfShape (h)
        v = Constant <value_ints = [1, 240, 80]> ()  n2 = ConstantOfShape (v)  r, s = GRU <hidden_size = 80> (j, l, n2)
        t = Exp (s) }""",
    "trees": """g (float[m,k] a, float[k,n] b) => (x, y, z) {
        x = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0, 0, 0, 0, 0, 7],
            nodes_nodeids = [0, 1, 2, 3, 4, 0], nodes_featureids = [0, 0, 0, 0, 0, 0],
            nodes_values = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0],
            nodes_modes = ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "LEAF"],
            nodes_truenodeids = [1, 3, 0, 0, 0, 0], nodes_falsenodeids = [2, 4, 0, 0, 0, 0],
            target_treeids = [0, 0, 0, 7], target_nodeids = [2, 3, 4, 0], target_ids = [0, 0, 0, 0],
            target_weights = [1.0, 2.0, 3.0, 4.0]> (a)
        y, z = ai.onnx.ml.TreeEnsembleClassifier <nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2],
            nodes_featureids = [0, 0, 0], nodes_values = [0.5, 0.0, 0.0],
            nodes_modes = ["BRANCH_EQ", "LEAF", "LEAF"], nodes_missing_value_tracks_true = [1, 0, 0],
            nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], class_treeids = [0, 0, 0],
            class_nodeids = [1, 2, 2], class_ids = [2, 0, 1], class_weights = [0.25, 0.75, 0.5],
            classlabels_int64s = [4, 9, 3]> (b) }""",
    "integers": """g (float[m,k] a, float[k,n] b) => (u, v, w, x, y) {
        d, s, z = DynamicQuantizeLinear (a)  e, t, q = DynamicQuantizeLinear (b)
        i = Cast <to = 3> (b)  u = MatMulInteger (d, i, z)  x = MatMulInteger (d, e, z, q)
        f = DequantizeLinear (d, s, z)  g = DequantizeLinear (e, t, q)  h = MatMul (f, g)
        c = Constant <value_float = 0.1> ()  r = Relu (h)  v = QuantizeLinear (r, c)
        o = Constant <value_ints = [0, 1]> ()  j = Unsqueeze (d, o)  l = Constant <value_ints = [3, 5, 1, 1]> ()
        p = Expand (j, l)  aa = Constant <value_ints = [7, 5, 3, 2]> ()
        bb = ConstantOfShape <value = int8[1] {-3}> (aa)  w = ConvInteger <pads = [1, 1, 1, 1]> (p, bb, z)
        cc = Constant <value_ints = [5, 1, 2, 3]> ()  dd = ConstantOfShape <value = uint8[1] {200}> (cc)
        y = ConvInteger <group = 5, strides = [1, 2], pads = [1, 1, 1, 1]> (p, dd, z) }""",
    "byte windows": """g (float[m,k] a, float[k,n] b) => (v, w, x) {
        q = Constant <value_float = 0.1> ()  z = Constant <value = uint8 {7}> ()  d = QuantizeLinear (a, q, z)
        o = Constant <value_ints = [0, 1]> ()  e = Unsqueeze (d, o)  s = Constant <value_ints = [3, 17, 1, 1]> ()
        p = Expand (e, s)  f = Constant <value_ints = [17, 1, 3, 2]> ()
        g = ConstantOfShape <value = int8[1] {-3}> (f)  h = ConstantOfShape <value = uint8[1] {200}> (f)
        v = ConvInteger <group = 17, pads = [1, 1, 1, 1]> (p, g, z)
        w = ConvInteger <group = 17, pads = [1, 1, 1, 1], strides = [2, 1]> (p, h, z)
        x = MatMul (a, b) }""",
    "few columns": """g (float[m,k] a, float[k,n] b) => (w, x, y, z) {
        c = Constant <value_ints = [3]> ()  d = Shape <start = 1> (a)  e = Concat <axis = 0> (d, c)
        f = ConstantOfShape <value = float[1] {0.5}> (e)  p = MatMul (a, f)
        w = ArgMax <axis = 1, keepdims = 0> (p)  x = Softmax (p)  r = Neg (p)  o = Constant <value_ints = [1]> ()
        y = ReduceMin (r, o)  z = MatMul (a, b) }""",
    "halves": """g (float16[m,k] a, bfloat16[k,n] b) => (u, v, w, x) {
        c = Cast <to = 10> (b)  u = MatMul (a, c)  v = Softmax (b)  t = Transpose (a)  w = Concat <axis = 1> (t, c)
        s = Constant <value_ints = [3, 40]> ()  d = ConstantOfShape <value = float16[1] {16384}> (s)
        o = Constant <value_ints = [1]> ()  e = ReduceMax (a, o)  f = Expand (e, s)
        g = Transpose (f)  h = MatMul (g, d)  x = Exp (h) }""",
    "argument": """g (float[m,k] a, float[k,n] b) => (x, y) {
        x = ArgMin <axis = 0> (b)  y = ArgMax <axis = -1> (a) }""",
}  # fmt: skip
FIXED = {
    "direct products": """g (float[3,7,131] a, float[3,131,49] b, double[5,140] c, double[140,9] d) => (x, y, z) {
        x = MatMul (a, b)  y = MatMul (c, d)  t = Transpose <perm = [0, 2, 1]> (b)  z = MatMul (t, b) }""",
}


def feeds_of(model: sabir.Model, m: int, k: int, n: int) -> dict[str, np.ndarray]:
    """Feeds for sizes of the variables; indices among them are sometimes wrong."""
    rng, found = np.random.default_rng([m, k, n]), {}
    for port in model.graph.inputs:
        sizes = [{"m": m, "k": k, "n": n}.get(str(d)) or int(str(d)) for d in port.type.shape]
        x = rng.standard_normal(sizes) * 3
        found[port.name] = x.astype(port.type.element.dtype)
    return found


def tell(text: str) -> None:
    """Print a line at once: the next model may be the last."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(session: sabir.Session, feeds: dict[str, Any]) -> dict[str, Any] | None:
    """Run twice, the second time the fast way."""
    fed = {
        name: guarded(x) if isinstance(x, np.ndarray) and x.dtype.kind != "O" else x
        for name, x in feeds.items()
    }
    try:
        session.run(fed)
        return session.run(fed)
    except SabirError:
        return None


def examples(share: int) -> int:
    """Run a share of the examples of all operators; return how many had kernels."""
    count = native = 0
    for operator in OPERATORS:
        for number, example in enumerate(examples_of(operator)):
            count += 1
            if count % share or operator.at(example.opset).removed:
                continue
            tell(f"{operator.name} {example.opset} {number}")
            model, feeds = model_of(operator, example)
            try:
                session = sabir.Session(model, engine="compiled", threads=2)
            except SabirError:
                continue
            run(session, feeds)
            native += is_native(session)
    return native


def chosen(share: int) -> Iterator[tuple[int, int, int]]:
    """Yield a share of all sizes, and more of those with a 1: they are other patterns of axes."""
    for m, k, n in itertools.product(SIZES, repeat=3):
        has_one = 1 in {m, k, n}
        if (m + k + n - share) % min(share, 15) if has_one else (m * 7 + k * 3 + n) % share:
            continue
        yield m, k, n


def sized(share: int) -> int:
    """Run the texts for many sizes; return how many runs there were."""
    count = 0
    for name, text in (TEXTS | FIXED).items():
        model = sabir.parse(f'<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]> {text}')
        session = sabir.Session(model, engine="compiled", threads=2)
        for m, k, n in chosen(share) if name in TEXTS else [(1, 1, 1)]:
            count += 1
            if count % 10 == 1 or name in FIXED:
                tell(f"{name} {m} {k} {n}")
            run(session, feeds_of(model, m, k, n))
        assert is_native(session), name
    return count


def broken(count: int) -> None:
    """Run a kernel that goes `count` elements past the end of its tensors; the guards kill the process."""
    session = sabir.Session(sabir.parse(BROKEN), engine="compiled", threads=1)
    feeds = {"x": guarded(np.ones(100, np.float32))}
    session.run(feeds)
    (program,) = session._engine._plans
    (layout,) = program._layouts.values()
    assert layout.blocks[0] == 100, "the first argument of a nest is the size of its loop"
    layout.blocks[0] += count
    session.run(feeds)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--before", action="store_true")
    parser.add_argument("--broken", type=int, default=0, metavar="COUNT")
    options = parser.parse_args()
    Guards.before = options.before
    warnings.simplefilter("ignore")
    install()
    if options.broken:
        broken(options.broken)
        return
    runs, native = sized(options.share), examples(options.share)
    tell(f"done: {runs} runs of many sizes, {native} examples with kernels")


if __name__ == "__main__":
    main()
