"""Products of small matrices that no plan knows: the second operand is read where it lies."""

import itertools
import re

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from support.lowered import kernels_only, same_bits
from support.thresholds import compiled_by, texts_on

RANDOM = np.random.default_rng(11)
OF_NUMPY = {"float": np.float32, "double": np.float64}


def model_of(kind, m, k, n, line="y = MatMul (a, b)", left=None):
    a = left or f"{m},{k}"
    return sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
        g ({kind}[3,{a}] a, {kind}[3,{k},{n}] b) => ({kind}[3,{m},{n}] y) {{ {line} }}""")


def whole(kind, *shape):
    """Small integers, whose sums are exact in any order."""
    return RANDOM.integers(-9, 9, shape).astype(OF_NUMPY[kind])


def specs_of(model):
    return "\n".join(kernel.spec for kernel in Compiled(model).explain().kernels)


def test_sizes_around_those_of_tiles_and_blocks():
    for kind in OF_NUMPY:
        for m, k, n in (
            (1, 5, 7),
            (4, 128, 16),
            (5, 129, 15),
            (7, 200, 33),
            (8, 160, 48),
            (29, 65, 100),
            (2, 2, 64),
        ):
            a, b = whole(kind, 3, m, k), whole(kind, 3, k, n)
            model = model_of(kind, m, k, n)
            np.testing.assert_array_equal(
                kernels_only(model, {"a": a, "b": b})["y"], a @ b, f"{kind} {m} {k} {n}"
            )
            specs = specs_of(model)
            assert "direct" in specs
            assert "pack" not in specs


def test_few_rows_read_matrices_of_any_depth():
    for m, k, n in ((1, 700, 64), (4, 300, 33), (2, 64, 1500)):
        a, b = whole("float", 3, m, k), whole("float", 3, k, n)
        for depth in (k, "K") if n <= 64 else (k,):
            model = model_of("float", m, depth, n)
            for count in (k, k - 1, 2) if depth == "K" else (k,):
                feeds = {"a": a[:, :, :count].copy(), "b": b[:, :count].copy()}
                np.testing.assert_array_equal(kernels_only(model, feeds)["y"], feeds["a"] @ feeds["b"])
        assert "pack" not in specs_of(model_of("float", m, k, n))


def test_a_transposed_first_operand_is_read_where_it_lies():
    for m, k in ((48, 130), (5, 64)):
        model = model_of(
            "float", m, k, 36, "t = Transpose <perm = [0, 2, 1]> (a) y = MatMul (t, b)", f"{k},{m}"
        )
        a, b = whole("float", 3, k, m), whole("float", 3, k, 36)
        np.testing.assert_array_equal(kernels_only(model, {"a": a, "b": b})["y"], a.swapaxes(1, 2) @ b)
        assert len(Compiled(model).explain().kernels) == 1


def test_sums_of_nothing_are_zero():
    a, b = whole("float", 3, 4, 0), whole("float", 3, 0, 5)
    model = model_of("float", 4, 0, 5, "p = MatMul (a, b) y = Cos (p)")
    np.testing.assert_array_equal(kernels_only(model, {"a": a, "b": b})["y"], np.ones((3, 4, 5)))


def test_transposed_sums_over_no_elements_are_0():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g (float[2,K] x, float[100,K] w) => (float[2,100] y)
        <int64[1] two = {2}, int64[1] end = {99}, int64[1] axis = {1}> {
          a = Slice (x, two, end, axis)  b = Slice (w, two, end, axis)  y = Gemm <transB = 1> (a, b) }""")
    compiled = Compiled(model, threads=2)
    for k in (12, 2):
        x, w = whole("float", 2, k), whole("float", 100, k)
        np.testing.assert_array_equal(compiled.run({"x": x, "w": w})["y"], x[:, 2:] @ w[:, 2:].T)


def test_an_epilogue_follows_the_last_block():
    model = model_of("float", 6, 200, 20, "p = MatMul (a, b) q = Relu (p) y = Add (q, q)")
    a, b = whole("float", 3, 6, 200), whole("float", 3, 200, 20)
    np.testing.assert_array_equal(kernels_only(model, {"a": a, "b": b})["y"], 2 * np.maximum(a @ b, 0))


