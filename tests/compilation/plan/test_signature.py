"""Declared arguments: blocks packed by name, words found by name, and what is missing, unknown or of another form."""

import re
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.emitter import Emitter
from sabir.compilation.backends.cpu.emit.nest import (
    ANY,
    NEXT,
    STILL,
    Access,
    Load,
    Nest,
    SizeArgument,
    TakeStep,
)
from sabir.compilation.plan.entries import SCRATCH, Buffer, BufferNumber, Offset, start_of
from sabir.compilation.plan.signature import (
    SCRATCH_MEMORY,
    KernelSignature,
    Repeated,
    scratch_memory,
    words_of,
)
from sabir.ir import symbol

OPERAND = KernelSignature(tensor="tensor", strides=("stride", 2))
SIGNATURE = KernelSignature(rows="size", a=OPERAND, depths=("size", 3), b=OPERAND, scratch=SCRATCH_MEMORY)
CALLS = KernelSignature(count="size", calls=Repeated(KernelSignature(kernel="address", block="number")))
BUFFER = Buffer("input", 5, "float", (2, 3), 24)
VALUES = {
    "rows": 7,
    "a": {"tensor": start_of(BUFFER), "strides": [12, 4]},
    "depths": (1, 2, 3),
    "b": {"tensor": None, "strides": [8, 8]},
    "scratch": scratch_memory(64),
}


def test_a_block_has_its_values_in_the_order_of_the_signature():
    backwards = dict(reversed(VALUES.items()))
    expected = [7, BufferNumber(BUFFER), Offset(BUFFER, 0), 12, 4, 1, 2, 3, 0, 0, 8, 8, SCRATCH, 0, 64]
    assert SIGNATURE.pack(VALUES) == SIGNATURE.pack(backwards) == expected
    assert SIGNATURE.words == len(expected)
    assert SIGNATURE.names == ("rows", "a", "depths", "b", "scratch")


def test_sizes_stay_expressions():
    assert KernelSignature(rows="size").pack({"rows": symbol("N") * 2}) == [symbol("N") * 2]


def test_words_are_found_by_name():
    block = SIGNATURE.pack(VALUES)
    assert SIGNATURE.read(block, "rows") == [7]
    assert SIGNATURE.read(block, "a", "strides") == [12, 4]
    assert SIGNATURE.read(block, "depths") == [1, 2, 3]
    assert SIGNATURE.read(block, "b") == [0, 0, 8, 8]
    assert SIGNATURE.span("scratch", "bytes") == (14, 15)
    assert SIGNATURE.find("b", "tensor") == (8, "tensor")


def test_a_repeated_group_is_there_any_number_of_times():
    assert CALLS.words == 1
    assert words_of(CALLS.find("calls")[1]) == 2
    assert CALLS.span("calls", "block") == (2, 3)  # of the first one
    assert CALLS.pack({"count": 0, "calls": []}) == [0]
    some = [{"kernel": 10, "block": 11}, {"kernel": 20, "block": 21}]
    assert CALLS.pack({"count": 2, "calls": some}) == [2, 10, 11, 20, 21]


INVALID = {
    "no value for depths, b; the arguments are rows, a, depths, b, scratch": {"depths": ..., "b": ...},
    "no argument column; the arguments are rows, a, depths, b, scratch": {"column": 1},
    "no value for rows and no argument row; the arguments": {"rows": ..., "row": 1},
    "no value for a.strides; the arguments are tensor, strides": {"a": {"tensor": None}},
    "no argument a.line; the arguments": {"a": {"tensor": None, "strides": [1, 1], "line": 3}},
    "the argument depths has 3 words, not [1, 2]": {"depths": [1, 2]},
    "the argument depths has 3 words, not 5": {"depths": 5},
    "the argument rows has 1 words, not [1, 2]": {"rows": [1, 2]},
    "the argument a.tensor has 2 words, not [1]": {"a": {"tensor": [1], "strides": [1, 1]}},
    "the argument b.strides has 2 words, not (1, 2, 3)": {"b": {"tensor": None, "strides": (1, 2, 3)}},
    "the group a needs values by name": {"a": [0, 0, 1, 1]},
}


@pytest.mark.parametrize("message", INVALID)
def test_values_that_no_block_has(message):
    values = {name: x for name, x in (VALUES | INVALID[message]).items() if x is not ...}
    with pytest.raises(TypeError, match=re.escape(message)):
        SIGNATURE.pack(values)


def test_a_repeated_group_takes_a_list():
    with pytest.raises(TypeError, match="the group calls needs a list"):
        CALLS.pack({"count": 1, "calls": {"kernel": 1, "block": 1}})


