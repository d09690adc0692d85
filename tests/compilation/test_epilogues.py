"""The epilogue of a product may compute with wider elements than the product."""

import numpy as np

import sabir


def test_an_epilogue_in_double_after_a_product_of_floats():
    model = sabir.parse("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[M,K] a, float[K,N] b, double[N] c) => (double[M,N] y) {
            p = MatMul (a, b)
            d = Cast <to = 11> (p)
            y = Add (d, c)
        }
    """)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((7, 20), (20, 70)))
    c = rng.integers(-9, 9, 70).astype(np.float64)

    y = sabir.Session(model, engine="compiled").run({"a": a, "b": b, "c": c})["y"]

    assert (y == a.astype(np.float64) @ b.astype(np.float64) + c).all()
