"""Elements that are stored several times side by side, and outputs that are other tensors in another shape."""

import numpy as np

import sabir
from sabir.elements import element
from support.lowered import kernels_only, same_bits

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
NEAREST = 'mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"'


def resized(kind, shape, factors, around=""):
    """A model that repeats elements; all sizes are known, as kernels have them then."""
    sizes, scales = ",".join(map(str, shape)), ", ".join(f"{n}.0" for n in factors)
    result = ",".join(str(n * f) for n, f in zip(shape, factors, strict=True))
    lines = around or f"y = Resize <{NEAREST}> (x, , s)"
    return sabir.parse(
        f"{HEAD}g ({kind}[{sizes}] x) => ({kind}[{result}] y) <float[{len(shape)}] s = {{{scales}}}> {{ {lines} }}"
    )


def specs_of(model):
    return [kernel.spec for kernel in sabir.Session(model, engine="compiled").explain().kernels]


def test_images_that_grow_by_whole_factors():
    random = np.random.default_rng(5)
    cases = {
        ("float", (1, 2, 3, 7)): [(1, 1, 2, 2), (1, 1, 1, 3), (1, 2, 8, 8)], ("int8", (2, 3, 5, 65)): [(1, 1, 3, 2)],
        ("double", (1, 1, 1, 16)): [(1, 1, 2, 2)], ("float16", (3, 40)): [(1, 5), (2, 2)], ("int64", (7,)): [(4,)],
    }  # fmt: skip
    for (kind, shape), each in cases.items():
        for factors in each:
            x = random.integers(-100, 100, shape).astype(element(kind).dtype)
            expected = x
            for axis, n in enumerate(factors):
                expected = np.repeat(expected, n, axis)
            model = resized(kind, shape, factors)
            same_bits(kernels_only(model, {"x": x})["y"], expected, (kind, shape, factors))
            assert any("repeats" in spec for spec in specs_of(model)), (kind, shape, factors)


def test_rows_longer_than_a_job():
    x = np.arange(5001, dtype=np.float32).reshape(1, 5001)
    model = resized("float", (1, 5001), (3, 2))
    same_bits(kernels_only(model, {"x": x})["y"], x.repeat(3, 0).repeat(2, 1), "long")


def test_what_is_computed_before_and_after():
    x = np.random.default_rng(6).normal(size=(1, 2, 4, 5)).astype(np.float32)
    lines = f"a = Neg (x)  b = Resize <{NEAREST}> (a, , s)  y = Add (b, b)"
    found = kernels_only(resized("float", x.shape, (1, 1, 2, 2), lines), {"x": x})["y"]
    same_bits(found, (-2 * x).repeat(2, 2).repeat(2, 3), "maps")


def test_flags_and_factors_past_the_limit():
    for kind, factor in (("bool", 2), ("float", 9)):
        x = (np.arange(12).reshape(1, 12) % 3).astype(element(kind).dtype)
        model = resized(kind, x.shape, (1, factor))
        assert not any("repeats" in spec for spec in specs_of(model)), kind
        same_bits(kernels_only(model, {"x": x})["y"], x.repeat(factor, 1), kind)


def test_a_number_for_each_row_is_stored_side_by_side():
    x = np.arange(20, dtype=np.float32).reshape(20, 1)
    text = "g (float[20,1] x) => (float[20,4] y) <int64[2] s = {20, 4}> { a = Sqrt (x)  y = Expand (a, s) }"
    same_bits(kernels_only(sabir.parse(HEAD + text), {"x": x})["y"], np.sqrt(x).repeat(4, 1), "rows")


def test_outputs_in_another_shape():
    """What is computed, what is another output too, an input, a transposed one; with sizes that are open."""
    x = np.random.default_rng(7).normal(size=(6, 4)).astype(np.float32)
    text = """g (float[n,4] x) => (float[k] a, float[2,m] b, float[n,4] c, float[p] d, float[q] e, float[r] f) {
        flat = Constant <value = int64[1] {-1}> ()  two = Constant <value = int64[2] {2, -1}> ()
        c = Neg (x)  a = Reshape (c, flat)  h = Add (x, x)  b = Reshape (h, two)  d = Reshape (x, flat)
        t = Transpose (x)  e = Reshape (t, flat)  z = Transpose (h)  f = Reshape (z, flat) }"""
    model = sabir.parse(HEAD + text)
    right = {
        "a": -x.ravel(), "b": (x + x).reshape(2, -1), "c": -x, "d": x.ravel(), "e": x.T.ravel(),
        "f": (x + x).T.ravel(),
    }  # fmt: skip
    session = sabir.Session(model, engine="compiled")
    kernels_only(model, {"x": x})
    for _ in range(3):
        found = session.run({"x": x})
        for name, expected in right.items():
            same_bits(found[name], expected, name)
            found[name][...] = 0
