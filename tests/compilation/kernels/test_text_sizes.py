"""The texts of kernels hold no more instructions than they need: each takes time to compile."""

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.kernels import Access, Apply, Nest, Product, text_of
from sabir.compilation.kernels._emitter import Emitter
from sabir.compilation.kernels._nest import Accumulated


def product(rows: int, function: str) -> int:
    steps = (Accumulated("float", 0), Apply("float", function, (0,)))
    nest = Nest(2, (False, False), 1, (Access("float", (2, 1)),), steps, ((0, 1),), 0, 16)
    return text_of(Product(nest, "float", rows, 3, whole=True)).count("\n")


@pytest.mark.parametrize("function", ["erf", "tanh", "exp", "log1p"])
def test_a_long_function_behind_a_product_is_emitted_for_one_row(function):
    long, short = ([product(rows, name) for rows in (1, 2, 8)] for name in (function, "neg"))

    of_one, of_two, of_many = (a - b for a, b in zip(long, short, strict=True))

    assert of_one > 50
    assert of_two < 2 * of_one
    assert of_many < 2 * of_one


def test_llvm_does_not_know_how_opaque_indices_change():
    def loops(e: Emitter) -> str:
        with e.loop(e.index(0), e.index(8)) as place:
            e.store(place, e.offset(e.block, place))
        return e.text()

    assert "freeze" not in loops(Emitter())
    assert loops(Emitter(opaque_loops=True)).count("freeze") == 1


def test_images_of_several_sizes_share_a_kernel_of_windows():
    found = set[str]()
    for size in (112, 56, 28, 14, 7):
        b = sabir.Builder(opsets={"": 21})
        x = b.input("x", "float", [1, 32, size, size])
        b.output(b.Conv(x, np.ones((32, 1, 3, 3), np.float32), group=32, pads=[1, 1, 1, 1]), "y")
        found |= {k.spec for k in Compiled(b.model()).explain().kernels if "windows" in k.spec}

    (spec,) = found
    assert "places 7" in spec
