"""`sabir opset`, and `--opset-document` of other commands."""

import json
import subprocess
import sys

import pytest

import sabir
from sabir.ir import OperatorEntry
from sabir.opsets import STANDARD
from sabir.syntax import parse_function

TWICE = '<domain: "com.acme", opset_import: ["" : 21]>\nTwice (x) => (y) {{ y = {} (x, x) }}'
MODEL = (
    '<ir_version: 10, opset_import: ["" : 21, "com.acme" : 3]>\n'
    "g (float[2] x) => (float[2] y) {{ y = com.acme.{} (x) }}"
)


@pytest.fixture
def document(tmp_path):
    """Save an operator set of com.acme."""

    def save(version, *entries, op="Add", name=None):
        path = tmp_path / (name or f"acme{version}.textproto")
        functions = [parse_function(TWICE.format(op))]
        sabir.OperatorSet("com.acme", version, list(entries), functions, ir_version=10).save(path)
        return path

    return save


TWO = (OperatorEntry("Twice", 1, "stable", "Adds."), OperatorEntry("Opaque", 3, "experimental"))


@pytest.mark.parametrize("name", ["set.onnx", "set.textproto", "set.json"])
def test_an_exported_set_has_the_operators_in_force(cli, tmp_path, name):
    path = tmp_path / name
    assert cli("opset", "export", "ai.onnx:13", "-o", path).code == 0
    found = sabir.OperatorSet.load(path)
    assert (found.domain, found.version, found.ir_version) == ("", 13, 7)
    assert found.entry("Relu").since == 13
    assert found.entry("Softmax").since == 13
    assert found.entry("Conv").since == 11
    names = {entry.name for entry in found.operators}
    assert not names & {"Upsample", "Scatter", "Gelu"}  # removed with 10 and 11, introduced with 20
    assert cli("check", path, "--strict").code == 0


def test_the_newest_set_of_a_domain(cli, tmp_path):
    cli("opset", "export", "ai.onnx.ml", "-o", tmp_path / "ml.onnx")
    assert sabir.OperatorSet.load(tmp_path / "ml.onnx").version == 5


def test_an_export_goes_to_standard_output():
    words = [sys.executable, "-m", "sabir.cli", "opset", "export", "ai.onnx.preview:1"]
    done = subprocess.run(words, capture_output=True, check=True)  # ruff: ignore[subprocess-without-shell-equals-true]  our own program
    assert [e.name for e in sabir.OperatorSet.loads(done.stdout).operators] == ["FlexAttention"]


def test_an_export_adds_what_documents_define(cli, tmp_path, document):
    path = tmp_path / "again.onnx"
    assert cli("opset", "export", "com.acme:2", "--opset-document", document(3, *TWO), "-o", path).code == 0
    found = sabir.OperatorSet.load(path)
    assert [(e.name, e.since) for e in found.operators] == [("Twice", 1)]
    assert [f.name for f in found.functions] == ["Twice"]


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("ai.onnx:29", 2, "opset 29 of 'ai.onnx' is not known; the newest known one is 28"),
        ("ai.onnx:0", 1, "a version of an operator set is at least 1"),
        ("ai.onnx:x", 2, "write it as DOMAIN:VERSION"),
        ("com.acme:1", 1, "no operators of domain 'com.acme' are known"),
    ],
)
def test_what_cannot_be_exported(fails, tmp_path, name, code, message):
    assert message in fails("opset", "export", name, "-o", tmp_path / "x.onnx", code=code)
    assert not (tmp_path / "x.onnx").exists()


def test_a_document_is_shown(cli, document):
    code, out, _ = cli("opset", "show", document(3, *TWO))
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "com.acme:3: 2 operators, 1 function, IR 10"
    assert lines[1].split() == ["Twice", "1", "stable", "function", "Adds."]
    assert lines[2].split() == ["Opaque", "3", "experimental"]


def test_a_document_as_json(cli, document):
    shown = json.loads(cli("opset", "show", document(3, *TWO), "--json").out)
    assert (shown["domain"], shown["version"], shown["ir_version"]) == ("com.acme", 3, "10")
    assert shown["operators"][0] == {"name": "Twice", "since_version": 1, "status": "stable", "doc": "Adds."}
    assert shown["functions"] == [{"name": "Twice", "overload": ""}]


def test_a_difference_with_right_versions(cli, document):
    old = document(3, *TWO)
    new = document(4, OperatorEntry("Twice", 4), OperatorEntry("New", 4), op="Mul")
    code, out, _ = cli("opset", "diff", old, new)
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["com.acme:3", "to", "com.acme:4:", "3", "changes"]
    assert lines[1:4] == [
        ["-", "Opaque", "3"],
        ["~", "Twice", "1", "->", "4", "since_version,", "function"],
        ["+", "New", "4"],
    ]
    assert out.endswith("the versions are right\n")


