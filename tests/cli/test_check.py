import json
import os

import numpy as np
import pytest

import sabir
from sabir.checking import RULES
from sabir.cli import _check
from sabir.evaluation import Runner

UNKNOWN = '<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y) { y = Nope(x) }'
ODD = (
    '<ir_version: 8, opset_import: ["" : 17]> g (float[1] "x.1") => (float[1] y) { ["n.1"] y = Relu("x.1") }'
)
TWICE = UNKNOWN.replace("y = Nope(x)", "t = Relu(x) t = Relu(x) y = Nope(t)")
UTF8 = b"\x08\x08\x12\x01\xff:\x05\x12\x03\xe9t\xe9B\x02\x10\x11"


def law_of(rule):
    return RULES.find(rule).law


def test_a_sound_model(cli, relu):
    summary = f"no problems found in {relu} (2 more with --strict)\n"
    assert cli("check", relu) == (0, summary, "")
    assert [f.rule for f in sabir.findings(relu, strict=True)] == ["MODEL009", "GRAPH014"]


def test_findings_are_a_line_each_and_then_the_sentences(cli, write):
    path = write(TWICE)
    code, out, err = cli("check", path)
    assert (code, err) == (1, "")
    first, second, one, other, last = out.splitlines()
    assert first == (
        f"{path}: graph/node[1] 'Relu'/output[0] 't': error GRAPH004: the name 't' is defined twice in one graph"
        " (rename one)"
    )
    assert second.startswith(f"{path}: graph/node[2] 'Nope': error NODE001: ")
    assert one == f"   GRAPH004   {law_of('GRAPH004')} (ir.txt)"
    assert other == f"   NODE001    {law_of('NODE001')} (ir.txt)"
    assert last == f"2 errors found in {path} (2 more with --strict)"


def test_a_sentence_is_told_once_for_each_model(cli, write):
    path = write(UNKNOWN.replace("y = Nope(x)", "t = Nope(x)  y = Nope(t)"))
    other = write(UNKNOWN, "other.onnxtxt")
    assert cli("check", path, other).out.count(law_of("NODE001")) == 2


def test_several_models(cli, relu, write, tmp_path):
    (tmp_path / "junk.onnx").write_bytes(b"junk")
    code, out, err = cli("check", relu, tmp_path / "junk.onnx", tmp_path / "none.onnx", write(UNKNOWN))
    assert (code, err) == (2, "")
    assert f"no problems found in {relu} (" in out
    assert f"{tmp_path}/junk.onnx: error: no ONNX model" in out
    assert f"{tmp_path}/none.onnx: error: there is no such file\n" in out
    assert "1 error found in" in out


def test_hostile_names_stay_on_their_line(cli, tmp_path):
    b = sabir.Builder(17, check=False)
    x = b.input("x", "float", [1])
    b.output(b.op("Bad\x1b[31m\n[red]", x, name="n\x07\n"), "y")
    sabir.save(b.model(), tmp_path / "hostile.onnx")
    for form in ("text", "github"):
        code, out, _ = cli("check", tmp_path / "hostile.onnx", "--select", "NODE", "--format", form)
        assert code == 1
        assert out.count("\n") == {"text": 3, "github": 1}[form]
        assert all(line.isprintable() for line in out.split("\n"))
        assert "[red]" in out
    out = cli("check", tmp_path / "hostile.onnx", "--format", "json").out
    assert "\x1b" not in out
    assert "\\u001b" in out or "\\\\x1b" in out


def test_text_that_is_no_utf8_is_a_finding(cli, tmp_path):
    (tmp_path / "m.onnx").write_bytes(UTF8)
    code, out, _ = cli("check", tmp_path / "m.onnx")
    assert code == 1
    assert ": model: error TEXT001: " in out


def test_a_text_that_cannot_be_read_is_shown(cli, tmp_path):
    (tmp_path / "m.onnxtxt").write_text("hello\x1b[31m (", encoding="utf-8")
    code, out, _ = cli("check", tmp_path / "m.onnxtxt")
    assert code == 2
    first, shown, mark = out.splitlines()
    assert first.startswith(f"{tmp_path}/m.onnxtxt: error: line 1, column ")
    assert shown.strip() == "hello [31m ("
    assert mark.strip() == "^"


