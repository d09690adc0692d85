"""Bits of numbers that kernels read as another type."""

import numpy as np

import sabir
from sabir.elements import element
from support.lowered import kernels_only

HEAD = '<ir_version: 13, opset_import: ["" : 26]>\n'
SAME_WIDTH = {
    8: ["int8", "uint8"],
    16: ["int16", "uint16", "float16", "bfloat16"],
    32: ["int32", "uint32", "float"],
    64: ["int64", "uint64", "double"],
}


def test_every_pattern_stays():
    """Random bits, so NaN of every kind; and back by the same operator."""
    random = np.random.default_rng(8)
    for width, kinds in SAME_WIDTH.items():
        bits = random.integers(0, 256, 37 * width // 8).astype(np.uint8)
        for source in kinds:
            ports = ", ".join(f"{kind}[n] y{i}" for i, kind in enumerate(kinds))
            calls = " ".join(
                f"y{i} = BitCast <to = {element(kind).number}> (x)" for i, kind in enumerate(kinds)
            )
            x = bits.view(element(source).dtype)
            found = kernels_only(sabir.parse(f"{HEAD}g ({source}[n] x) => ({ports}) {{ {calls} }}"), {"x": x})
            for i, kind in enumerate(kinds):
                assert found[f"y{i}"].dtype == element(kind).dtype, (source, kind)
                assert found[f"y{i}"].tobytes() == bits.tobytes(), (source, kind)


def test_among_other_steps():
    text = """g (float[n] x, bool[n] b) => (float[n] y, int8[n] c) {
        i = BitCast <to = 6> (x)  one = Constant <value = int32 {1}> ()  j = Add (i, one)
        y = BitCast <to = 1> (j)  n = Not (b)  c = BitCast <to = 3> (n) }"""
    x, b = np.float32([1, 0, 3.5, 1e30, -2] * 9), np.array([True, False, False, True, True] * 9)
    found = kernels_only(sabir.parse(HEAD + text), {"x": x, "b": b})
    assert found["y"].tobytes() == (x.view(np.int32) + 1).tobytes()
    assert found["c"].tolist() == [0, 1, 1, 0, 0] * 9
