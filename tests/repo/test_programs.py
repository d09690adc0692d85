"""The programs of examples/ run, as their pages say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*words, cwd=ROOT):
    return subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        words,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_operator_set_over_its_life(tmp_path):
    done = run(sys.executable, "examples/operator_set/life.py", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "changed: Denoise:1 to Denoise:2" in done.stdout
    assert "the model in com.acme:3: com.acme.Denoise, Add" in done.stdout
    assert done.stdout.count("computes the same") == 3

    sabir = (sys.executable, "-m", "sabir.cli")
    converted = tmp_path / "again.onnx"
    done = run(
        *sabir, "convert", str(tmp_path / "model1.onnx"), str(converted),
        "--operators", "acme:NEWEST", "--opset", "com.acme=3", cwd=ROOT / "examples" / "operator_set",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert converted.exists()
    done = run(*sabir, "opset", "diff", str(tmp_path / "acme1.textproto"), str(tmp_path / "acme3.textproto"))
    assert done.returncode == 0, done.stdout + done.stderr
