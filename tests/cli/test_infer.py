import sabir

CONTRADICTION = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[3] y) { y = Relu(x) }'


def test_outputs_are_told(cli, softmax):
    before = softmax.read_bytes()
    code, out, err = cli("infer", softmax)
    assert (code, err) == (0, "")
    assert out == f"{softmax}: the types of 2 of 2 values are known\n   y   float[N,6]\n"
    assert softmax.read_bytes() == before


def test_types_are_saved(cli, softmax, tmp_path):
    assert cli("infer", softmax, "-o", tmp_path / "typed.onnx").out.endswith(f"saved {tmp_path}/typed.onnx\n")
    types = [str(node.output.type) for node in sabir.load(tmp_path / "typed.onnx").graph]
    assert types == ["float[N,6]", "float[N,6]"]
    assert cli("infer", softmax, "-o", tmp_path / "typed.onnxtxt").code == 0
    assert "float[N,6] y" in (tmp_path / "typed.onnxtxt").read_text()


def test_contradictions(cli, fails, write):
    path = write(CONTRADICTION)
    code, out, _ = cli("infer", path)
    assert code == 0
    assert "TYPE001" in out
    assert out.endswith("   y   float[3]\n")
    assert "float[2]" in fails("infer", path, "--strict") or "2" in fails("infer", path, "--strict")


def test_a_folder_that_is_not_there(fails, relu, tmp_path):
    assert f"{tmp_path}/none/out.onnx" in fails("infer", relu, "-o", tmp_path / "none" / "out.onnx")
