"""float16 and bfloat16: computed as float, and rounded once for each call; constant weights stay narrow in memory."""

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.attention.kernel import Attention
from sabir.compilation.backends.cpu.products.packing import Packing
from sabir.compilation.backends.cpu.products.spec import Product
from sabir.compilation.backends.cpu.products.winograd_kernel import Winograd
from sabir.compilation.backends.cpu.windows.kernel import Sliding
from sabir.elements import element
from support.thresholds import texts_on

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
HEAD = '<ir_version: 11, opset_import: ["" : 24]> g'


def run(model, feeds, threads=2):
    """Run a model, of which no call may be left to the interpreter; return its output and its kernels."""
    compiled = Compiled(model, threads=threads)
    (y,) = compiled.run(feeds).values()
    assert compiled.explain().evaluated == ()
    plans = [p.plan for p in compiled._plans]
    return y, [e.choices[-1][2] for plan in plans for e in plan.entries]


def every(dtype):
    """All numbers of 16 bits: what is not finite too, and subnormal numbers."""
    return np.arange(1 << 16, dtype=np.uint16).view(dtype)


@pytest.mark.parametrize("kind", HALVES)
def test_each_call_rounds_once(kind):
    """The sum of a product in float would be another number, and in double the same one."""
    x = every(HALVES[kind])
    text = f"{HEAD} ({kind}[n] x, {kind}[n] y) => ({kind}[n] z) {{ p = Mul (x, y)  q = Add (p, x)  z = Div (q, y) }}"
    y = np.random.default_rng(0).permutation(x)
    found, kernels = run(sabir.parse(text), {"x": x, "y": y})
    with np.errstate(all="ignore"):
        p = (x.astype(np.float32) * y.astype(np.float32)).astype(x.dtype)
        q = (p.astype(np.float32) + x.astype(np.float32)).astype(x.dtype)
        expected = (q.astype(np.float32) / y.astype(np.float32)).astype(x.dtype)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
    assert len(kernels) == 1


@pytest.mark.parametrize("kind", HALVES)
def test_powers_by_known_exponents_are_products(kind):
    """As in the interpreter: rounded once, without a logarithm."""
    x = every(HALVES[kind])
    for exponent in (2, 3, 0.5):
        b = sabir.Builder(21)
        b.output(b.Pow(b.input("x", kind, ["n"]), np.array(exponent, x.dtype)), "y")
        found, (nest,) = run(b.model(), {"x": x})
        assert " pow " not in str(nest)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float32)
            root = np.where(np.isneginf(wide), np.inf, np.sqrt(wide) + 0)
            exact = {2: wide * wide, 3: wide * wide * wide, 0.5: root}[exponent].astype(x.dtype)
        np.testing.assert_array_equal(found.astype(np.float32), exact.astype(np.float32))


