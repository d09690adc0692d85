"""The code of plans for processors that the machine of the tests need not have."""

import re

import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from sabir.compilation import TARGETS, Compiled
from sabir.compilation.native import disassemble, target_named
from sabir.compilation.native._driver import driver_text
from sabir.compilation.native._elf import undefined_symbols

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
PRODUCT = "g (float[N,64] x, float[64,48] w) => (float[N,48] y) { y = MatMul (x, w) }"
BYTES = "g (uint8[N,64] x, int8[64,48] w) => (int32[N,48] y) { y = MatMulInteger (x, w) }"
POINTWISE = "g (float[N,64] x) => (float[N,64] y) { y = Erf (x) }"
HALF = "g (float16[N,64] x) => (float16[N,64] y) { y = Sqrt (x) }"
ATTENTION = """g (float[B,4,N,64] q, float[B,4,64,M] k, float[B,4,M,64] v) => (float[B,4,N,64] y) {
  s = MatMul (q, k)
  p = Softmax (s)
  y = MatMul (p, v)
}"""
ARM = [name for name in TARGETS if target_named(name).architecture == "aarch64"]


def plan_of(text, target):
    compiled = Compiled(sabir.parse(HEADER + text), threads=2)
    feeds = {
        p.name: np.ones([d if isinstance(d, int) else 50 for d in p.type.shape], p.type.element.dtype)
        for p in compiled.inputs
    }
    return compiled.compile(feeds, target=target)


def kernels(text, target, form="asm"):
    """Return the code of the kernels of a model, each after its specification."""
    return re.split(r"(?m)^[#;] kernel \d+\n", "\n".join(plan_of(text, target).listing(form)))[1:]


def loop_of(code, instruction):
    """Return the innermost loop of a kernel with the most instructions of a kind.

    That is what lies between a label and the jump back to it.
    """
    lines = code.split("\n")
    labels = {line[:-1]: place for place, line in enumerate(lines) if re.fullmatch(r"\.LBB\w+:", line)}
    found = []
    for place, line in enumerate(lines):
        target = re.fullmatch(r"\s+b(?:\.\w+)?\s+(\.LBB\w+)", line)
        if target and labels.get(target[1], place) < place:
            found.append(lines[labels[target[1]] : place + 1])
    shortest = [body for body in found if any(re.search(rf"\b{instruction}\b", line) for line in body)]
    return "\n".join(min(shortest, key=len))


@pytest.mark.parametrize("target", ARM)
def test_products_of_floats_fill_the_registers_of_arm(target):
    kernel = kernels(PRODUCT, target)[-1]
    assert kernel.startswith("# product float tile 8x1x3 prefetch whole\n")
    loop = loop_of(kernel, "fmla")
    sums = re.findall(r"fmla\s+(v\d+)\.4s, v\d+\.4s, v\d+\.s\[0\]", loop)
    assert len(sums) == len(set(sums)) == 8 * 3
    assert "[sp" not in loop  # all stay in registers
    assert "prfm" in loop


@pytest.mark.parametrize(
    ("target", "instruction", "rows"),
    [("aarch64", "sadalp", 7), ("neoverse-n1", "sdot", 8), ("apple-m1", "sdot", 8), ("neoverse-v1", "usdot", 8)],
)  # fmt: skip
def test_products_of_bytes_use_what_an_arm_processor_has(target, instruction, rows):
    kernel = kernels(BYTES, target)[-1]
    assert f"by {instruction} whole\n" in kernel
    loop = loop_of(kernel, instruction)
    assert len(re.findall(rf"{instruction}\s+v\d+\.4s, ", loop)) == rows * 3
    assert not re.search(r"\bq\d+, .*\[sp", loop)