# what counts


def test_warnings_count_when_strict(cli, write):
    path = write(ODD)
    code, out, _ = cli("check", path)
    assert (code, out) == (0, f"no problems found in {path} (4 more with --strict)\n")
    code, out, _ = cli("check", path, "--strict")
    assert code == 1
    assert out.endswith(f"4 warnings found in {path}\n")
    assert "GRAPH014" in out  # a rule of style
    assert "GRAPH014" in cli("check", path, "--select", "GRAPH014").out
    warning = write(ODD.replace("y = Relu", "y = other.Thing").replace('["" : 17]', '["" : 17, "other" : 1]'))
    assert cli("check", warning).code == 0
    assert cli("check", warning, "--strict", "--ignore", "style").code == 1


def rules_in(out):
    return sorted({line.split(": ")[2].split()[1] for line in out.splitlines() if ": graph" in line})


def test_rules_are_chosen_by_the_beginning_of_their_ids(cli, write):
    path = write(ODD.replace("y = Relu", "y = Nope"))
    assert rules_in(cli("check", path).out) == ["NODE001"]
    assert rules_in(cli("check", path, "--strict", "--ignore", "MODEL").out) == [
        "GRAPH014", "NAME001", "NAME002", "NODE001",
    ]  # fmt: skip
    assert rules_in(cli("check", path, "--select", "style", "--ignore", "MODEL").out) == [
        "GRAPH014", "NAME001", "NAME002",
    ]  # fmt: skip
    assert rules_in(cli("check", path, "--select", "NAME").out) == ["NAME001", "NAME002"]
    assert rules_in(cli("check", path, "--select", "NODE001, NAME002").out) == ["NAME002", "NODE001"]
    assert rules_in(cli("check", path, "--select", "NODE", "--select", "NAME001").out) == [
        "NAME001",
        "NODE001",
    ]
    assert rules_in(cli("check", path, "--ignore", "NAME").out) == ["NODE001"]
    assert cli("check", path, "--ignore", "NODE,NAME").code == 0


def test_types_can_be_left_out(cli, write):
    path = write(UNKNOWN.replace("Nope", "Relu").replace("float[1] y", "float[2] y"))
    assert "TYPE001" in cli("check", path).out
    code, out, err = cli("check", path, "--no-types")
    assert (code, err) == (0, "")
    assert out.startswith(f"no problems found in {path}")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--select", "GRAPHS"], "there is no rule 'GRAPHS'"),
        (["--select", "NODE0010"], "is it 'NODE010'?"),
        (["--ignore", ""], "there is no rule ''"),
        (["--fix"], "--fix takes one model, and -o FILE"),
        (["-o", "out.onnx"], "-o needs --fix"),
        (["--fix-unsafe", "NAME001"], "--fix takes one model, and -o FILE"),
        (["--fix", "--fix-unsafe", "GRAPH001", "-o", "out.onnx"], "'GRAPH001' is not a rule with an unsafe"),
        (["--fix-unsafe", "NAME", "-o", "out.onnx"], "those are GRAPH004, GRAPH012"),
    ],
)
def test_wrong_usage(cli, relu, options, expected):
    code, out, err = cli("check", relu, *options)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert expected in err


def test_several_models_cannot_be_saved_as_one(cli, relu, tmp_path):
    code, _, err = cli("check", relu, relu, "--fix", "-o", tmp_path / "o.onnx")
    assert code == 2
    assert "--fix takes one model" in err
    assert not (tmp_path / "o.onnx").exists()


# a rule that many places break


def many(count):
    nodes = "".join(f"v{i} = other.Thing{i}(x) " for i in range(count))
    header = '<ir_version: 8, opset_import: ["" : 17, "other" : 1]>'
    return f"{header} g (float[1] x) => (float[1] y) {{ {nodes} y = Relu(x) }}"


