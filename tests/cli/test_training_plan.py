"""`sabir train --plan`, and the options that decide what is one parameter and in how many bits it is trained."""

import numpy as np
import pytest

import sabir

LM = """<ir_version: 10, opset_import: ["" : 21]>
g (int64[N] x) => (float[N,3] y) <float[3,2] words = {1, 2, 3, 4, 5, 6}, float[2,3] head = {1, 3, 5, 2, 4, 6},
  float[2] one = {1, 1}, float[1,2] mask = {0, 1}, float[1,2] m = {3, 4}> {
    e = Gather (words, x)  a = LayerNormalization (e, one)  k = Mul (a, mask)  s = Tanh (k)  t = Add (s, m)
    n = LayerNormalization (t, one)  y = MatMul (n, head)
}"""


@pytest.fixture
def words(write, tmp_path):
    """A small language model, and words with those that follow them."""
    x = np.arange(24) % 3
    np.savez(tmp_path / "words.npz", x=x, label=(x + 1) % 3)
    return write(LM, "words.onnxtxt"), tmp_path / "words.npz"


def test_a_plan_says_what_is_trained_and_why(cli, words):
    found = cli("train", words[0], "--plan", "--frozen", "head")
    assert (found.code, found.err) == (0, "")
    lines = [" ".join(line.split()) for line in found.out.splitlines()]
    assert lines[1:5] == [
        "trained 3 constants",
        "words float[3, 2] table that Gather reads",
        "one float[2] scale of LayerNormalization",
        "one_1 float[2] scale of LayerNormalization",
    ]
    assert "head float[2, 3] its name matches frozen=" in lines
    assert "mask float[1, 2] mask of zeros and ones" in lines
    assert "one each layer has its own one_1" in lines
    assert any(line.startswith("warning: the embedding 'words' and the weight 'head'") for line in lines)
    assert any(line.startswith("warning: 'm': not trained, as neither use") for line in lines)
    found = cli("train", words[0], "--plan", "--tie", "words=head", "--trainable", "*")
    assert "words is also, transposed head" in " ".join(found.out.split())


def test_precision_and_ties_of_a_training(cli, words, tmp_path):
    model, data = words
    out = tmp_path / "trained.onnx"
    options = ("--tie", "words=head", "--frozen", "m", "--engine", "reference")
    for precision in ("bfloat16", "float16"):
        found = cli(
            "train", model, "--data", data, "-o", out, *options, "--precision", precision, "--keep-training"
        )
        assert (found.code, found.err) == (0, "")
        assert "training 10 numbers in 3 initializers" in found.out
        trained = sabir.load(out)
        casts = {n.attributes["to"].value for n in trained.training[0].algorithm if n.op == "Cast"}
        assert (10 if precision == "float16" else 16) in casts
        assert ("loss_scale" in {key.name for key in trained.state()}) == (precision == "float16")


def test_what_is_missing_is_named(fails, words, tmp_path):
    model, data = words
    assert fails("train", model, "-o", tmp_path / "t.onnx") == "--data is missing; only --plan needs none"
    assert fails("train", model, "--data", data) == "--output is missing; only --plan needs none"
    message = fails("train", model, "--plan", "--tie", "words")
    assert message == "--tie 'words': write it as NAME=OTHER, two initializers"
    assert "'heads'; is it 'head'?" in fails("train", model, "--plan", "--tie", "words=heads")


def test_scales_of_a_quantization_are_learned(cli, fails, words, write):
    text = LM.replace(
        "y = MatMul (n, head)",
        "q = QuantizeLinear (n, step, zero)  d = DequantizeLinear (q, step, zero)  y = MatMul (d, head)",
    )
    model = write(
        text.replace("float[1,2] m", "float step = {0.1}, int8 zero = {0}, float[1,2] m"), "quantized.onnxtxt"
    )
    found = cli("train", model, "--plan", "--learn-scales")
    assert "step float[] scale of a quantization, which is learned" in " ".join(found.out.split())
    assert cli("train", model, "--plan").out.count("which is learned") == 0
    assert "there is no scale to learn" in fails("train", words[0], "--plan", "--learn-scales")
