"""Arithmetic, comparisons, bits and roundings equal numpy's on every edge."""

import itertools

import numpy as np
import pytest

from sabir.compilation.backends.cpu.emit.functions import FUNCTIONS
from sabir.opsets.families.numbers.arithmetic import divide
from support.vector_kernels import UNARY, kernels

SHARED = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": divide,
    "mod": np.mod,
    "fmod": np.fmod,
    "min": np.minimum,
    "max": np.maximum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
BITS = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shl": np.left_shift,
}
OF_INTEGERS = SHARED | BITS | {"shr": np.right_shift}
UNSIGNED = {"div", "mod", "fmod", "min", "max", "lt", "le", "gt", "ge", "shr"}  # which need another name
ONE_INTEGER = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "bitwise_not": np.invert}
ROUNDINGS = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}
ONE_FLOAT = {"neg": np.negative, "abs": np.abs, "sign": np.sign, "isnan": np.isnan, "isinf": np.isinf}
ONE_FLOAT |= {"isinf_pos": np.isposinf, "isinf_neg": np.isneginf} | ROUNDINGS


def expected(function, *operands):
    with np.errstate(all="ignore"):
        return function(*operands)


def check(functions, scalar, operands, names=None):
    """Compare kernels with numpy, bit for bit but for NaN; `names` are those of the operations."""
    for where, kernel in kernels(list(names or functions), [scalar] * len(operands)):
        for (name, function), result in zip(functions.items(), kernel(*operands), strict=True):
            exact = expected(function, *operands)
            y = result.view(exact.dtype)
            same = y == exact
            if exact.dtype.kind == "f":
                if name not in {"min", "max"}:
                    same &= np.signbit(y) == np.signbit(exact)
                same |= np.isnan(y) & np.isnan(exact)
            worst = same.argmin()
            assert same.all(), (name, where, [o[worst] for o in operands], y[worst], exact[worst])


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["i", "u"])
def test_integers(sign, bits):
    dtype = np.dtype(f"{sign}{bits // 8}")
    info, random = np.iinfo(dtype), np.random.default_rng(bits)
    edges = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 3, 5, 7, bits - 1, bits, bits + 1, 100]
    edges += [-1 % (1 << bits) if sign == "u" else -1, info.max // 2, info.max // 3]
    edges = np.array(edges).astype(dtype) if bits < 64 else np.array(edges, dtype)
    some = random.integers(info.min, info.max, 3000, dtype, endpoint=True)
    a = np.concatenate([np.repeat(edges, edges.size), some, some])
    b = np.concatenate([np.tile(edges, edges.size), some[::-1], some >> dtype.type(bits // 2)])
    names = [f"{name}_u" if sign == "u" and name in UNSIGNED else name for name in OF_INTEGERS]
    check(OF_INTEGERS, f"i{bits}", (a, b), names)
    if sign == "i":
        check(ONE_INTEGER, f"i{bits}", (a,))
    else:
        check({"sign_u": np.sign}, f"i{bits}", (a,))
    check({"fma": lambda x, y, z: x * y + z}, f"i{bits}", (a, b, a[::-1].copy()))


@pytest.mark.parametrize("scalar", ["float", "double"])
def test_floats(scalar):
    dtype = np.dtype(np.float32 if scalar == "float" else np.float64)
    info, random = np.finfo(dtype), np.random.default_rng(3)
    ends = [info.tiny, info.smallest_subnormal, info.max, np.inf, 1 - info.epsneg, 1 + info.eps]
    edges = [0.0, *ends, 0.5, 1, 1.5, 2, 2.5, 3, 7.5, 2**22 + 0.5, 2.0**23 + 1, 2.0**52 + 1, 1e30]
    edges = np.array([np.nan, *edges, *(-v for v in edges)], dtype)
    integer = np.dtype(f"u{dtype.itemsize}")
    anything = random.integers(0, np.iinfo(integer).max, 4000, integer, endpoint=True).view(dtype)
    near = random.uniform(-100, 100, 4000).astype(dtype)
    a = np.concatenate([np.repeat(edges, edges.size), anything, near])
    b = np.concatenate([np.tile(edges, edges.size), anything[::-1], near[::-1] / 7])
    check(SHARED, scalar, (a, b))
    check(ONE_FLOAT, scalar, (a,))
    check({"order": order}, scalar, (a,))


def order(x):
    """The magnitude above or below the middle of unsigned integers; -0 is 0, NaN the largest."""
    integer = np.dtype(f"u{x.dtype.itemsize}")
    middle = integer.type(1 << 8 * integer.itemsize - 1)
    magnitude = np.abs(x).view(integer)
    found = np.where(x < 0, middle - integer.type(1) - magnitude, middle + magnitude)
    return np.where(np.isnan(x), np.iinfo(integer).max, found)


def test_a_fused_product_is_rounded_once():
    a = np.float32(1 + 2**-12) * np.ones(9, np.float32)
    exact = a.astype(np.float64) ** 2 - 1  # has few digits
    check({"fma": lambda *_: exact.astype(np.float32)}, "float", (a, a, -np.ones(9, np.float32)))
    wide = (1 + 2.0**-27) * np.ones(9)
    check({"fma": lambda *_: np.full(9, 2.0**-26 + 2.0**-54)}, "double", (wide, wide, -np.ones(9)))


def test_truth_values():
    a, b = (np.array(column) for column in zip(*itertools.product([False, True], repeat=2), strict=True))
    pairs = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
    pairs |= {name: SHARED[name] for name in ("eq", "ne", "lt", "le", "gt", "ge")}
    check(pairs, "i1", (a, b))
    check({"not": np.logical_not}, "i1", (a,))


def test_choices():
    condition = np.array([True, False, True])
    for scalar, dtype in (("float", np.float32), ("i8", np.int8), ("double", np.float64)):
        a, b = np.array([1, 2, 3], dtype), np.array([4, 5, 6], dtype)
        for _, kernel in kernels(["where"], ["i1", scalar, scalar]):
            assert kernel(condition, a, b)[0].tolist() == [1, 5, 3]


def test_nearest_integers():
    """The result is int32, and ties go to even."""
    random = np.random.default_rng(4)
    ties = np.arange(-3000, 3000) / 2
    x = np.concatenate([ties, np.nextafter(ties, 9e9), random.uniform(-(2.0**22), 2.0**22, 5000)]).astype(
        np.float32
    )
    x = x[np.abs(x) < 2**22]
    for where, kernel in kernels(["nearest"], ["float"]):
        (result,) = kernel(x)
        np.testing.assert_array_equal(result.view(np.int32), np.rint(x).astype(np.int32), where)


def test_random_words():
    """Known answers of Threefry-2x32 with 13 rounds: words of (0, 0), of all ones, and of digits of pi."""
    counters = np.array([[0, 0], [0xFFFFFFFF] * 2, [0x243F6A88, 0x85A308D3]], np.uint32)
    keys = np.array([[0, 0], [0xFFFFFFFF] * 2, [0x13198A2E, 0x03707344]], np.uint32)
    exact = np.array(
        [[0x9D1C5EC6, 0x8BD50731], [0xFD36D048, 0x2D17272C], [0xBA3E4725, 0xF27D669E]], np.uint32
    )
    operands = [np.resize(x, 40).view(np.int32) for x in (*(counters + keys).T, *keys.T)]
    for where, kernel in kernels(["word", "second_word"], ["i32"] * 4):
        for result, words in zip(kernel(*operands), exact.T, strict=True):
            np.testing.assert_array_equal(result.view(np.uint32), np.resize(words, 40), where)


def test_every_operation_has_a_test():
    unsigned = {f"{name}_u" for name in UNSIGNED | {"sign"}}
    here = {
        "nearest",
        "word",
        "second_word",
        *OF_INTEGERS,
        *ONE_INTEGER,
        *ONE_FLOAT,
        *unsigned,
        "fma",
        "and",
        "or",
        "xor",
        "not",
        "where",
        "order",
    }
    assert set(FUNCTIONS) == here | set(UNARY) | {"pow"}
