"""The default limits let honest work pass that a machine of ordinary size can do; the strict ones are by name."""

import numpy as np
import pytest

import sabir
from sabir import Limits
from sabir.base import budget, limits_in_force, run_with_limits, usable_memory
from sabir.cli._app import main
from support.bounds import untrusted
from support.costs import of, step

F, GIB = np.float32, 1 << 30
MACHINE = Limits(memory=12 * GIB)  # half of a machine of 24 GiB, so that the test does not depend on this one

HONEST = {
    "few columns times a vocabulary": (
        lambda: step("MatMul", of((3072, 8)), of((8, 50257)), results=[(3072, 50257)])),
    "tokens to logits": lambda: step(
        "MatMul", of((16, 256, 768)), of((768, 50257)), results=[(16, 256, 50257)]),
    "a small hidden size and a large vocabulary": (
        lambda: step("MatMul", of((4096, 64)), of((64, 151_936)), results=[(4096, 151_936)])),
    "a causal mask": lambda: step("Trilu", of((16384, 16384), np.bool_), results=[(16384, 16384)]),
    "distances to all neighbours": lambda: step("Sub", of((2000, 1)), of((1, 60_000)), results=[(2000, 60_000)]),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_honest_work_passes_with_the_defaults(name):
    run_with_limits(MACHINE, HONEST[name])


def test_one_hot_of_a_vocabulary_passes():
    b = sabir.Builder(21)
    ids = b.input("ids", "int64", [4096])
    b.output(b.ReduceMax(b.OneHot(ids, 50257, np.float32([0, 1])), [0, 1], keepdims=0), "y")
    ids = np.arange(4096)
    assert sabir.evaluate(b.model(), {"ids": ids}, limits=MACHINE)["y"] == 1
    with pytest.raises(sabir.LimitError, match="OneHot"):
        sabir.evaluate(b.model(), {"ids": ids}, limits=Limits.untrusted())


def test_a_loop_of_100_000_steps_passes():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g (int64 n, bool go, float x) => (float y) {
        y = Loop (n, go, x) <body = b (int64 i, bool c, float a) => (bool d, float h) {
            d = Identity (c)  e = Mul (a, a)  f = Sqrt (e)  h = Abs (f) }> }""")
    feeds = {"n": np.int64(100_000), "go": np.True_, "x": F(1)}
    assert sabir.Session(model).run(feeds)["y"] == 1


def test_the_default_of_memory_follows_from_the_machine():
    memory = usable_memory()
    assert memory is not None
    assert Limits().memory == max(2 * GIB, memory // 2)
    assert Limits().elements is None


def test_the_memory_of_a_control_group_counts(tmp_path):
    group = tmp_path / "sys/fs/cgroup/box"
    group.mkdir(parents=True)
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/box/inner\n")
    (group.parent / "memory.max").write_text("max\n")
    (group / "memory.max").write_text("1000000\n")
    assert usable_memory(tmp_path) == 1_000_000
    old = tmp_path / "sys/fs/cgroup/memory/jail"
    old.mkdir(parents=True)
    (old / "memory.limit_in_bytes").write_text("2000\n")
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/jail\n")
    assert usable_memory(tmp_path) == 2000


def test_feeds_raise_the_memory_to_that_of_the_machine_at_most():
    def raised():
        budget().raise_for(1 << 40)
        return budget().memory

    memory = usable_memory()
    assert run_with_limits(Limits(memory=1000), raised) == memory
    assert run_with_limits(Limits(memory=1 << 60), raised) == 1 << 60


def test_a_process_may_distrust_all_files():
    with untrusted():
        assert limits_in_force() == Limits.untrusted()
        with pytest.raises(sabir.LimitError, match="elements"):
            sabir.evaluate(outer(), {"x": np.zeros(12_000, F)})
    assert limits_in_force() == Limits()


def outer():
    return sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float y) {
        a = Constant <value_ints = [1]> ()  b = Unsqueeze (x, a)  c = Add (x, b)
        y = ReduceSum <keepdims = 0> (c) }""")


def test_the_option_of_the_commands(tmp_path, capsys):
    path = tmp_path / "outer.onnx"
    sabir.save(outer(), path)
    np.save(tmp_path / "x.npy", np.zeros(12_000, F))
    run = ["run", str(path), "-i", f"x={tmp_path / 'x.npy'}"]
    assert main([*run, "--untrusted"]) != 0
    assert "elements=144000000" in capsys.readouterr().err
    assert main([*run, "--limit", "elements=2e8", "--limit", "memory=2e9", "--untrusted"]) == 0


def test_a_message_names_the_values_that_are_alive():
    def refused():
        budget().allocate(900)
        sabir.base.check_elements(25, width=8)

    with pytest.raises(sabir.LimitError, match="take 200 bytes beside 900 bytes of values that are alive"):
        run_with_limits(Limits(memory=1000), refused)
