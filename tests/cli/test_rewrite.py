"""`sabir rewrite`, as a user runs it."""

import json
import sys

import pytest

import sabir

RULES = """[[rule]]
name = "swish"
pattern = "y = Mul (x, Sigmoid (x))"
replacement = "y = Swish (x)"
examples = ["s = Sigmoid (x) y = Mul (x, s)"]
near_misses = ["n = Neg (x) s = Sigmoid (n) y = Mul (x, s)"]
"""
MODEL = """<ir_version: 10, opset_import: ["" : 24]>
g (float[N,4] x) => (float[N,4] y) { [sig] s = Sigmoid (x)  [mul] m = Mul (x, s)  [out] y = Tanh (m) }"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "mine.py").write_text(
        "import sabir\n"
        "one = sabir.RewriteRule('one', 'Tanh (x)', 'Neg (Neg (Tanh (x)))', where=[lambda m: False])\n"
        "other = sabir.RewriteRule('swish', lambda b, x: b.Mul(x, b.Sigmoid(x)), lambda b, m: b.Swish(m['x']))\n"
        "both, wrong = [one, other], [one, 3]\n"
    )
    sabir.save(sabir.parse(MODEL), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return tmp_path


@pytest.mark.parametrize("rules", ["rules.toml", "mine:both", "mine:other"])
def test_a_model_is_rewritten(cli, folder, rules):
    done = cli("rewrite", "model.onnx", "--rules", rules, "-o", "out.onnx")
    assert done.code == 0, done.err
    assert [node.op for node in sabir.load(folder / "out.onnx").graph] == ["Swish", "Tanh"]
    lines = done.out.splitlines()
    assert lines[0].split() == ["swish", "1"]
    assert "2 nodes of 3" in lines
    assert any(line.startswith("largest difference on") for line in lines)


@pytest.mark.usefixtures("folder")
def test_json(cli):
    done = cli("rewrite", "model.onnx", "--rules", "rules.toml", "-o", "out.onnx", "--json")
    report = json.loads(done.out)
    assert report["applied"] == {"swish": 1}
    assert report["nodes"] == 2
    assert report["verification"]["difference"] < 1e-5
    why = cli("rewrite", "model.onnx", "--rules", "rules.toml", "--why-not", "out", "--json")
    assert json.loads(why.out) == [
        {
            "rule": "swish",
            "node": "Tanh 'out'",
            "reason": "no Mul, in which its pattern ends, follows the node",
        }
    ]
    proof = cli("rewrite", "--rules", "rules.toml", "--prove", "--json")
    assert json.loads(proof.out) == {"rules": 1, "failures": {}}


def test_explanations_and_proofs(cli, folder):
    why = cli("rewrite", "model.onnx", "--rules", "rules.toml", "--why-not", "sig")
    assert (why.code, why.out) == (0, "swish at Mul 'mul': the rule applies\n")
    proof = cli("rewrite", "--rules", "rules.toml", "--prove")
    assert (proof.code, proof.out) == (0, "'swish': 1 example, near misses: 1, all as declared\n")
    (folder / "rules.toml").write_text(RULES.replace("Swish (x)", "Abs (x)"))
    proof = cli("rewrite", "--rules", "rules.toml", "--prove")
    assert proof.code == 1
    assert "differs by" in proof.out
    wrong = cli("rewrite", "model.onnx", "--rules", "rules.toml", "-o", "out.onnx")
    assert wrong.code == 1
    assert "differs by" in wrong.err
    assert not (folder / "out.onnx").exists()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--rules", "rules.toml"], "a model is missing"),
        (["model.onnx", "--rules", "rules.toml"], "`-o FILE` is missing"),
        (["model.onnx", "--rules", "none.toml", "-o", "out.onnx"], "'none.toml' cannot be read"),
        (
            ["model.onnx", "--rules", "mine:none", "-o", "out.onnx"],
            "mine has nothing of that name; is it 'one'",
        ),
        (["model.onnx", "--rules", "mine:wrong", "-o", "out.onnx"], "has a int; it must be a RewriteRule"),
        (["model.onnx", "--rules", "nothere:x", "-o", "out.onnx"], "nothere cannot be imported"),
        (["model.onnx", "--rules", "rules.toml", "--why-not", "sgi"], "is it 'sig'"),
        (["model.onnx", "-o", "out.onnx"], "--rules"),
    ],
)
def test_bad_usage(cli, folder, arguments, problem):
    done = cli("rewrite", *arguments)
    assert done.code in {1, 2}
    assert problem in done.err
    assert not (folder / "out.onnx").exists()
