import sabir

CONTRADICTION = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[3] y) { y = Relu(x) }'


def test_outputs_are_told(cli, softmax):
    before = softmax.read_bytes()
    code, out, err = cli("infer", softmax)
    assert (code, err) == (0, "")
    assert out == f"{softmax}: 2 of 2 values have a type\n   y   float[N,6]\n"
    assert softmax.read_bytes() == before


def test_types_are_saved(cli, softmax, tmp_path):
    assert cli("infer", softmax, "-o", tmp_path / "typed.onnx").out.endswith(
        f"saved {tmp_path}/typed.onnx (225 bytes)\n"
    )
    types = [str(node.output.type) for node in sabir.load(tmp_path / "typed.onnx").graph]
    assert types == ["float[N,6]", "float[N,6]"]
    assert cli("infer", softmax, "-o", tmp_path / "typed.onnxtxt").code == 0
    assert "float[N,6] y" in (tmp_path / "typed.onnxtxt").read_text()


def test_contradictions(cli, fails, write):
    path = write(CONTRADICTION)
    code, out, _ = cli("infer", path)
    assert code == 1
    assert "TYPE001" in out
    assert out.endswith("   y   float[3]\n")
    assert "float[2]" in fails("infer", path, "--strict", code=1)


def test_a_folder_that_is_not_there(fails, relu, tmp_path):
    assert f"{tmp_path}/none/out.onnx" in fails("infer", relu, "-o", tmp_path / "none" / "out.onnx")


def test_a_node_that_cannot_be_judged_is_a_warning_as_in_a_check(cli, write):
    nodes = "".join(f"v{i} = other.Thing(x) " for i in range(9))
    header = '<ir_version: 8, opset_import: ["" : 17, "other" : 1]>'
    path = write(f"{header} g (float[1] x) => (float[1] y) {{ {nodes} y = Relu(x) }}")
    code, out, err = cli("infer", path, "--strict")
    assert (code, err) == (0, "")
    first, *rest = out.splitlines()
    assert first.startswith(
        "graph/node[0] 'Thing': warning NODE007: other.Thing is not an operator that Sabir knows"
    )
    assert first.endswith("; 8 more of NODE007, which --verbose lists")
    assert rest[0] == f"{path}: 1 of 10 values have a type"
    assert cli("infer", path, "--verbose").out.count("warning NODE007") == 9
    assert "warning NODE007" in cli("check", path).out
    unknown = write(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Thing(x) }'
    )
    assert "error NODE001" in cli("infer", unknown).out
    assert "error NODE001" in cli("check", unknown).out
