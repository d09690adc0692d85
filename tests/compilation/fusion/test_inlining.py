"""Maps that readers compute themselves: scalars, and narrow tensors as floats."""

from functools import partial

from sabir import loops
from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.fusion import inlining

BYTES = loops.Stored("uint8", (4, 6), 1)
HALF = loops.Stored("float16", (4, 6), 2)
WIDE = loops.Stored("int32", (4, 6), 3)
SCALE = loops.Stored("float", (6,), 4)
ZERO = loops.Stored("uint8", (), 5)
is_inline, read_by = (partial(f, heuristics=HEURISTICS) for f in (inlining.is_inline, inlining.read_by))
SCALAR = loops.Stored("float", (), 6)


def test_casts_of_narrow_tensors():
    assert is_inline(loops.cast(BYTES, "float"))
    assert is_inline(loops.cast(HALF, "double"))
    assert not is_inline(loops.cast(WIDE, "float"))
    assert not is_inline(loops.cast(BYTES, "int32"))  # no floats
    assert not is_inline(BYTES)


def test_dequantized_integers():
    less = loops.apply("sub", loops.cast(BYTES, "float"), loops.cast(ZERO, "float"))
    scaled = loops.apply("mul", less, SCALE)
    assert is_inline(scaled)
    assert set(read_by(scaled)) == {BYTES, ZERO, SCALE}
    assert not is_inline(loops.apply("exp", less))
    varying = loops.apply("mul", less, loops.apply("exp", loops.Stored("float", (6,), 7)))
    assert not is_inline(varying)  # the scale is no constant


def test_scalars_of_few_steps():
    x = SCALAR
    for _ in range(16):
        x = loops.apply("neg", x)
    assert is_inline(x)
    assert not is_inline(loops.apply("neg", x))
    shared = SCALAR
    for _ in range(4):
        shared = loops.apply("add", shared, shared)  # each reader computes both operands: 15 steps
    assert is_inline(shared)
    assert not is_inline(loops.apply("add", shared, shared))


def test_a_scalar_of_a_fold_is_not_computed_again():
    assert not is_inline(loops.apply("neg", loops.reshape(loops.reduce("sum", SCALE, [0]), ())))


def test_what_is_not_inline_is_read_itself():
    x = loops.apply("exp", loops.cast(BYTES, "float"))
    assert list(read_by(x)) == [x]
