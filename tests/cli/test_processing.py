"""`sabir prepend` and `sabir append`."""

import json

import sabir

NETWORK = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N,3,8,8] image) => (float[N,3,8,8] y, float[N,3] z) {
    y = Neg (image)  p = GlobalAveragePool (image)  z = Flatten (p)
}"""


def test_pixels_before_a_model(cli, write, tmp_path):
    model, out = write(NETWORK), tmp_path / "out.onnx"
    statistics = ("--mean", "0.5,0.4,0.3", "--std", "0.2,0.2,0.1")
    code, printed, err = cli("prepend", model, "image", *statistics, "-o", out)
    assert (code, err) == (0, "")
    assert "image   uint8[N,8,8,3]" in printed
    assert str(sabir.load(out).graph.inputs[0].type) == "uint8[N,8,8,3]"
    options = ("--size", "8,8", "--layout", "NCHW", "--scale", "1", "-o", out, "--json")
    code, printed, _ = cli("prepend", model, "image", *options)
    assert json.loads(printed)["inputs"] == {"image": "uint8[N,3,height,width]"}
    assert cli("prepend", model, "image", "--decode", "--pixel-format", "BGR", "-o", out).code == 0
    assert sabir.load(out).graph[0].attributes["pixel_format"].value == "BGR"


def test_steps_after_a_model(cli, write, tmp_path):
    model, out = write(NETWORK), tmp_path / "out.onnx"
    code, printed, err = cli("append", model, "top_k", "--output-name", "z", "--k", "2", "--keep", "-o", out)
    assert (code, err) == (0, "")
    assert "classes   int64[N,2]" in printed
    assert [v.name for v in sabir.load(out).graph.outputs] == ["y", "z", "scores", "classes"]


def test_what_is_refused(fails, write, tmp_path):
    model, out = write(NETWORK), tmp_path / "out.onnx"
    assert "is it 'image'?" in fails("prepend", model, "images", "-o", out)
    assert "write a height and a width" in fails("prepend", model, "image", "--size", "8", "-o", out)
    assert "write numbers with commas" in fails("prepend", model, "image", "--mean", "a", "-o", out)
    assert "is it 'softmax'?" in fails("append", model, "soft_max", "-o", out)
    assert "has no option 'k'" in fails("append", model, "softmax", "--k", "3", "-o", out, code=1)
    assert not out.exists()