@pytest.mark.parametrize("kind", HALVES)
def test_casts_of_all_numbers(kind):
    x = every(HALVES[kind])
    some = np.random.default_rng(1).integers(0, 1 << 32, 50000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        same = x.astype(np.float32)
        wide = np.concatenate([
            some,
            same,
            np.nextafter(same, np.float32(np.inf)),
            same * np.float32(1.00048828125),
        ])
    number = element(kind).number
    text = f"{HEAD} (float[n] x, {kind}[m] y) => ({kind}[n] u, float[m] v, {kind}[m] w) {{"
    text += f" u = Cast <to = {number}> (x)  v = Cast <to = 1> (y)  t = Cast <to = 11> (y)  w = Cast <to = {number}> (t) }}"
    compiled = Compiled(sabir.parse(text))
    found = compiled.run({"x": wide, "y": x})
    assert compiled.explain().evaluated == ()
    with np.errstate(all="ignore"):
        expected = wide.astype(x.dtype), x.astype(np.float32), x
        for y, wanted in zip(
            found.values(), expected, strict=True
        ):  # a signaling NaN warns on some processors
            np.testing.assert_array_equal(y.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("kind", HALVES)
def test_moves_keep_all_bits(kind):
    x = every(HALVES[kind])[: 1 << 14].reshape(128, 128)
    text = f"""{HEAD} ({kind}[n,m] x) => (y) {{
        t = Transpose (x)  c = Concat <axis = 1> (t, x)  i = Constant <value_ints = [3, -1, 100]> ()
        g = Gather (c, i)  p = Constant <value_ints = [1, 0, 0, 2]> ()  y = Pad (g, p) }}"""
    found, _ = run(sabir.parse(text), {"x": x})
    expected = np.pad(np.concatenate([x.T, x], 1).view(np.uint16)[[3, -1, 100]], ((1, 0), (0, 2)))
    np.testing.assert_array_equal(found.view(np.uint16), expected)


@pytest.mark.parametrize("kind", HALVES)
def test_constant_weights_stay_narrow(kind):
    rng, dtype = np.random.default_rng(2), HALVES[kind]
    w = rng.standard_normal((67, 50)).astype(dtype)
    for rows, transposed in ((1, False), (3, True), (40, False)):
        b = sabir.Builder(24)
        x = rng.standard_normal((rows, 67)).astype(dtype)
        weights = np.ascontiguousarray(w.T) if transposed else w
        b.output(b.Gemm(b.input("x", kind, ["n", 67]), weights, transB=int(transposed)), "y")
        found, kernels = run(b.model(), {"x": x})
        (product,) = [k for k in kernels if isinstance(k, Product)]
        assert product.narrow == kind
        exact = x.astype(np.float64) @ w.astype(np.float64)
        step = float(ml_dtypes.finfo(dtype).eps)
        np.testing.assert_allclose(found.astype(np.float64), exact, rtol=step, atol=1e-5)


@pytest.mark.parametrize("kind", HALVES)
def test_many_rows_share_widened_weights(kind):
    """A row has the same bits where few rows widen what they load; the second matrix is divided into blocks."""
    rng, dtype = np.random.default_rng(12), HALVES[kind]
    for depth, columns, blocked in ((67, 50, False), (4096, 49, True)):
        x, w = (rng.integers(-2, 3, shape).astype(dtype) for shape in ((60, depth), (depth, columns)))
        b = sabir.Builder(24)
        b.output(b.MatMul(b.input("x", kind, ["n", depth]), w), "y")
        whole, kernels = run(b.model(), {"x": x})
        (product,) = [k for k in kernels if isinstance(k, Product)]
        assert (product.unpacks, product.blocked, product.narrow) == (True, blocked, kind)
        exact = (x.astype(np.int64) @ w.astype(np.int64)).astype(np.float32).astype(dtype)
        np.testing.assert_array_equal(whole.astype(np.float32), exact.astype(np.float32))
        x = rng.standard_normal(x.shape).astype(dtype)
        whole, _ = run(b.model(), {"x": x})
        for first, count in ((0, 1), (3, 4), (7, 9), (20, 17)):
            part, _ = run(b.model(), {"x": x[first : first + count]})
            assert part.tobytes() == whole[first : first + count].tobytes()


@pytest.mark.parametrize("kind", HALVES)
def test_filters_are_packed_once_as_floats(kind):
    """Of 3x3 windows transformed, and of depthwise windows; sums of small integers are exact in any order."""
    rng, dtype = np.random.default_rng(13), HALVES[kind]
    x = rng.integers(-1, 2, (2, 32, 13, 14)).astype(dtype)
    for group, form in ((1, Winograd), (32, Sliding)):
        w = rng.integers(-1, 2, (32, 32 // group, 3, 3)).astype(dtype)
        b = sabir.Builder(22)
        b.output(b.Conv(b.input("x", kind, list(x.shape)), w, group=group, pads=[1] * 4), "y")
        found, kernels = run(b.model(), {"x": x})
        padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        spell = "nchwij,mcij->nmhw" if group == 1 else "nchwij,cmij->nchw"
        exact = np.einsum(spell, windows, w.astype(np.float64), optimize=True).astype(dtype)
        np.testing.assert_array_equal(found.astype(np.float32), exact.astype(np.float32))
        assert any(isinstance(k, form) for k in kernels)
        assert not any(isinstance(k, Packing) for k in kernels)


def test_quantized_weights_stay_narrow():
    rng = np.random.default_rng(4)
    for dtype, zero in ((np.int8, 0), (np.uint8, 128)):
        limits = np.iinfo(dtype)
        w = rng.integers(limits.min, limits.max + 1, (67, 50)).astype(dtype)
        scales, x = rng.random(50).astype(np.float32), rng.standard_normal((3, 67)).astype(np.float32)
        b = sabir.Builder(21)
        weights = b.DequantizeLinear(w, scales, np.full(50, zero, dtype), axis=1)
        b.output(b.MatMul(b.input("x", "float", ["n", 67]), weights), "y")
        found, kernels = run(b.model(), {"x": x})
        assert [k.narrow for k in kernels if isinstance(k, Product)] == ["int8"]
        exact = x.astype(np.float64) @ ((w.astype(np.float64) - zero) * scales)
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-3)


def test_attention_in_halves_is_one_kernel():
    rng = np.random.default_rng(6)
    text = f"""{HEAD} (float16[n,4,21,8] x, float16[n,4,8,35] k, float16[n,4,35,16] v) => (y) {{
        e = Relu (x)  f = Exp (k)  g = Exp (v)  p = MatMul (e, f)  c = Constant <value_float = 0.125> ()
        h = Cast <to = 10> (c)  q = Mul (p, h)  s = Softmax (q)  y = MatMul (s, g) }}"""
    feeds = {
        name: (rng.standard_normal(shape) / 4).astype(np.float16)
        for name, shape in (("x", (2, 4, 21, 8)), ("k", (2, 4, 8, 35)), ("v", (2, 4, 35, 16)))
    }
    found, kernels = run(sabir.parse(text), feeds)
    assert any(isinstance(k, Attention) for k in kernels)
    x, k, v = (feeds[name].astype(np.float64) for name in "xkv")
    e = np.exp(np.maximum(x, 0) @ np.exp(k) / 8)
    exact = e / e.sum(-1, keepdims=True) @ np.exp(v)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=4e-3)


def test_blocks_of_quantized_weights_stay_narrow():
    """Blocks along the depth have scales, and zero points or none, in both orders of the matrix."""
    rng = np.random.default_rng(7)
    kinds = {"int8": (-128, 128), "uint8": (0, 256), "int4": (-8, 8), "uint4": (0, 16)}
    for number, (kind, (low, high)) in enumerate(kinds.items()):
        dtype = element(kind).dtype
        for is_turned, has_zeros, (rows, size) in ((False, True, (1, 16)), (True, number % 2 == 1, (9, 32))):
            w, scales = rng.integers(low, high, (64, 50)), rng.random((64 // size, 50)).astype(np.float32)
            zeros = rng.integers(low, high, scales.shape) if has_zeros else None
            operands = [w.astype(dtype), scales, None if zeros is None else zeros.astype(dtype)]
            b = sabir.Builder(21)
            if is_turned:
                operands = [None if o is None else np.ascontiguousarray(o.T) for o in operands]
                weights = b.Transpose(b.DequantizeLinear(*operands, axis=1, block_size=size))
            else:
                weights = b.DequantizeLinear(*operands, axis=0, block_size=size)
            b.output(b.MatMul(b.input("x", "float", ["n", 64]), weights), "y")
            x = rng.standard_normal((rows, 64)).astype(np.float32)
            found, kernels = run(b.model(), {"x": x})
            (product,) = [k for k in kernels if isinstance(k, Product)]
            assert product.scaled
            less = 0 if zeros is None else np.repeat(zeros, size, axis=0)
            exact = x.astype(np.float64) @ ((w - less) * np.repeat(scales, size, axis=0).astype(np.float64))
            np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-3 * high / 16)


@pytest.mark.parametrize(("columns", "blocks", "size"), [(1, 3, 5), (49, 4, 16), (97, 2, 33)])
def test_rows_have_their_bits_in_every_batch_by_blocks_of_weights(columns, blocks, size):
    """Many rows share what a block represents; few compute it as they load it."""
    rng, kind = np.random.default_rng(9), element("int4").dtype
    w, zeros = (rng.integers(-8, 8, (n, columns)) for n in (blocks * size, blocks))
    scales = rng.random((blocks, columns)).astype(np.float32)
    b = sabir.Builder(21)
    weights = b.DequantizeLinear(w.astype(kind), scales, zeros.astype(kind), axis=0, block_size=size)
    b.output(b.Relu(b.MatMul(b.input("x", "float", ["n", len(w)]), weights)), "y")
    model, x = b.model(), rng.standard_normal((150, len(w))).astype(np.float32)
    whole, kernels = run(model, {"x": x})
    assert [k.unpacks for k in kernels if isinstance(k, Product)] == [True]
    exact = x.astype(np.float64) @ ((w - np.repeat(zeros, size, axis=0)) * np.repeat(scales, size, axis=0))
    np.testing.assert_allclose(whole, np.maximum(exact, 0), rtol=1e-5, atol=1e-3)
    for first, count in ((0, 1), (3, 4), (7, 5), (20, 8), (40, 17), (0, 129)):
        part, _ = run(model, {"x": x[first : first + count]})
        assert part.tobytes() == whole[first : first + count].tobytes()


def test_blocks_of_weights_may_be_fed():
    rng = np.random.default_rng(8)
    b = sabir.Builder(21)
    weights = b.input("w", "int8", [64, 50]), b.input("s", "float", [4, 50]), b.input("z", "int8", [4, 50])
    y = b.MatMul(
        b.Relu(b.input("x", "float", ["n", 64])), b.DequantizeLinear(*weights, axis=0, block_size=16)
    )
    b.output(b.MatMul(y, b.input("v", "float", [50, 7])), "y")
    w, z = rng.integers(-128, 128, (64, 50)), rng.integers(-9, 9, (4, 50))
    s, x, v = (rng.random(shape).astype(np.float32) for shape in ((4, 50), (5, 64), (50, 7)))
    feeds = {"w": w.astype(np.int8), "s": s, "z": z.astype(np.int8), "x": x, "v": v}
    found, _ = run(b.model(), feeds)
    exact = x.astype(np.float64) @ ((w - np.repeat(z, 16, axis=0)) * np.repeat(s, 16, axis=0)) @ v
    np.testing.assert_allclose(found, exact, rtol=1e-4, atol=0.1)


def test_weights_with_any_zero_point_stay_narrow():
    """One zero point, or one for each column, in both orders of the matrix; sums of small integers are exact."""
    rng = np.random.default_rng(10)
    for kind, low, high in (("uint8", 0, 255), ("int8", -128, 127), ("uint4", 0, 15), ("int4", -8, 7)):
        dtype = element(kind).dtype
        w = rng.integers(low, high + 1, (40, 52))
        for zeros in (np.array(low), np.array(high), rng.integers(low, high + 1, 52)):
            scales = np.full(zeros.shape, 0.5, np.float32)
            for is_turned in (False, True):
                b = sabir.Builder(21)
                stored = np.ascontiguousarray(w.T if is_turned else w).astype(dtype)
                wide = b.DequantizeLinear(stored, scales, zeros.astype(dtype), axis=0 if is_turned else 1)
                weights = b.Transpose(wide) if is_turned else wide
                b.output(b.MatMul(b.input("x", "float", ["n", 40]), weights), "y")
                for rows in (1, 3, 30):
                    x = rng.integers(-9, 9, (rows, 40)).astype(np.float32)
                    found, kernels = run(b.model(), {"x": x})
                    np.testing.assert_array_equal(found, x.astype(np.float64) @ ((w - zeros) * 0.5))
                    assert [bool(k.narrow) for k in kernels if isinstance(k, Product)] == [True]


def test_decisions_on_widened_weights():
    each, once = "weights widened for each tile", "widened once for all rows of a job"

    def found(rows, depth=67, subject="weights", **thresholds):
        b = sabir.Builder(24)
        b.output(b.MatMul(b.input("x", "float16", [rows, depth]), np.ones((depth, 48), np.float16)), "y")
        shapes = {"x": [60, depth]} if rows == "n" else None
        return texts_on(b.model(), subject, shapes=shapes, target="x86-64-v4", **thresholds)

    assert found("n") == found(60) == [f"weights {once}"]
    assert found(60, subject="second operand") == ["second operand packed once, as float16: it is constant"]
    assert found(12) == [f"{each}, not {once}: 12 rows <= 2 tiles of 6"]
    assert found(60, few_rows=8) == [f"{each}, not {once}: tiles of 8 rows <= 8"]
    assert found(60, widened_bytes=100) == [f"{each}, not {once}: a panel of {67 * 48 * 4} bytes > 100"]


def test_decisions_on_attention():
    text = f"""{HEAD} (float[n,4,m,8] x, float[n,4,8,35] k, float[n,4,35,16] v) => (y) {{
        p = MatMul (x, k)  s = Softmax (p)  y = MatMul (s, v) }}"""
    shapes = {"x": [2, 4, 21, 8], "k": [2, 4, 8, 35], "v": [2, 4, 35, 16]}
    first, last = "MatMul with output 'p'", "Softmax with output 's'"
    assert texts_on(sabir.parse(text), "attention", shapes=shapes) == [f"one kernel with {first} and {last}"]
    keys = "keys packed before, not copied by each job: "
    assert texts_on(sabir.parse(text), "keys", shapes=shapes) == [keys + "the number of rows is symbolic"]
    many = sabir.parse(text.replace("m,8", "21,8"))
    shapes = {"x": [2, 4, 21, 8], "k": [2, 4, 8, 35], "v": [2, 4, 35, 16]}
    assert texts_on(many, "keys", shapes=shapes) == ["columns of keys copied by each job: 21 rows <= 24"]
    assert texts_on(many, "keys", shapes=shapes, attention_rows=20) == [keys + "21 rows > 20"]
    for change, reason in (
        (("y = MatMul (s, v)", "y = MatMul (s, v)  z = Exp (p)"), "another kernel reads the scores"),
        (("s = Softmax (p)", "t = Softmax (p) f = Neg (x) q = MatMul (f, k) s = Mul (q, t)"), "the rows between them need several products"),
    ):  # fmt: skip
        model = sabir.parse(
            text.replace(*change).replace("(y) {", "(y, z) {" if "z =" in change[1] else "(y) {")
        )
        assert texts_on(model, "attention", shapes=shapes) == [f"two products, not one kernel: {reason}"]
