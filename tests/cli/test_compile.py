import json

import pytest

import sabir
from sabir.compilation import LISTINGS
from support.levels import OLDEST

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x) => (float[N,2] y, float[N,K] z) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
  h = MatMul (x, w)
  y = Relu (h)
  z = Unique <axis = 1> (x)
}"""


@pytest.fixture
def model(write, tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SABIR_CPU", OLDEST)
    return write(MODEL)


def test_what_was_compiled_is_reported(cli, model):
    code, out, err = cli("compile", model, "--dim", "N=3")
    assert (code, err) == (0, "")
    # a copy, the packing, products for 1 row, for a few and for more
    assert out.startswith("model.onnxtxt: 5 kernels in ")
    assert "   nodes                   3\n" in out
    assert "   computed by kernels     2 in 2 calls of kernels\n" in out
    assert "   evaluated               1\n" in out
    assert (
        "   1   the shape of the result depends on the contents of the operands   Unique with output 'z'\n"
        in out
    )


def test_a_size_of_one_is_assumed_and_told(cli, model):
    out = cli("compile", model).out
    assert "note: the dimension 'N' is taken as 1; choose its size with --dim" in out


def test_the_report_as_json(cli, model):
    report = json.loads(cli("compile", model, "--shape", "x=5,4", "--json").out)
    assert report["sizes"] == {"N": 5}
    assert report["nodes"] == 3
    assert {call["kind"]: call["nodes"] for call in report["calls"]} == {
        "product": ["MatMul with output 'h'", "Relu with output 'y'"],
        "nest": ["a copy of 'z'"],
    }
    assert report["once"] == [{"kind": "pack", "nodes": ["MatMul with output 'h'"]}]
    assert [call["node"] for call in report["evaluated"]] == ["Unique with output 'z'"]
    assert report["kernels"] == 5
    assert 0 <= report["compiled"] <= 5


def test_what_a_plan_is_made_of(cli, model):
    def shown(form):
        code, out, err = cli("compile", model, "--dim", "N=3", "--show", form)
        assert (code, err) == (0, "")
        assert out == cli("compile", model, "--dim", "N=3", "--show", form).out
        return out

    texts = {form: shown(form) for form in LISTINGS}
    assert "  h: float[N,2] = contract(x, w, rows=1, depth=1)\n" in texts["loops"]
    assert "1 product: MatMul with output 'h', Relu with output 'y'\n" in texts["schedule"]
    assert texts["plan"].startswith("sizes: N = 3\n")
    assert "define void @kernel" in texts["llvm"]
    assert "kernel:\n" in texts["asm"]
    assert not any("\\t" in text for text in texts.values())
    assert shown("nodes").startswith("3 nodes: 2 kernels, 1 evaluated\n")


def test_the_code_for_another_processor(cli, fails, model):
    code, out, err = cli("compile", model, "--dim", "N=3", "--show", "asm", "--target", "aarch64")
    assert (code, err) == (0, "")
    assert ".4s" in out
    assert "--target" in fails("compile", model, "--target", "aarch64")
    assert "'z80' is none of x86-64-v3, x86-64-v4, aarch64," in fails("compile", model, "--target", "z80")


def test_names_cannot_move_the_cursor(cli, model):
    b = sabir.Builder(21)
    b.output(b.Relu(b.input("x\x1b[2J", "float", [3])), "y")
    path = model.with_name("odd.onnx")
    sabir.save(b.model(), path)
    for form in ("nodes", "loops", "schedule", "plan"):
        assert "\x1b" not in cli("compile", path, "--show", form).out


def test_wrong_usage(fails, model):
    assert "'x' is none of nodes, decisions, loops, schedule, plan, llvm, asm" in fails(
        "compile", model, "--show", "x"
    )
    assert "no input has this name" in fails("compile", model, "--shape", "q=1")
    assert "does not fit" in fails("compile", model, "--shape", "x=1,5")


def test_another_machine_is_told(fails, model, monkeypatch):
    monkeypatch.setenv("SABIR_CPU", "z80")
    assert "SABIR_CPU is 'z80'" in fails("compile", model)


def test_decisions_one_a_line(cli, model):
    code, out, err = cli("compile", model, "--dim", "N=3", "--show", "decisions", "--target", "x86-64-v3")
    assert (code, err) == (0, "")
    both = "MatMul with output 'h', Relu with output 'y'"
    lines = out.splitlines()
    assert "Relu with output 'y': fused with MatMul with output 'h'" in lines
    assert f"{both}: second operand packed once: it is constant" in lines
    report = json.loads(cli("compile", model, "--dim", "N=3", "--json").out)
    assert {
        "nodes": ["Relu with output 'y'"], "subject": "fusion", "chosen": "fused with MatMul with output 'h'",
        "rejected": "", "because": "",
    } in report["decisions"]  # fmt: skip