def test_names_that_there_are_not():
    with pytest.raises(TypeError, match="no argument line; the arguments are tensor, strides"):
        SIGNATURE.span("a", "line")
    with pytest.raises(TypeError, match="rows is no group of arguments"):
        SIGNATURE.span("rows", "tensor")


def test_nothing_follows_a_repeated_group():
    with pytest.raises(TypeError, match="arguments follow the repeated group 'all'"):
        KernelSignature(all=Repeated(OPERAND), rows="size")


def test_the_arguments_of_a_nest():
    accesses = (Access("float", (ANY, STILL, ANY)), Access("int64", (STILL, NEXT, ANY)))
    steps = (Load("int64", 1), TakeStep("float", 0, 0), SizeArgument("float", 1))
    nest = Nest(3, (False,) * 3, 2, accesses, steps, ((1, 1),), sizes=2)
    signature = nest.signature
    assert signature.names == ("sizes", "a0", "a1", "take1", "extents", "scratch")
    spans = {
        "sizes": (0, 3), "a0.tensor": (3, 5), "a0.strides": (5, 7), "a1.strides": (9, 10),
        "take1.stride": (11, 12), "extents": (12, 14), "scratch.bytes": (16, 17),
    }  # fmt: skip
    assert {path: signature.span(*path.split(".")) for path in spans} == spans


# ---------------------------------------------------------------- loads


def lines_of(emit):
    """The instructions that loads of some arguments emit."""
    e = Emitter()
    emit(e, Arguments(e, SIGNATURE))
    return [line.strip() for line in e.text().split("\n") if line.startswith("  %t")]


def test_numbers_are_loaded_from_their_words():
    assert lines_of(lambda _, a: a.number("rows")) == ["%t1 = load i64, ptr %args, align 8"]
    assert lines_of(lambda _, a: a.number("depths", 2)) == [
        "%t1 = getelementptr i64, ptr %args, i64 7",
        "%t2 = load i64, ptr %t1, align 8",
    ]
    assert lines_of(lambda _, a: a.group("b").numbers("strides"))[::2] == [
        "%t1 = getelementptr i64, ptr %args, i64 10",
        "%t3 = getelementptr i64, ptr %args, i64 11",
    ]


def test_a_number_at_an_index_that_a_run_computes():
    assert lines_of(lambda _, a: a.number("depths", a.number("rows")))[1:3] == [
        "%t2 = add i64 %t1, 5",
        "%t3 = getelementptr i64, ptr %args, i64 %t2",
    ]


def test_a_pointer_is_a_buffer_and_an_offset():
    assert lines_of(lambda _, a: a.group("a").pointer("tensor")) == [
        "%t1 = getelementptr i64, ptr %args, i64 1",
        "%t2 = load i64, ptr %t1, align 8",
        "%t3 = getelementptr i64, ptr %buffers, i64 %t2",
        "%t4 = load ptr, ptr %t3, align 8",
        "%t5 = getelementptr i64, ptr %args, i64 2",
        "%t6 = load i64, ptr %t5, align 8",
        "%t7 = getelementptr i8, ptr %t4, i64 %t6",
    ]


def test_each_thread_has_its_own_scratch_memory():
    lines = lines_of(lambda _, a: a.own_scratch())
    assert lines[0] == "%t1 = getelementptr i64, ptr %args, i64 14"
    assert lines[2] == "%t3 = mul i64 %thread, %t2"
    assert lines[-1].endswith("i64 %t3")


def test_a_repeated_group_is_found_by_its_number():
    e = Emitter()
    calls = Arguments(e, CALLS)
    calls.repeated("calls", calls.number("count")).address("kernel")
    assert "%t2 = mul i64 %t1, 2\n  %t3 = add i64 %t2, 1\n" in e.text()
    with pytest.raises(TypeError, match="is no group of arguments"):
        calls.group("count")


def test_no_other_module_counts_words():
    """Kernels read their arguments by name: nothing but `Arguments` loads words of a block."""
    root = Path(sabir.__file__).parent / "compilation"
    users = {p.name for p in root.rglob("*.py") if re.search(r"\be\.argument\(", p.read_text())}
    assert users == {"arguments.py"}


def test_a_block_that_a_kernel_does_not_declare_fails_at_planning(monkeypatch):
    """What the planner packs and what the kernel reads cannot differ silently."""
    wider = KernelSignature(sizes=("size", 1), more="size")
    monkeypatch.setattr(Nest, "signature", property(lambda _: wider))
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Neg (x) }'
    )
    with pytest.raises(TypeError, match="no value for more and no argument extents, a0, a1, scratch"):
        Compiled(model).compile({"x": np.ones(3, np.float32)}, target="x86-64-v3")
