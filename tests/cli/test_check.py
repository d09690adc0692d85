import sabir

UNKNOWN = '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Nope(x) }'


def test_a_sound_model(cli, relu):
    assert cli("check", relu) == (0, f"no problems found in {relu}\n", "")


def test_findings_are_a_line_each(cli, write):
    path = write(UNKNOWN.replace("y = Nope(x)", "t = Relu(x) t = Relu(x) y = Nope(t)"))
    code, out, err = cli("check", path)
    assert (code, err) == (1, "")
    *found, last = out.splitlines()
    assert len(found) == 2
    assert all(line.startswith(f"{path}: graph") and ": error " in line for line in found)
    assert "GRAPH004" in found[0]
    assert found[0].endswith("(rename one of them)")
    assert "NODE001" in found[1]
    assert last == f"2 errors found in {path}"


def test_several_models(cli, relu, write, tmp_path):
    (tmp_path / "junk.onnx").write_bytes(b"junk")
    code, out, err = cli("check", relu, tmp_path / "junk.onnx", tmp_path / "none.onnx", write(UNKNOWN))
    assert (code, err) == (1, "")
    assert f"no problems found in {relu}\n" in out
    assert f"{tmp_path}/junk.onnx: error: no ONNX model" in out
    assert f"{tmp_path}/none.onnx: error: there is no such file\n" in out
    assert "1 error found in" in out


def test_hostile_names_stay_on_their_line(cli, tmp_path):
    b = sabir.Builder(17)
    x = b.input("x", "float", [1])
    b.output(b.op("Bad\x1b[31m\n[red]", x, name="n\x07\n"), "y")
    sabir.save(b.model(), tmp_path / "hostile.onnx")
    code, out, _ = cli("check", tmp_path / "hostile.onnx")
    assert code == 1
    assert len(out.splitlines()) == 2
    assert all(line.isprintable() for line in out.split("\n"))
    assert "[red]" in out
