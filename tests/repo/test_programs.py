"""The programs of examples/ run, as their pages say."""

import subprocess
import sys
from pathlib import Path

import numpy as np

import sabir

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


def test_the_digits_are_learnt(tmp_path):
    done = run(sys.executable, "examples/digits/train.py", "6", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "trained on 1437 images" in done.stdout
    with np.load(tmp_path / "digits_test.npz") as held:
        images, labels = held["images"][:, None].astype(np.float32), held["labels"]
    (found,) = sabir.Session(tmp_path / "digits.onnx").run({"image": images}).values()
    assert f"right on {(found.argmax(1) == labels).sum()} of 360 held-back images" in done.stdout
    assert (found.argmax(1) == labels).mean() > 0.85
    # what `sabir demo` shows is of the same program and the same images, with more epochs
    demo = ROOT / "src" / "sabir" / "demo"
    with np.load(demo / "digits_test.npz") as shown:
        assert np.array_equal(shown["images"][:, None], images)
    kinds = [[node.op for node in sabir.load(folder / "digits.onnx").graph] for folder in (demo, tmp_path)]
    assert kinds[0] == kinds[1]


def test_the_character_model_writes(tmp_path):
    program = str(ROOT / "examples" / "characters" / "train.py")
    done = run(sys.executable, program, "12", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    written = done.stdout.split("\nThe ", 1)[1]
    assert len(written) > 250
    model = sabir.load(tmp_path / "characters.onnx")
    assert model.training == []
    session = sabir.Session(model)
    rows = [session.run({"text": np.full((1, 48), code)})["scores"] for code in (0, 1)]
    assert rows[0].shape[:2] == (1, 48)
    assert not np.array_equal(*rows)