def test_functions_and_conversions_on_arm():
    (kernel,) = kernels(POINTWISE, "aarch64")
    assert re.search(r"fmla\s+v\d+\.4s, v\d+\.4s, v\d+\.4s", kernel)
    (kernel,) = kernels(HALF, "aarch64")
    assert re.search(r"fcvtl\s+v\d+\.4s, v\d+\.4h", kernel)
    assert re.search(r"fcvtn\s+v\d+\.4h, v\d+\.4s", kernel)
    assert not re.search(r"\sbl\s", kernel)  # no function of a library


def test_attention_reads_values_without_masks_on_arm():
    assert "6x4 lanes 4 of 24 rows, keys in panels whole\n" in kernels(ATTENTION, "aarch64")[-1]
    loops = loop_of(kernels(ATTENTION, "aarch64")[-1], "fmla")
    assert "tbz" not in loops
    assert "tbnz" not in loops
    assert "whole" not in kernels(ATTENTION, "x86-64-v3")[-1]


def test_the_code_of_a_target_is_the_same_everywhere():
    assert "ymm" in kernels(PRODUCT, "x86-64-v3")[-1]
    assert "zmm" not in "".join(kernels(PRODUCT, "x86-64-v3"))
    assert "zmm" in kernels(PRODUCT, "x86-64-v4")[-1]
    for target in TARGETS:
        assert kernels(PRODUCT, target) == kernels(PRODUCT, target)
        assert "define void @kernel" in kernels(PRODUCT, target, "llvm")[-1]
    plan = plan_of(PRODUCT, "aarch64")
    assert (plan.compiled, plan.sizes, plan.flops) == (0, {"N": 50}, 2 * 50 * 64 * 48)
    assert next(iter(plan.listing("plan"))) == "sizes: N = 50"
    assert [kernel.kind for kernel in plan.explain().kernels] == ["pack", "product"]


def test_targets_that_there_are_not():
    with pytest.raises(UnsupportedError, match=r"there is no target 'z80'; the targets are x86-64-v3, "):
        plan_of(PRODUCT, "z80")


def test_the_threads_of_a_team_on_arm():
    """Arm processors reorder memory: what a thread publishes and reads is ordered by instructions for that."""
    text = driver_text("aarch64", "timespec")
    assembly = disassemble(text, target_named("aarch64"))
    assert "isb" in assembly  # between two looks at the gate
    assert re.search(r"ldar\s+w", assembly)  # each of which acquires
    assert re.search(r"ldaxr\s+x\d+, .*\n(?:.*\n){1,3}\s+stlxr", assembly)  # an arrival
    assert re.search(r"ldaxr\s+w\d+, .*\n(?:.*\n)?\s+stlxr", assembly)  # the gate opens
    assert "swpal" in disassemble(text, target_named("neoverse-n1"))


MACHINES = {"aarch64": 183, "x86-64-v3": 62}  # e_machine of ELF: EM_AARCH64, EM_X86_64
NETWORK = """g (float[N,4,9,9] x, float[8,4,3,3] w, float[8,8] v) => (float[N,8] y) {
    c = Conv (x, w)
    r = Relu (c)
    p = GlobalAveragePool (r)
    f = Flatten (p)
    m = MatMul (f, v)
    y = Softmax (m)
}"""


@pytest.mark.parametrize("target", MACHINES)
@pytest.mark.parametrize("text", [NETWORK, BYTES, ATTENTION, HALF])
def test_all_kernels_of_a_plan_are_compiled_to_objects_for_another_processor(target, text):
    program = plan_of(text, target)._whole()
    objects = program.objects()
    assert len(objects) == program.kernels > 0
    for data in objects.values():
        assert data[:4] == b"\x7fELF"
        assert int.from_bytes(data[18:20], "little") == MACHINES[target]
        assert undefined_symbols(data) == []
    assert program.objects() == objects  # from the cache


def test_objects_for_another_processor_are_not_those_for_this_one():
    of_two = [set(plan_of(NETWORK, target)._whole().objects().values()) for target in MACHINES]
    assert not of_two[0] & of_two[1]