def test_a_rule_that_many_places_break_is_one_line(cli, write):
    path = write(many(30))
    first, law, last = cli("check", path).out.splitlines()
    assert first == (
        f"{path}: graph/node[0] 'Thing0': warning NODE007: 'other.Thing0' cannot be checked: Sabir"
        " does not know its domain; 29 more of NODE007, which --verbose lists"
    )
    assert law.startswith("   NODE007   ")
    assert last.startswith(f"30 warnings found in {path}")
    assert cli("check", path, "--verbose").out.count(": warning NODE007: ") == 30
    assert cli("check", write(many(3))).out.count(": warning NODE007: ") == 3


def test_programs_get_every_finding(cli, write):
    path = write(many(30))
    assert len(json.loads(cli("check", path, "--format", "json").out)) == 30
    assert cli("check", path, "--format", "github").out.count("\n") == 30


# for programs


def test_json_is_one_array_and_nothing_else(cli, relu, write, tmp_path):
    path = write(TWICE)
    code, out, err = cli("check", relu, path, tmp_path / "none.onnx", "--format", "json")
    assert code == 2
    assert err == f"{tmp_path}/none.onnx: error: there is no such file\n"
    first, second = json.loads(out)
    assert first == {
        "path": str(path),
        "rule": "GRAPH004",
        "severity": "error",
        "message": "the name 't' is defined twice in one graph",
        "hint": "rename one",
        "law": law_of("GRAPH004"),
        "source": "ir.txt",
        "location": "graph/node[1] 'Relu'/output[0] 't'",
        "steps": [
            {"kind": "graph", "index": None, "name": ""},
            {"kind": "node", "index": 1, "name": "Relu"},
            {"kind": "output", "index": 0, "name": "t"},
        ],
    }
    assert second["rule"] == "NODE001"
    assert json.loads(cli("check", relu, "--format", "json").out) == []


def test_github_gets_workflow_commands(cli, write, tmp_path):
    path = write(TWICE, "a,b: 100%.onnxtxt")
    escaped = f"{tmp_path}/a%2Cb%3A 100%25.onnxtxt"
    code, out, err = cli("check", path, tmp_path / "none.onnx", "--format", "github")
    assert (code, err) == (2, "")
    first, *_, last = out.splitlines()
    assert first == (
        f"::error file={escaped},title=GRAPH004::graph/node[1] 'Relu'/output[0] 't':"
        " the name 't' is defined twice in one graph (rename one)"
    )
    assert last == f"::error file={tmp_path}/none.onnx,title=unreadable::there is no such file"
    odd = write(ODD.replace("x.1", "50%,a:b"), "odd.onnxtxt")
    out = cli("check", odd, "--format", "github", "--select", "NAME").out
    assert out.startswith(
        f"::warning file={odd},title=NAME001::graph: the name of a value is not a C identifier: '50%25,a:b'"
    )


# repairs


def test_a_repaired_model_is_saved_and_told_of(cli, write, tmp_path):
    path, output = write(ODD), tmp_path / "out.onnx"
    code, out, err = cli("check", path, "--fix-unsafe", "NAME001,NAME002", "-o", output)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{path}: graph/input[0] 'x.1': repaired NAME001: renamed the model's input 'x.1' to 'x_1'",
        f"{path}: graph/node[0] 'n.1': repaired NAME002: renamed the node 'n.1' to 'n_1'",
        f"{path}: 1 name of inputs and outputs changed: callers of the model must use the new names",
        f"2 repairs made in {path}, saved as {output}",
        f"no problems found in {output} (2 more with --strict)",
    ]
    assert path.read_text() == ODD
    ran = Runner(sabir.load(output)).run({"x_1": np.float32([-1])})
    assert ran["y"].tolist() == [0]


def test_what_is_left_is_told_and_counts(cli, write, tmp_path):
    path, output = write(ODD.replace("y = Relu", "y = Nope")), tmp_path / "out.onnxtxt"
    code, out, _ = cli("check", path, "--fix", "--fix-unsafe", "NAME002", "-o", output)
    assert code == 1
    assert f"1 repair made in {path}, saved as {output}" in out
    assert out.endswith(f"1 error found in {output} (3 more with --strict)\n")
    assert '"x.1"' in output.read_text()


