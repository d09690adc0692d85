"""Second operands of products in panels: matrices that are read along their columns, and constants of lowerings."""

import math

import numpy as np

import sabir
from sabir.compilation import Compiled
from support.lowered import kernels_only

RANDOM = np.random.default_rng(5)


def test_columns_that_lie_side_by_side_are_transposed():
    """Sizes around those of a tile, alone and in a batch; sums of small integers are exact."""
    sizes = (2, 15, 16, 17, 33, 64, 70)
    for kind in ("float", "double"):
        text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g ({kind}[B,M,K] a, {kind}[B,N,K] b) => ({kind}[B,M,N] y) {{
          turned = Transpose <perm = [0, 2, 1]> (b)
          y = MatMul (a, turned)
        }}"""
        session = Compiled(sabir.parse(text))
        for n, k in ((n, k) for n in sizes for k in sizes):
            a, b = (
                RANDOM.integers(-9, 9, s).astype(kind.replace("float", "float32"))
                for s in ((2, 3, k), (2, n, k))
            )
            y = session.run({"a": a, "b": b})["y"]
            np.testing.assert_array_equal(y, a @ b.swapaxes(1, 2), err_msg=f"{kind} {n} {k}")
        assert any("tiles" in kernel.spec for kernel in session.explain().kernels)


def test_rows_are_packed_whole():
    """Matrices with few and many columns, whose last panel is partly filled, in a batch that decides its size."""
    for kind in ("float", "double"):
        text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g ({kind}[B,M,K] a, {kind}[B,K,N] b) => ({kind}[B,M,N] y) {{ y = MatMul (a, b) }}"""
        session = Compiled(sabir.parse(text), threads=2)
        for n, k in ((n, k) for n in (2, 15, 48, 49, 97, 144) for k in (2, 31, 32, 33, 100)):
            a, b = (
                RANDOM.integers(-9, 9, s).astype(kind.replace("float", "float32"))
                for s in ((2, 3, k), (2, k, n))
            )
            y = session.run({"a": a, "b": b})["y"]
            np.testing.assert_array_equal(y, a @ b, err_msg=f"{kind} {n} {k}")
        assert any("from rows" in kernel.spec for kernel in session.explain().kernels)


def test_filters_that_vary_are_transposed_in_runs_of_taps():
    """Numbers of channels and filters around the lanes of a vector."""
    for kind, channels, filters, taps in (
        ("float", 16, 64, (3, 3)), ("float", 21, 70, (3, 2)), ("double", 18, 20, (2, 2, 2)), ("double", 3, 17, (9,)),
    ):  # fmt: skip
        sizes, shape = ",".join("HWD"[: len(taps)]), ",".join(map(str, taps))
        model = sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
            g ({kind}[B,{channels},{sizes}] x, {kind}[{filters},{channels},{shape}] w) => (y) {{ y = Conv (x, w) }}""")
        dtype = kind.replace("float", "float32")
        feeds = {
            "x": RANDOM.integers(-4, 5, (2, channels, 10, 11, 4)[: 2 + len(taps)]).astype(dtype),
            "w": RANDOM.integers(-4, 5, (filters, channels, *taps)).astype(dtype),
        }
        session = Compiled(model)
        np.testing.assert_array_equal(session.run(feeds)["y"], sabir.evaluate(model, feeds)["y"])
        assert any(f"from runs of {math.prod(taps)}" in kernel.spec for kernel in session.explain().kernels)


def test_narrow_weights_are_transposed_too():
    for kind in ("float16", "int8"):
        weights = RANDOM.integers(-9, 9, (37, 21))
        stored = weights.astype(np.float16).view(np.uint16) if kind == "float16" else weights
        text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[M,21] a) => (float[M,37] y) <{kind}[37,21] w = {{{", ".join(map(str, stored.ravel()))}}}> {{
          turned = Transpose (w)
          wide = Cast <to = 1> (turned)
          y = MatMul (a, wide)
        }}"""
        a = RANDOM.integers(-9, 9, (5, 21)).astype(np.float32)
        y = kernels_only(sabir.parse(text), {"a": a})["y"]
        np.testing.assert_array_equal(y, a @ weights.T.astype(np.float32), err_msg=kind)


def test_the_tables_of_a_lowering_are_packed_once():
    """Support vectors are attributes: constants of the plan that are no value of the model."""
    vectors, weights = RANDOM.integers(-3, 3, (70, 4)), RANDOM.integers(-3, 3, 70)
    listed = [", ".join(f"{float(v)}" for v in x.ravel()) for x in (vectors, weights)]
    text = f"""<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
    g (float[N,4] x) => (float[N,1] y) {{
      y = ai.onnx.ml.SVMRegressor <kernel_type = "LINEAR", n_supports = 70, rho = [0.0],
          support_vectors = [{listed[0]}], coefficients = [{listed[1]}]> (x)
    }}"""
    session = Compiled(sabir.parse(text))
    x = RANDOM.integers(-9, 9, (3, 4)).astype(np.float32)
    np.testing.assert_array_equal(session.run({"x": x})["y"], (x @ vectors.T @ weights)[:, None])
    assert "pack" not in {kernel.kind for kernel in session.explain().kernels}
