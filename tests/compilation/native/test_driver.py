"""The text of the driver: valid for each processor and clock, and without undefined symbols."""

import llvmlite.binding as llvm
import pytest

from sabir.compilation.native._block import ALIGNMENT, LINE, SLOTS, new_block
from sabir.compilation.native._driver import driver_text
from sabir.compilation.native._system import services


@pytest.mark.parametrize("clock", ["timespec", "ticks"])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "riscv64"])
def test_the_text_is_a_module_with_one_public_function(machine, clock):
    text = driver_text(machine, clock)
    assert "$" not in text
    module = llvm.parse_assembly(text)
    module.verify()
    assert [
        f.name for f in module.functions if f.linkage == llvm.Linkage.external and not f.is_declaration
    ] == ["kernel"]
    assert all(f.name.startswith("llvm.") for f in module.functions if f.is_declaration)
    assert not list(module.global_variables)


def test_a_block():
    given = services()
    block = new_block(given, 3)
    assert block.ctypes.data % ALIGNMENT == 0
    assert block.shape == (SLOTS["claims"] + 3 * LINE,)
    assert len(set(SLOTS.values())) == len(SLOTS)
    assert max(SLOTS.values()) == SLOTS["claims"]
    assert block[SLOTS["syscall"]] == given.syscall
    assert block[SLOTS["slice"]] * 50 == given.second  # 20 ms
    # what threads write lies on lines of its own
    lines = [
        SLOTS[name] * 8 // ALIGNMENT
        for name in ("clock", "gate", "arrived", "busy", "present", "plan", "next")
    ]
    assert len(set(lines)) == len(lines)


def test_services_without_a_futex():
    without = services(futex=False)
    assert (without.syscall, without.futex) == (0, 0)
    assert all((without.sched_yield, without.nap, without.clock))