def test_a_difference_with_wrong_versions(cli, document):
    old, new = document(3, *TWO), document(4, *TWO, op="Mul")
    code, out, _ = cli("opset", "diff", old, new)
    assert code == 1
    assert "com.acme.Twice:1 is STABLE in com.acme:3, and its function differs in com.acme:4" in out
    assert out.endswith("the versions are wrong\n")
    code, out, _ = cli("opset", "diff", old, document(3, TWO[0], name="again.textproto"), "--json")
    shown = json.loads(out)
    assert code == 1
    assert not shown["valid"]
    assert (
        shown["problem"]
        == "two documents of com.acme:3 differ in the operator 'Opaque'; its version must be above 3"
    )
    assert shown["changes"] == [
        {
            "kind": "removed", "name": "Opaque", "old_since_version": 3, "new_since_version": None, "what": [],
            "problem": "",
        }
    ]  # fmt: skip


def test_what_cannot_be_compared(fails, tmp_path, document):
    old = document(3, *TWO)
    other = tmp_path / "other.onnx"
    sabir.OperatorSet("org.other", 3).save(other)
    assert "are operator sets of different domains" in fails("opset", "diff", old, other)
    assert "there is no such file" in fails("opset", "diff", old, tmp_path / "none.onnx")


def test_a_model_is_no_document(fails, relu):
    assert "this is a model, and no operator set" in fails("opset", "show", relu)


def test_a_document_is_no_model(fails, document):
    assert "this is an operator set, and no model" in fails("show", document(3, *TWO))


def test_the_group_alone_shows_its_help(cli):
    code, out, _ = cli("opset")
    assert code == 0
    assert all(f"\n  {name} " in out for name in ("export", "show", "diff"))


@pytest.mark.parametrize("command", ["export", "show", "diff"])
def test_the_help_of_each_command_has_examples(cli, command):
    out = cli("opset", command, "--help").out
    assert f"Examples:\n    sabir opset {command}" in out


def test_a_document_is_checked(cli, document):
    code, out, _ = cli("check", document(3, OperatorEntry("Twice", 4)))
    assert code == 1
    assert "OPSET005" in out
    assert cli("check", document(3, *TWO)).code == 0


def test_other_commands_take_documents(cli, document, write):
    path, sets = write(MODEL.format("Twice")), document(3, *TWO)
    assert "NODE007" in cli("check", path).out
    checked = cli("check", path, "--opset-document", sets)
    assert (checked.code, "NODE007" in checked.out) == (0, False)
    inferred = cli("infer", path, "--opset-document", sets)
    assert (inferred.code, "float[2]" in inferred.out) == (0, True)
    assert cli("run", path, "--opset-document", sets).code == 0
    code, _, err = cli("run", write(MODEL.format("Opaque")), "--opset-document", sets)
    assert code == 1
    assert "com.acme.Opaque:3 is declared by the document of the operator set com.acme:3" in err


def test_several_documents(cli, document, write):
    path = write(MODEL.format("Twice").replace('"com.acme" : 3', '"com.acme" : 4'))
    older, newer = document(3, *TWO), document(4, OperatorEntry("Twice", 4), op="Mul")
    options = ("--opset-document", older, "--opset-document", newer)
    assert cli("run", path, *options).code == 0
    assert cli("run", path, "--opset-document", older).code == 2
    code, _, err = cli("run", path, *options, "--opset-document", document(3, name="third.onnx"))
    assert (code, "two documents are the operator set com.acme:3" in err) == (1, True)


def test_models_are_compared_with_documents(cli, document, write):
    text = MODEL.format("Twice")
    old, new = write(text), write(text.replace('"com.acme" : 3', '"com.acme" : 4'), "new.onnxtxt")
    assert "operator" in cli("diff", old, new).out
    documents = document(3, *TWO), document(4, *TWO)
    code, out, _ = cli("diff", old, new, *(word for path in documents for word in ("--opset-document", path)))
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[:-1]] == ["none"]


def test_the_sets_of_the_standard_agree_with_one_another():
    """Each version of each domain is a valid successor of the one before."""
    for domain in STANDARD.domains:
        newest = STANDARD.newest_opset(domain)
        assert newest is not None
        sets = [STANDARD.operator_set(domain, version) for version in range(1, newest + 1)]
        assert not list(sabir.findings(sets, strict=True))
