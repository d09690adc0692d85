"""`sabir quantize`."""

import json

import numpy as np
import pytest

import sabir
from sabir.demo import digits


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "digits.onnx"
    path.write_bytes(digits().model)
    return path


def test_the_command(cli, model, tmp_path):
    out = tmp_path / "small.onnx"
    code, printed, err = cli("quantize", model, "--to", "int4", "--exclude", "dense", "-o", out)
    assert (code, err) == (0, "")
    assert "converted to opset 21" in printed
    assert "conv2   Conv   int4    error " in printed
    assert "dense   Gemm   stays   it is excluded" in printed
    assert "1 of 3 nodes quantized" in printed
    assert out.stat().st_size < model.stat().st_size / 2


def test_calibration_with_a_folder(cli, model, tmp_path):
    folder, out = tmp_path / "data", tmp_path / "fast.onnx"
    folder.mkdir()
    images = digits().images.astype(np.float32).reshape(-1, 1, 8, 8)
    for start in range(0, 64, 16):
        np.savez(folder / f"{start:03}.npz", image=images[start : start + 16])
    code, printed, _ = cli("quantize", model, "--calibrate", folder, "--method", "mse", "-o", out, "--json")
    assert code == 0
    nodes = {node["name"]: node for node in json.loads(printed)["nodes"]}
    assert nodes["conv1"]["to"] == "int8"
    assert nodes["conv1"]["error"] < 0.01
    budgeted = tmp_path / "near.onnx"
    code, shown, _ = cli("quantize", model, "--calibrate", folder, "--budget", "1%", "-o", budgeted)
    assert code == 0
    assert "error of the results: 0." in shown
    assert "damage" in shown
    found = sabir.Session(sabir.load(out)).run({"image": images})["probabilities"].argmax(axis=1)
    assert (found == digits().labels).mean() > 0.98


def test_biases_and_channels(cli, fails, model, tmp_path):
    images = digits().images.astype(np.float32).reshape(-1, 1, 8, 8)
    data, out = tmp_path / "images.npz", tmp_path / "fast.onnx"
    np.savez(data, image=images[:64])
    code, printed, _ = cli("quantize", model, "--calibrate", data, "--equalize", "-o", out, "--json")
    assert code == 0
    nodes = {node["name"]: node for node in json.loads(printed)["nodes"]}
    assert 0 < nodes["conv1"]["shift"] < 0.05
    assert nodes["conv1"]["uncorrected"] is None
    assert nodes["conv1"]["equalized"] == nodes["conv2"]["equalized"] > 1
    assert nodes["dense"]["equalized"] is None
    code, printed, _ = cli("quantize", model, "--calibrate", data, "--equalize", "-o", out)
    assert code == 0
    assert ", bias corrected by 0." in printed
    assert f", channels scaled by up to {nodes['conv1']['equalized']:g}" in printed
    code, printed, _ = cli("quantize", model, "--calibrate", data, "--keep-bias", "-o", out)
    assert code == 0
    assert "bias corrected" not in printed
    for option in ("--equalize", "--correct-bias"):
        assert "are for static int8" in fails("quantize", model, option, "-o", out)
        assert "are for static int8" in fails("quantize", model, "--to", "float16", option, "-o", out)


def test_what_is_refused(fails, model, tmp_path):
    out = tmp_path / "out.onnx"
    assert "is it 'dense'?" in fails("quantize", model, "--exclude", "dens", "-o", out)
    assert "need no calibration" in fails(
        "quantize", model, "--to", "int4", "--calibrate", tmp_path, "-o", out
    )
    assert "there is no .npz file" in fails("quantize", model, "--calibrate", tmp_path, "-o", out)
    assert "such as 0.5% or 0.005" in fails("quantize", model, "--budget", "little", "-o", out)
    assert "--json writes the report" in fails("quantize", model, "-o", "-", "--json")
    assert not out.exists()
