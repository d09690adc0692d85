"""Floats of 8 bits and fewer, and integers of 2 bits, in kernels: conversions, quantization, narrow weights."""

import ml_dtypes
import numpy as np

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.products.spec import Product
from sabir.elements import element

IN_8_BITS = ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"]
FLOATS = [*IN_8_BITS, "float6e2m3", "float6e3m2", "float4e2m1"]
OPTIONS = [
    *({"to": element(kind).number, "saturate": s} for kind in FLOATS for s in (0, 1)),
    *({"to": 24, "saturate": s, "round_mode": mode} for mode in ("up", "down", "nearest") for s in (0, 1)),
]


def codes_of(kind):
    return np.arange(1 << element(kind).bits).astype(np.uint8).view(element(kind).dtype)


def check(b, feeds):
    """Assert that kernels alone compute all outputs, each bit as the interpreter."""
    model = b.model()
    compiled = Compiled(model)
    with np.errstate(all="ignore"):
        exact = sabir.Session(model, engine="reference").run(feeds)
        found = compiled.run(feeds)
    assert compiled.explain().evaluated == ()
    for name, y in found.items():
        assert y.dtype == exact[name].dtype, name
        same = y.view(np.uint8) == exact[name].view(np.uint8)
        if element(y.dtype).bits > 8:
            same |= np.isnan(y.astype(np.float64)).repeat(y.itemsize, axis=-1)
        assert same.all(), (name, y, exact[name])


def test_options_of_conversions():
    """Saturation, and the rounding of exponents: the tests of casts have the numbers within the range."""
    powers = 2.0 ** np.arange(-135, 135)
    some = np.concatenate([powers * n for n in (1, 1.25, 1.5, 1.75)] + [[0, np.inf, np.nan, 1e300, 463, 465]])
    x = np.concatenate([some, -some])
    with np.errstate(over="ignore"):
        feeds = {kind: x.astype(element(kind).dtype) for kind in ("float", "double", "float16")}
    b = sabir.Builder(28)
    for kind in feeds:
        port = b.input(kind, kind, ["n"])
        for number, options in enumerate(OPTIONS):
            b.output(b.Cast(port, **options), f"{kind}_{number}")
    check(b, feeds)


def test_each_code_is_converted_tested_and_moved():
    b, feeds = sabir.Builder(28), {}
    for kind in [*FLOATS, "float8e8m0", "int2", "uint2"]:
        feeds[kind] = codes_of(kind)
        port = b.input(kind, kind, [f"n{kind}"])
        for to in {1, 7, 9, 10, 11, 16, 17, 22, 25, 28} - {element(kind).number}:
            b.output(b.Cast(port, to=to), f"{kind}_{to}")
        if kind in IN_8_BITS:
            b.output(b.IsNaN(port), f"{kind}_nan")
            b.output(b.IsInf(port, detect_negative=0), f"{kind}_inf")
        if not kind.startswith("float6"):
            b.output(b.Pad(port, np.array([2, 1]), mode="edge"), f"{kind}_padded")
            b.output(b.Pad(port, np.array([2, 1]), feeds[kind][1]), f"{kind}_filled")
            bits = {8: 2, 4: 22, 2: 25}[element(kind).bits]
            b.output(b.BitCast(port, to=bits), f"{kind}_bits")
    check(b, feeds)


def test_quantization():
    """Zero points are added before floats are rounded; quotients are rounded to the type of the scale."""
    random = np.random.default_rng(3)
    x = np.concatenate([random.normal(0, 40, 300), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e9]]).astype(
        np.float32
    )
    b, feeds = sabir.Builder(28), {"x": x}
    port = b.input("x", "float", ["n"])
    for kind in [*FLOATS, "int2", "uint2"]:
        dtype = element(kind).dtype
        for number, scale in enumerate((
            np.float32(0.7),
            np.float16(3),
            np.array(2, ml_dtypes.float8_e8m0fnu),
        )):
            for zero in (np.array(1, dtype), np.array(0, dtype), None):
                options = {"output_dtype": element(kind).number} if zero is None else {}
                operands = scale, zero
                y = b.QuantizeLinear(port, *operands, saturate=number % 2, **options)
                name = f"{kind}_{number}_{zero}"
                b.output(y, name)
                b.output(b.DequantizeLinear(y, *operands, output_dtype=1), f"{name}_back")
    check(b, feeds)


