"""`sabir rewrite`, as a user runs it."""

import json

import pytest

import sabir
from cli.test_app import spawn

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
def folder(tmp_path):
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "mine.py").write_text(
        "import sabir\n"
        "one = sabir.RewriteRule('one', 'Tanh (x)', 'Neg (Neg (Tanh (x)))', where=[lambda m: False])\n"
        "other = sabir.RewriteRule('swish', lambda b, x: b.Mul(x, b.Sigmoid(x)), lambda b, m: b.Swish(m['x']))\n"
        "both, wrong = [one, other], [one, 3]\n"
    )
    sabir.save(sabir.parse(MODEL), tmp_path / "model.onnx")
    return tmp_path


@pytest.mark.parametrize("rules", ["rules.toml", "mine:both", "mine:other"])
def test_a_model_is_rewritten(folder, rules):
    done = spawn("rewrite", "model.onnx", "--rules", rules, "-o", "out.onnx", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert [node.op for node in sabir.load(folder / "out.onnx").graph] == ["Swish", "Tanh"]
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["swish", "1"]
    assert "2 nodes of 3" in lines
    assert any(line.startswith("largest difference on") for line in lines)


def test_json(folder):
    done = spawn("rewrite", "model.onnx", "--rules", "rules.toml", "-o", "out.onnx", "--json", cwd=folder)
    report = json.loads(done.stdout)
    assert report["applied"] == {"swish": 1}
    assert report["nodes"] == 2
    assert report["verification"]["difference"] < 1e-5
    why = spawn("rewrite", "model.onnx", "--rules", "rules.toml", "--why-not", "out", "--json", cwd=folder)
    assert json.loads(why.stdout) == [
        {
            "rule": "swish",
            "node": "Tanh 'out'",
            "reason": "no Mul, in which its pattern ends, follows the node",
        }
    ]
    proof = spawn("rewrite", "--rules", "rules.toml", "--prove", "--json", cwd=folder)
    assert json.loads(proof.stdout) == {"rules": 1, "failures": {}}


def test_explanations_and_proofs(folder):
    why = spawn("rewrite", "model.onnx", "--rules", "rules.toml", "--why-not", "sig", cwd=folder)
    assert (why.returncode, why.stdout) == (0, "swish at Mul 'mul': the rule applies\n")
    proof = spawn("rewrite", "--rules", "rules.toml", "--prove", cwd=folder)
    assert (proof.returncode, proof.stdout) == (0, "'swish': 1 example, near misses: 1, all as declared\n")
    (folder / "rules.toml").write_text(RULES.replace("Swish (x)", "Abs (x)"))
    proof = spawn("rewrite", "--rules", "rules.toml", "--prove", cwd=folder)
    assert proof.returncode == 1
    assert "differs by" in proof.stdout
    wrong = spawn("rewrite", "model.onnx", "--rules", "rules.toml", "-o", "out.onnx", cwd=folder)
    assert wrong.returncode == 1
    assert "differs by" in wrong.stderr
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
def test_bad_usage(folder, arguments, problem):
    done = spawn("rewrite", *arguments, cwd=folder)
    assert done.returncode in {1, 2}
    assert problem in done.stderr
    assert not (folder / "out.onnx").exists()
