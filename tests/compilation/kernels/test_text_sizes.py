"""The texts of kernels hold no more instructions than they need: each takes time to compile."""

import re

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.emit.emitter import Emitter
from sabir.compilation.backends.cpu.emit.nest import Access, Accumulated, Apply, Nest, Step
from sabir.compilation.backends.cpu.products.spec import Product
from sabir.compilation.backends.cpu.texts import text_of
from sabir.compilation.native import disassemble, target_named


def product(rows: int, function: str) -> int:
    steps: tuple[Step, ...] = (Accumulated("float", 0),)
    steps += (Apply("float", function, (0,)),) if function else ()
    result = Access("float", (2, 1))
    nest = Nest(2, (False, False), 1, (result,), steps, ((0, len(steps) - 1),), 0, 16)
    return text_of(Product(nest, "float", rows, 3, whole=True)).count("\n")


@pytest.mark.parametrize("function", ["neg", "erf"])
def test_what_follows_a_product_is_emitted_for_one_row(function):
    plain, more = ([product(rows, name) for rows in (1, 8)] for name in ("", function))

    of_one, of_many = (b - a for a, b in zip(plain, more, strict=True))

    assert of_one == of_many > 0


@pytest.mark.parametrize("depth_axes", [1, 2])
@pytest.mark.parametrize(("rows", "vectors"), [(6, 4), (7, 3), (10, 2)])
def test_the_sums_of_a_convolution_stay_in_registers(rows, vectors, depth_axes):
    steps = (Accumulated("float", 0), Apply("float", "neg", (0,)))
    nest = Nest(3, (False,) * 3, 2, (Access("float", (2, 2, 1)),), steps, ((0, 1),), 0, 16)
    product = Product(nest, "float", rows, vectors, row_axes=2, depth_axes=depth_axes, whole=True)

    blocks = disassemble(text_of(product), target_named("x86-64-v4")).split("\n.LBB")
    (inner,) = (block for block in blocks if "vfmadd" in block)

    assert inner.count("vfmadd") == rows * vectors
    assert not re.findall(r"vmov.*\(%rsp\)", inner)


def test_windows_that_fill_their_vectors_have_no_code_for_a_rest():
    def windows(channels: int) -> str:
        b = sabir.Builder(opsets={"": 21})
        x = b.input("x", "float", [1, channels, 9, 9])
        b.output(b.Conv(x, np.ones((channels, 1, 3, 3), np.float32), group=channels), "y")
        (spec,) = (k.spec for k in Compiled(b.model()).explain().kernels if k.kind == "sliding")
        return spec

    assert "whole" in windows(64)
    assert "whole" not in windows(65)


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