def test_rows_of_a_view_lie_apart():
    """`b` is a part of each row of a larger tensor."""
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[3,6,40] a, float[3,40,90] b) => (float[3,6,33] y) {
          i = Constant <value_ints = [8]> ()  e = Constant <value_ints = [41]> ()  x = Constant <value_ints = [2]> ()
          part = Slice (b, i, e, x)  y = MatMul (a, part) }""")
    a, b = whole("float", 3, 6, 40), whole("float", 3, 40, 90)
    np.testing.assert_array_equal(kernels_only(model, {"a": a, "b": b})["y"], a @ b[:, :, 8:41])
    assert "direct" in specs_of(model)


def test_constants_and_large_matrices_are_packed():
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[4,3] a) => (float[4,2] y)
        <float[3,2] w = {1, 2, 3, 4, 5, 6}> { y = MatMul (a, w) }"""
    assert "direct" not in specs_of(sabir.parse(text))
    assert "direct" not in specs_of(model_of("float", 6, 200, 200))


@pytest.mark.parametrize("kind", OF_NUMPY)
def test_the_bits_are_those_of_panels_and_of_any_number_of_threads(kind):
    model = model_of(kind, 19, 300, 27)
    feeds = {
        x: RANDOM.standard_normal(s).astype(OF_NUMPY[kind])
        for x, s in (("a", (3, 19, 300)), ("b", (3, 300, 27)))
    }
    assert "direct" in specs_of(model)
    found = [Compiled(model, threads=threads).run(feeds)["y"] for threads in (1, 2)]
    packed = compiled_by(model, direct_rows=0)
    same_bits(packed.run(feeds)["y"], found[0], "panels")
    same_bits(found[1], found[0], "two threads")
    assert any(kernel.kind == "pack" for kernel in packed.explain().kernels)


def test_few_rows_stream_matrices_of_any_size():
    """Strips of several tiles, rests of rows and of columns, items of a batch that share a matrix."""
    cases = ((1, 70, 9000), (4, 129, 1100), (3, 8, 5000), (2, 300, "N"))
    for (m, k, n), turned in itertools.product(cases, (False, True)):
        model = sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
            g (float[3,{m},{k}] a, float[{f"{n},{k}" if turned else f"{k},{n}"}] w, float[{n}] c) => (float[3,{m},{n}] y) {{
              b = Neg (w)  u = Unsqueeze (b, axis)  d = Concat <axis = 0> (u, u, u)  e = {"Transpose <perm = [0, 2, 1]>" if turned else "Identity"} (d)  p = MatMul (a, e)  y = Add (p, c) }}"""
            .replace("b = Neg", "axis = Constant <value_ints = [0]> () b = Neg"))  # fmt: skip
        count = 700 if n == "N" else n
        shapes = {"a": (3, m, k), "w": (count, k) if turned else (k, count), "c": (count,)}
        feeds = {name: RANDOM.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        found = [Compiled(model, threads=threads).run(feeds)["y"] for threads in (1, 2)]
        kernels = Compiled(model).explain({name: list(x.shape) for name, x in feeds.items()}).kernels
        assert ("transposed" if turned else "streamed") in "".join(kernel.spec for kernel in kernels)
        same_bits(found[1], found[0], "two threads")
        packed = compiled_by(model, few_rows=0, direct_rows=0)
        same_bits(packed.run(feeds)["y"], found[0], f"panels {m} {k} {n}")
        assert any(kernel.kind == "pack" for kernel in packed.explain().kernels)


def test_sums_over_no_elements_are_0():
    """A plan for any number of them serves a run that cuts all away."""
    for rows, columns in ((1, 100), (4, 100), (2, 3000)):
        model = sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
            g (float[{rows},K] x, float[K,{columns}] w) => (float[{rows},{columns}] y)
                <int64[1] two = {{2}}, int64[1] end = {{99}}, int64[1] row = {{0}}, int64[1] column = {{1}}> {{
              a = Slice (x, two, end, column)  b = Slice (w, two, end, row)  y = MatMul (a, b) }}""")
        compiled = Compiled(model, threads=2)
        for k in (12, 2, 3, 2):
            x, w = whole("float", rows, k), whole("float", k, columns)
            found = compiled.run({"x": x, "w": w})["y"]
            np.testing.assert_array_equal(found, x[:, 2:] @ w[2:])
        kernels = compiled.explain({"x": [rows, 12], "w": [12, columns]}).kernels
        assert [kernel.kind for kernel in kernels] == ["product"]


def attention_in_float64(q, k, v):
    scores = q.astype(np.float64) @ k.astype(np.float64)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)