def test_a_model_may_be_repaired_in_its_place(cli, tmp_path):
    path = tmp_path / "m.onnx"
    b = sabir.Builder(17)
    x = b.input("x", "float", [40_000])
    b.output(
        b.Add(x, b.initializer("w.1", np.ones(40_000, np.float32)), name="n.1"), "y"
    )  # more than is read at once
    sabir.save(b.model(), path)
    assert cli("check", path, "--fix-unsafe", "NAME001", "-o", path).code == 0
    model = sabir.load(path)
    assert [v.name for v in model.graph.initializers] == ["w_1"]
    assert Runner(model).run({"x": np.zeros(40_000, np.float32)})["y"].sum() == 40_000
    assert os.listdir(tmp_path) == ["m.onnx"]  # ruff: ignore[os-listdir]  names alone


def test_only_repairs_that_hurt_nobody_are_made_unasked(cli, write, tmp_path):
    path, output = write(ODD.replace("ir_version: 8", "ir_version: 7")), tmp_path / "out.onnxtxt"
    assert f"0 repairs made in {path}" in cli("check", path, "--fix", "-o", output).out
    left = sabir.load(output)
    assert (left.graph.inputs[0].name, left.ir_version) == ("x.1", 7)
    out = cli("check", path, "--fix-unsafe", "MODEL007", "-o", output).out
    assert f"{path}: model: repaired MODEL007: raised ir_version from 7 to 8" in out
    assert "NAME" not in out


def test_many_repairs_of_one_rule_are_counted(cli, write, tmp_path):
    nodes = "".join(f'["n.{i}"] v{i} = Relu(x) ' for i in range(25))
    path = write(f'<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] v1) {{ {nodes} }}')
    out = cli("check", path, "--fix-unsafe", "NAME002", "-o", tmp_path / "o.onnx").out
    assert out.count("repaired NAME002") == 10
    assert f"{path}: and 15 more repairs of NAME002\n" in out
    assert f"25 repairs made in {path}" in out


@pytest.mark.parametrize("form", ["json", "github"])
def test_repairs_leave_standard_output_to_the_findings(cli, write, tmp_path, form):
    path = write(ODD)
    code, out, err = cli(
        "check", path, "--fix-unsafe", "NAME001", "-o", tmp_path / "o.onnx", "--format", form
    )
    assert (code, out) == (0, {"json": "[]\n", "github": ""}[form])
    assert "repaired NAME001" in err


def test_a_model_that_cannot_be_repaired_is_not_saved(cli, tmp_path, write):
    output = tmp_path / "o.onnx"
    (tmp_path / "m.onnx").write_bytes(UTF8)
    for path in (tmp_path / "none.onnx", tmp_path / "m.onnx"):
        code, out, _ = cli("check", path, "--fix", "-o", output)
        assert code == 2
        assert out.startswith(f"{path}: error: ")
        assert not output.exists()
    code, out, _ = cli("check", write(ODD), "--fix", "-o", tmp_path / "none" / "o.onnx")
    assert code == 2
    assert f"{tmp_path}/none" in out


def test_an_interrupted_repair_leaves_the_old_file(cli, monkeypatch, write, tmp_path):
    output = tmp_path / "o.onnx"
    output.write_bytes(b"old")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    assert cli("check", write(ODD), "--fix", "-o", output) == (130, "", "")
    assert output.read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["model.onnxtxt", "o.onnx"]  # ruff: ignore[os-listdir]  names alone


@pytest.mark.parametrize("options", [(), ("--verify",)])
def test_checksums_of_large_files_are_compared_with_verify(cli, monkeypatch, relu, options):
    verified = []
    monkeypatch.setattr(_check, "findings", lambda _, **arguments: verified.append(arguments["verify"]) or [])
    assert cli("check", relu, *options).code == 0
    assert verified == [bool(options)]
