"""Texts of plans for a processor with AVX2, so that they do not depend on the machine of the tests."""

import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from sabir.compilation import LISTINGS, Compiled

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
ROWS = """g (float[N,8] x, float[8] scale) => (float[N,8] y) {
  scaled = Mul (x, scale)
  y = Softmax (scaled)
}"""
PRODUCT = """g (float[N,4] x) => (float[N,2] y, float[K,N] z) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
  h = MatMul (x, w)
  y = Relu (h)
  found = Unique <axis = 1> (x)
  z = Transpose (found)
}"""


def listed(text, form, *shape):
    compiled = Compiled(sabir.parse(HEADER + text), threads=2)
    names = [p.name for p in compiled.inputs]
    feeds = {name: np.ones(sizes, np.float32) for name, sizes in zip(names, shape, strict=True)}
    return "\n".join(compiled.compile(feeds, target="x86-64-v3").listing(form)) + "\n"


def test_loops():
    assert (
        listed(ROWS, "loops", (3, 8), (8,))
        == """\
inputs
  x: float[N,8]
  scale: float[8]
Mul with output 'scaled'
  scaled: float[N,8] = mul(x, scale)
Softmax with output 'y'
  %1: float[N,1] = max(scaled, axes=[1])
  %2: float[N,8] = sub(scaled, %1)
  %3: float[N,8] = exp(%2)
  %4: float[N,1] = sum(%3, axes=[1])
  %5: float[N,1] = reciprocal(%4)
  y: float[N,8] = mul(%3, %5)
"""
    )
    assert (
        listed(PRODUCT, "loops", (3, 4))
        == """\
inputs
  x: float[N,4]
constants
  w: float[4,2]
MatMul with output 'h'
  h: float[N,2] = contract(x, w, rows=1, depth=1)
Relu with output 'y'
  y: float[N,2] = max(h, 0)
Unique with output 'found'
  evaluated: the shape of the result depends on the contents of the operands
Transpose with output 'z'
  z: float[s0.1,N] = permute(found, axes=[1,0])
"""
    )


def test_schedule():
    assert (
        listed(ROWS, "schedule", (3, 8), (8,))
        == """\
1 nest: Mul with output 'scaled', Softmax with output 'y'
  nest kr inner 1 lanes 8
    a0: float[n,1]
    a1: float[0,1]
    a2: float[n,1]
    %0 = load a0
    %1 = load a1
    %2 = mul %0, %1
    %3 = max over the reduced axes of %2
    %4 = sub %2, %3
    %5 = exp %4
    %6 = sum over the reduced axes of %5
    %7 = reciprocal %6
    %8 = mul %5, %7
    store %8 to a2
"""
    )
    product = listed(PRODUCT, "schedule", (3, 4))
    assert product.startswith("""\
once pack: MatMul with output 'h'
  pack float width any lanes 8 batch 0 from rows
""")
    assert (
        """\
1 product: MatMul with output 'h', Relu with output 'y'
  if N <= 1
  product float tile 1x"""
        in product
    )
    assert (
        """
- evaluated: Unique with output 'found'
  the shape of the result depends on the contents of the operands
"""
        in product
    )


def test_plan():
    assert (
        listed(ROWS, "plan", (3, 8), (8,))
        == """\
sizes: N = 3
part 1: arena 0 bytes, scratch 320 bytes a thread
1 nest: Mul with output 'scaled', Softmax with output 'y'
  flops 168
  input x: float[3,8] 96 bytes
  input scale: float[8] 32 bytes
  output y: float[3,8] 96 bytes
"""
    )
    product = listed(PRODUCT, "plan", (3, 4)).split("\n")
    assert product[0] == "sizes: N = 3"
    assert product[1] == "once pack: MatMul with output 'h'"
    assert "  constant w: float[4,2] 32 bytes" in product
    assert "  packed: 128 bytes" in product  # 4 rows of 8 columns
    assert "  flops 48" in product
    assert "part 2: laid out in a run, when an evaluated call has decided its sizes" in product
    assert "  output z: float[s0.1,3] 4*N*s0.1 bytes" in product


def test_buffers_of_the_arena_have_their_places():
    text = "g (float[4,N] x) => (float[4,N] y) { a = Softmax <axis = 0> (x) y = Softmax <axis = 1> (a) }"
    lines = listed(text, "plan", (4, 16)).split("\n")
    assert lines[1].startswith("part 1: arena 256 bytes")
    assert lines.count("  arena at 0: float[4,16] 256 bytes") == 2  # written by one kernel, read by the next


@pytest.mark.parametrize("form", ["llvm", "asm"])
def test_code_is_the_same_from_call_to_call(form):
    text = listed(ROWS, form, (3, 8), (8,))
    assert "nest kr inner 1 lanes 8" in text
    assert "kernel" in text.replace("kernel 1", "")
    assert "zmm" not in text
    assert text == listed(ROWS, form, (3, 8), (8,))


def test_every_listing_is_deterministic():
    for form in LISTINGS:
        assert listed(PRODUCT, form, (3, 4)) == listed(PRODUCT, form, (3, 4))


def test_an_unknown_listing():
    compiled = Compiled(sabir.parse(HEADER + ROWS))
    with pytest.raises(
        UnsupportedError, match="no listing 'ir'; the listings are loops, schedule, plan, llvm, asm"
    ):
        compiled.compile({"x": np.ones((3, 8), np.float32), "scale": np.ones(8, np.float32)}).listing("ir")
