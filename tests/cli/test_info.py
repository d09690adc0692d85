"""`sabir info` shows what a report of a problem needs."""

import json
import os
import subprocess
import sys

import sabir


def test_the_facts(cli):
    code, out, err = cli("info")
    assert (code, err) == (0, "")
    assert f"{sabir.__version__}, for ONNX {sabir.releases()[-1].name}" in out
    assert all(word in out for word in ("engine", "compiled", "features", "cache", "numpy", "llvmlite"))


def test_the_facts_as_json(cli):
    found = json.loads(cli("info", "--json").out)
    assert found["engine"] == "compiled"
    assert found["problem"] is None
    assert found["target"]["cores"] >= 1
    assert found["memory"] > 1 << 28
    assert found["packages"]["numpy"]
    assert set(found["cache"]) == {"folder", "bytes", "limit"}


def run(*arguments):
    return subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own program
        [sys.executable, *arguments], capture_output=True, text=True, check=False,
        env=os.environ | {"SABIR_CPU": "x86-64-v33"},
    )  # fmt: skip


def test_a_misspelt_processor_is_named():
    found = run("-m", "sabir.cli", "info")
    assert found.returncode == 0
    assert "reference: SABIR_CPU is 'x86-64-v33'; it may be" in found.stdout


def test_a_session_that_falls_back_to_the_interpreter_warns_once():
    text = """
import sabir
model = sabir.parse('<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Neg (x) }')
for _ in range(2):
    print(sabir.Session(model).engine)
sabir.Session(model, engine="reference")
"""
    found = run("-c", text)
    assert found.stdout.split() == ["reference", "reference"]
    assert found.stderr.count("the interpreter runs all models, which is much slower") == 1
    assert "SABIR_CPU is 'x86-64-v33'" in found.stderr
