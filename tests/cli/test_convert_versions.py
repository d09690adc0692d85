import json

import pytest

import sabir

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,3] x) => (float[2] y) { [mean] y = ReduceMean <axes = [1], keepdims = 0> (x) }"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.onnx"
    sabir.save(sabir.parse(TEXT), path)
    return path


def test_a_newer_operator_set(cli, model, tmp_path):
    out = tmp_path / "new.onnx"
    code, stdout, err = cli("convert", model, out, "--opset", "21")
    assert (code, stdout) == (0, "")
    assert "IR 8, ai.onnx 17 → IR 10, ai.onnx 21" in err
    assert "ReduceMean:13" in err
    assert f"saved {out} (protobuf" in err
    assert sabir.load(out).opsets == {"": 21}


def test_with_an_ir_version_and_another_format(cli, model, tmp_path):
    out = tmp_path / "old.onnxtxt"
    assert cli("convert", model, out, "--opset", "11", "--ir-version", "6").code == 0
    assert sabir.load(out).ir_version == 6


def test_a_dry_run_reports_on_standard_output_and_writes_nothing(cli, model):
    code, out, err = cli("convert", model, "--opset", "ai.onnx=18", "--dry-run")
    assert (code, err) == (0, "")
    assert out.splitlines()[:2] == ["IR 8, ai.onnx 17 → IR 8, ai.onnx 18", "1 node → 1 node"]
    assert [p.name for p in model.parent.iterdir()] == ["m.onnx"]


def test_the_report_as_json(cli, model, tmp_path):
    code, out, _ = cli("convert", model, tmp_path / "o.onnx", "--opset", "18", "--json")
    assert code == 0
    assert json.loads(out) == {
        "before": {"ir_version": 8, "opsets": {"ai.onnx": 17}, "nodes": 1},
        "after": {"ir_version": 8, "opsets": {"ai.onnx": 18}, "nodes": 1},
        "rewritten": [{"from": "ReduceMean:13", "to": "ReduceMean:18", "calls": 1}],
        "inlined": [],
    }


def test_what_cannot_be_expressed_is_listed_and_nothing_is_written(cli, tmp_path):
    text = TEXT.replace("17", "20").replace(
        "y = ReduceMean <axes = [1], keepdims = 0> (x)", "t = IsNaN (x)  y = ReduceMax <keepdims = 0> (t)"
    )
    source, out = tmp_path / "m.onnxtxt", tmp_path / "o.onnx"
    source.write_text(text.replace("float[2] y", "bool y"))
    code, _, err = cli("convert", source, out, "--opset", "19")
    assert code == 1
    assert "1 node has no equivalent in opset 19 of ai.onnx:" in err
    assert "graph/node[1] 'ReduceMax': ReduceMax:20: ReduceMax:18 does not admit tensor(bool)" in err
    assert not out.exists()


def test_casts_on_request(cli, tmp_path):
    source, out = tmp_path / "m.onnxtxt", tmp_path / "o.onnx"
    source.write_text("""<ir_version: 10, opset_import: ["" : 22]>
    g (bfloat16[4] x) => (bfloat16[4] y) { y = Sin (x) }""")
    assert cli("convert", source, out, "--opset", "21").code == 1
    assert cli("convert", source, out, "--opset", "21", "--cast").code == 0
    assert [n.op for n in sabir.load(out).graph] == ["Cast", "Sin", "Cast"]


def test_the_new_file_may_be_named_as_in_other_commands(cli, fails, model, tmp_path):
    first, second = tmp_path / "a.onnx", tmp_path / "b.onnx"
    assert cli("convert", model, first, "--opset", "20").code == 0
    assert cli("convert", model, "-o", second, "--opset", "20").code == 0
    assert first.read_bytes() == second.read_bytes()
    assert "OUT and -o both name the new file" in fails("convert", model, first, "-o", second)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--opset", "x"], "write it as 17, or ai.onnx.ml=3"),
        (["--opset", "13", "--opset", "ai.onnx=14"], "names two versions of ai.onnx: 13 and 14"),
        (["--opset", "99"], "opset 99 of 'ai.onnx' is not known; the newest known one is 28"),
        (["--opset", "org.acme=2"], "no operators of domain 'org.acme' are known"),
        ([], "name the file to write, or add --dry-run"),
    ],
)
def test_wrong_versions(cli, model, options, message):
    code, _, err = cli("convert", model, *options, *(["--dry-run"] if options else []))
    assert code in {1, 2}
    assert message in err
