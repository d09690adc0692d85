"""The table of a run: what is bound to it, and what two tables share."""

import numpy as np
import pytest

import sabir
from sabir.compilation.plan.entries import ERRORS, SCRATCH, Mismatch
from sabir.compilation.plan.layout import RunSizes
from sabir.compilation.runtime.binding import Binding

TEXT = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,8] x, float[N,8] unread) => (float[N,8] y, int64[2] shape) {
    s = Exp (x)  y = Softmax (s)  shape = Shape (x)
}"""


@pytest.fixture
def program():
    session = sabir.Session(sabir.parse(TEXT), engine="compiled", threads=1)
    x = np.ones((3, 8), np.float32)
    session.run({"x": x, "unread": x})
    (found,) = session._engine._plans
    return found


def test_inputs_are_bound_row_by_row_where_kernels_read_them(program):
    binding = Binding(program)
    (read,) = program.input_buffers.values()
    turned = np.ones((8, 3), np.float32).T
    binding.bind_inputs({read.slot: turned})
    bound = binding._kept[-1]
    assert bound.flags.c_contiguous
    assert binding.table[read.number] == bound.ctypes.data
    with pytest.raises(Mismatch, match="an input is no tensor"):
        binding.bind_inputs({read.slot: [turned]})


def test_a_copy_shares_what_is_bound_and_has_its_own_table(program):
    binding = Binding(program)
    layout = program.layout(0, RunSizes({"N": 3}))
    memory = binding.bind_arena(program.parts[0], layout, 1)
    other = binding.copy()
    assert other.errors is binding.errors
    assert other.table[ERRORS] == binding.errors.ctypes.data
    assert other.table[program.parts[0].arena] == memory[0].ctypes.data
    (read,) = program.input_buffers.values()
    other.bind(read, np.ones((3, 8), np.float32))
    assert binding.table[read.number] == 0
    assert (len(memory) == 2) == bool(layout.scratch_bytes) == bool(binding.table[SCRATCH])


def test_random_words_are_new_in_each_draw():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[2] x) => (float[2] y) { r = RandomUniformLike (x)  y = Add (x, r) }"""
    session = sabir.Session(sabir.parse(text), engine="compiled", threads=1)
    session.run({"x": np.zeros(2, np.float32)})
    (program,) = session._engine._plans
    (keys,) = program.key_buffers
    binding = Binding(program)
    binding.bind_keys(RunSizes({}))
    (words,) = [array for array in binding._kept if array.ctypes.data == binding.table[keys.number]]
    first = words.copy()
    binding.draw()
    assert not np.array_equal(words, first)
    assert len(program.key_buffers) == 1