def test_weights_stay_narrow():
    """One product reads small weights, by one scale, one for each column, or one for each block."""
    random = np.random.default_rng(5)
    columns, blocks = (random.random(s).astype(np.float32) for s in ((50,), (3, 50)))
    powers = (2.0 ** random.integers(-3, 3, (3, 50))).astype(ml_dtypes.float8_e8m0fnu)
    in_blocks = {"axis": 0, "block_size": 32}
    for kind in [*FLOATS, "int2"]:
        numbers = random.integers(-2, 2, (96, 50)) if kind == "int2" else random.normal(0, 2, (96, 50))
        w = numbers.astype(np.float32).astype(element(kind).dtype)
        _check_narrow(w, np.float32(0.3), np.array(0, w.dtype))
        _check_narrow(w, columns, None, axis=1)
        _check_narrow(w, blocks, None, **in_blocks)
        _check_narrow(w, powers, None, **in_blocks)


def _check_narrow(w, scale, zero, **options):
    b = sabir.Builder(28)
    weights = b.DequantizeLinear(w, scale, zero, output_dtype=1, **options)
    b.output(b.MatMul(b.input("x", "float", ["n", len(w)]), weights), "y")
    compiled = Compiled(b.model())
    x = np.random.default_rng(6).standard_normal((70, len(w))).astype(np.float32)
    results = []
    for rows in (x, x[:1]):
        results.append(compiled.run({"x": rows})["y"])
        assert compiled.explain().evaluated == ()  # and a plan from the disk is made again
    many, one = results
    wide = scale.astype(np.float64).repeat(32, 0) if np.ndim(scale) > 1 else scale
    np.testing.assert_allclose(
        many, x.astype(np.float64) @ (w.astype(np.float64) * wide), rtol=1e-5, atol=1e-4
    )
    assert one.tobytes() == many[:1].tobytes(), w.dtype
    plans = [p.plan.entries for p in compiled._plans]
    assert [len(entries) for entries in plans] == [1, 1], w.dtype
    products = [kernel for (entry,) in plans for *_, kernel, _ in entry.choices]
    assert all(isinstance(k, Product) for k in products)
    kind = "int8" if w.dtype == ml_dtypes.int2 and "block_size" not in options else element(w.dtype).name
    assert {k.narrow for k in products} == {kind}


def test_the_last_block_may_be_shorter():
    random = np.random.default_rng(9)
    x = random.normal(0, 20, (3, 11, 2)).astype(np.float32)
    scales = random.uniform(0.5, 2, (3, 3, 2)).astype(np.float32)
    b = sabir.Builder(28)
    port = b.input("x", "float", ["n", 11, 2])
    for kind in ("float8e4m3fn", "int4", "uint8", "int16"):
        zeros = random.integers(0, 3, scales.shape).astype(element(kind).dtype)
        y = b.QuantizeLinear(port, scales, zeros, axis=1, block_size=4)
        b.output(y, kind)
        b.output(b.DequantizeLinear(y, scales, zeros, axis=1, block_size=4), f"{kind}_back")
    check(b, {"x": x})


def test_quantized_products_of_floats_of_8_bits():
    """The sums are exact, so each result is; NaN stays NaN, or becomes the least integer."""
    random = np.random.default_rng(9)
    for left, right, to in (
        ("float8e4m3fn", "float8e4m3fn", "float8e4m3fn"), ("float8e5m2", "int8", "float8e5m2fnuz"),
        ("uint8", "float8e4m3fnuz", "int8"),
    ):  # fmt: skip
        kinds = [element(kind).dtype for kind in (left, right, to)]
        b = sabir.Builder(21)
        a = random.integers(0, 5, (6, 40)).astype(np.float32)
        a[1, 3] = np.nan if left != "uint8" else 0
        feeds = {"a": a.astype(kinds[0])}
        w = random.integers(-4, 5, (40, 7)).astype(kinds[1])
        given = (np.float32(0.5), np.array(1, kinds[0]), w, np.array([0.5, 1, 2, 1, 1, 4, 1], np.float32))
        zeros = np.arange(7).astype(kinds[1]), np.float32(8), np.array(3, kinds[2])
        b.output(b.QLinearMatMul(b.input("a", left, ("n", "k")), *given, *zeros), "y")
        check(b, feeds)
