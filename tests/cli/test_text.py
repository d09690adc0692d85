import sabir
from sabir.syntax import parse, text


def test_a_model_as_text(cli, softmax):
    code, out, err = cli("text", softmax)
    assert (code, err) == (0, "")
    assert out == text(sabir.load(softmax))
    assert text(parse(out)) == out


def test_a_text_in_a_file_is_a_model(cli, softmax, tmp_path):
    for name in ("m.onnxtxt", "m.onnxtext", "m.TXT"):
        assert cli("text", softmax, "-o", tmp_path / name) == (0, "", "")
        assert cli("check", tmp_path / name).code == 0
        assert "   y   float[1,6]" in cli("run", tmp_path / name).out


def test_a_text_is_not_written_where_no_command_reads_it(fails, softmax, tmp_path):
    before = softmax.read_bytes()
    for name in ("softmax.onnx", "m.json", "m.pb"):
        message = fails("text", softmax, "-o", tmp_path / name)
        assert f"{name}: this extension names another format than the text syntax (.onnxtxt)" in message
    assert "the extension '.doc' names no format" in fails("text", softmax, "-o", tmp_path / "m.doc")
    assert softmax.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["softmax.onnx"]


def test_a_terminal_gets_no_control_characters(cli, tmp_path, monkeypatch):
    b = sabir.Builder(17)
    b.output(b.Relu(b.input("x\x1b[31m", "float", [1])), "y")
    sabir.save(b.model(), tmp_path / "m.onnx")
    assert "x\x1b[31m" in cli("text", tmp_path / "m.onnx").out  # a pipe gets the text as it is
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = cli("text", tmp_path / "m.onnx").out
    assert "\x1b" not in out
    assert "x\\x1b[31m" in out


def test_a_terminal_gets_the_short_form_and_all_else_everything(cli, tmp_path, monkeypatch):
    b = sabir.Builder(21)
    b.output(b.Add(b.input("x", "float", [20]), [0.5] * 20), "y")
    path = tmp_path / "m.onnx"
    sabir.save(b.model(), path)
    everything, short = text(sabir.load(path)), text(sabir.load(path), elide=16)
    assert cli("text", path).out == cli("text", path, "--all").out == everything
    assert cli("text", path, "--elide").out == short
    assert "{... 20 elements}" in short
    cli("text", path, "-o", tmp_path / "short.onnxtxt", "--elide")
    assert (tmp_path / "short.onnxtxt").read_text() == short
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli("text", path).out == short
    assert cli("text", path, "--all").out == everything
    cli("text", path, "-o", tmp_path / "all.onnxtxt")
    assert (tmp_path / "all.onnxtxt").read_text() == everything


def test_metadata_is_written_on_request(cli, tmp_path):
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { y = Relu (x) }'
    )
    model.graph[0].metadata = {"pkg.stack_trace": "File one.py"}
    path = tmp_path / "m.onnx"
    sabir.save(model, path)
    assert "File one.py" in cli("text", path).out
    assert "File one.py" not in cli("text", path, "--elide").out
    assert "File one.py" in cli("text", path, "--elide", "--metadata").out
    readable = tmp_path / "short.onnxtxt"
    assert cli("text", path, "--no-metadata", "-o", readable).code == 0
    assert sabir.load(readable).graph[0].metadata is None
