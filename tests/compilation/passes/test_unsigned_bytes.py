"""Products of bytes in the form of kernels: the same values by plain loops, in operands that kernels have."""

import itertools

import numpy as np
import pytest

from sabir import loops
from sabir.compilation.backends.cpu.passes import is_packed_zero, packed_zero
from sabir.compilation.backends.cpu.passes._unsigned_bytes import unsigned_bytes
from sabir.loops import walk
from support.scalar import Computing

RNG = np.random.default_rng(3)
BYTES = ("int8", "uint8")


def whole(element, *shape):
    limits = np.iinfo(element)
    return loops.tensor(RNG.integers(limits.min, limits.max + 1, shape).astype(element))


def computed(x):
    walk.verify([x])
    return Computing({}, {})(x)


def rewritten(x):
    """The expression after the pass; it has the same values."""
    found = unsigned_bytes({0: x})[0]
    np.testing.assert_array_equal(computed(found), computed(x))
    return found


def kinds(x, kind):
    return [e for e in walk.postorder([x]) if isinstance(e, kind)]


@pytest.mark.parametrize("operands", list(itertools.product(BYTES, BYTES)), ids="-".join)
@pytest.mark.parametrize("zeros", list(itertools.product((None, (), (3, 1)), (None, (), (5,)))), ids=str)
def test_products(operands, zeros):
    a, b = whole(operands[0], 3, 4), whole(operands[1], 4, 5)
    a_zero, b_zero = (
        None if shape is None else whole(x.element, *shape) for shape, x in zip(zeros, (a, b), strict=True)
    )
    (product,) = kinds(rewritten(loops.contract_integers(a, b, a_zero, b_zero)), loops.Contract)
    assert product.a.element == "uint8"
    assert product.a_zero is None or product.a_zero.shape == ()
    assert is_packed_zero(product)


@pytest.mark.parametrize("operands", list(itertools.product(BYTES, BYTES)), ids="-".join)
def test_products_in_groups_with_several_axes(operands):
    a, b = whole(operands[0], 2, 3, 4, 2, 3), whole(operands[1], 2, 2, 3, 5)
    x = loops.convolve_integers(a, b, 2, 2, whole(a.element), whole(b.element, 2, 1, 1, 5))
    assert x.shape == (2, 3, 4, 5)
    (product,) = kinds(rewritten(x), loops.Contract)
    assert product.a.element == "uint8"


@pytest.mark.parametrize("operands", list(itertools.product(BYTES, BYTES)), ids="-".join)
def test_windows(operands):
    image = whole(operands[0], 1, 6, 6, 3)
    found = loops.windows(image, [1, 2], [2, 2], [5, 5], [1, 1], [1, 1])
    weights = whole(operands[1], 3, 2, 2)
    zeros = list(itertools.starmap(loops.number, zip(operands, (7, 9), strict=True)))
    (slide,) = kinds(rewritten(loops.slide_integers(found, 2, weights, *zeros)), loops.Slide)
    assert slide.operand.element == "uint8"
    assert isinstance(slide.operand, loops.Windows)  # a view of what is inverted once
    assert packed_zero(slide) == (9 - 128 if operands[1] == "uint8" else 9)


def test_floats_by_unsigned_bytes():
    a, b = loops.tensor(RNG.integers(-9, 9, (3, 4)).astype(np.float32)), whole("uint8", 4, 5)
    for zero in (None, loops.number("uint8", 128), loops.number("uint8", 3)):
        x = loops.Contract("float", (3, 5), a, b, 1, 1, b_zero=zero)
        (product,) = kinds(rewritten(x), loops.Contract)
        assert (product.b is b) == (zero is not None and zero.number == 128)
    split, blocks = loops.reshape(a, (3, 2, 2)), loops.reshape(b, (2, 2, 5))
    scales = loops.tensor(np.float32([[[1, 2, 4, 8, 0.5]], [[2, 2, 1, 1, 0.25]]]))
    for zero in (None, whole("uint8", 2, 1, 5)):
        x = loops.Contract("float", (3, 5), split, blocks, 1, 2, None, scales, zero)
        (product,) = kinds(rewritten(x), loops.Contract)
        assert product.b is blocks
        assert not is_packed_zero(product)


def test_equal_products_stay_equal():
    a, b = whole("uint8", 3, 4), whole("uint8", 4, 5)
    found = unsigned_bytes({n: loops.contract_integers(a, b) for n in range(2)})
    first, second = (kinds(x, loops.Contract)[0] for x in found.values())
    assert first.b_zero is second.b_zero


def test_expressions_without_bytes_stay():
    x = loops.contract(loops.Stored("float", (2, 3), 1), loops.Stored("float", (3, 4), 2))
    assert unsigned_bytes({0: x}) == {0: x}


def test_zero_points_along_the_depth_are_not_lowered():
    with pytest.raises(
        loops.NotLowered, match=r"zero points of shape \(4, 1\) of \(4, 5\) have no kernel yet"
    ):
        loops.contract_integers(whole("uint8", 3, 4), whole("int8", 4, 5), None, whole("int8", 4, 1))