def test_attention_with_few_rows_copies_the_keys_itself():
    """Keys lie as rows, or as columns; sizes are around those of vectors, panels and blocks of values."""
    for rows, keys, depth, columns in ((1, 65, 16, 64), (3, 48, 20, 40), (24, 129, 64, 33), (9, 7, 5, 130)):
        for order in ("rows", "columns"):
            shape, line = f"2,{depth},{keys}", "c = Identity (k)"
            if order == "rows":
                shape, line = f"2,{keys},{depth}", "c = Transpose <perm = [0, 2, 1]> (k)"
            model = sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
                g (float[2,{rows},{depth}] q, float[{shape}] k, float[2,{keys},{columns}] v)
                    => (float[2,{rows},{columns}] y) {{
                    {line} s = MatMul (q, c) p = Softmax (s) y = MatMul (p, v) }}""")
            q, c, v = (
                RANDOM.standard_normal(s, np.float32)
                for s in ((2, rows, depth), (2, depth, keys), (2, keys, columns))
            )
            q *= 0.1  # for scores without cancellation
            k = np.ascontiguousarray(c.swapaxes(1, 2)) if order == "rows" else c
            found = kernels_only(model, {"q": q, "k": k, "v": v})["y"]
            np.testing.assert_allclose(found, attention_in_float64(q, c, v), rtol=2e-5, atol=2e-6)
            assert f"keys in {order}" in specs_of(model)


def test_decisions_on_second_operands():
    packed = "second operand packed in each run, not read in place: "
    constant = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g (float[6,3] a) => (float[6,2] y)
        <float[3,2] w = {1, 2, 3, 4, 5, 6}> { y = MatMul (a, w) }""")
    integers = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (uint8[60,20] a, int8[20,20] b) => (int32[60,20] y) { y = MatMulInteger (a, b) }""")
    for model, expected in (
        (constant, "second operand packed once: it is constant"),
        (model_of("float", 6, 200, 200), packed + "160000 bytes > 65536"),
        (model_of("float", 600, 20, 20), packed + "600 rows > 512"),
        (model_of("float", "m", 20, 20), packed + "the number of rows is symbolic"),
        (model_of("float", 60, 20, "n"), packed + "its size is symbolic"),
        (integers, packed + "integers are added up in groups, which panels have side by side"),
        (model_of("float16", 60, 20, 20), packed + "its elements are converted"),
        (model_of("float", 60, 20, 60, "t = Transpose <perm = [0, 2, 1]> (a) y = MatMul (a, t)"),
         packed + "its columns are not side by side in memory"),
        (model_of("float", 60, 20, 20), "second operand read in place in blocks, not streamed: 60 rows > 4"),
        (model_of("float", 3, 20, 20), "second operand read in place and streamed: 3 rows <= 4"),
    ):  # fmt: skip
        open_sizes = any(re.search(r"\b[mn]\b", str(x.type)) for x in model.graph.inputs)
        shapes = {"a": [3, 60, 20], "b": [3, 20, 20]} if open_sizes else None
        assert texts_on(model, "second operand", shapes=shapes) == [expected]
    model = model_of("float", 60, 20, 20)
    assert texts_on(model, "second operand", direct_rows=59) == [packed + "60 rows > 59"]
    assert texts_on(model, "second operand", direct_bytes=100) == [packed + "1600 bytes > 100"]
    assert texts_on(model, "second operand", few_rows=60) == [
        "second operand read in place and streamed: 60 rows <= 60"
    ]
    assert texts_on(model_of("float", 3, 20, 20), "threads")[0] == (
        "one share for each thread, not smaller shares: memory is read in pieces as long as shares are wide"
    )


def test_decisions_on_first_operands():
    copied = "first operand copied row by row, not read in place: "
    turned = "t = Transpose <perm = [0, 2, 1]> (a) y = MatMul (t, b)"
    near = model_of("float", 24, 700, 200, turned, left="700,24")
    assert texts_on(near, "first operand") == []
    assert texts_on(near, "first operand", near_stride=8) == [
        copied + "its columns are 24 elements apart > 8"
    ]
    far = model_of("float", 40, 700, 200, turned, left="700,40")
    assert texts_on(far, "first operand") == [copied + "its columns are 40 elements apart > 32"]


def test_decisions_on_tiles():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[60,3000] a, float[3000,72] b, float[72,16] c) => (float[60,72] y, float[60,16] z) {
          y = MatMul (a, b) z = MatMul (y, c) }""")
    usual, other = "tiles of 4 rows by 1 panels of 3 vectors", "tiles of 6 rows by 1 panels of 2 vectors"
    assert texts_on(model, "tiles") == [
        usual,
        f"{other}: 16 columns would leave more than 10% of panels of 3 vectors unused",
    ]
    assert texts_on(model, "tiles", unused_matrix_columns=0.5) == [usual, usual]
    assert texts_on(model, "k", large_panel=1 << 17) == [
        "3 blocks of k, not one: a panel of 288000 bytes > 131072"
    ]
    assert texts_on(model, "k") == []
