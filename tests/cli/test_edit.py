"""`sabir edit`."""

import io
import json
import sys

import numpy as np
import pytest

import sabir
from sabir import ModelVersion
from sabir.proto import ModelProto
from support.externals import locations, message_in, model_of

HEADER = 'ir_version: 8, opset_import: ["" : 17]'


@pytest.fixture
def model(write):
    """Save a model with more fields in its header."""

    def save(header="", name="m.onnxtxt"):
        fields = f"{HEADER}, {header}" if header else HEADER
        return write(f"<{fields}> g (float[2] x) => (float[2] y) {{ y = Relu(x) }}", name)

    return save


@pytest.fixture
def edited(cli, tmp_path):
    """Edit a model, and return the new one."""

    def run(path, *options):
        target = tmp_path / "edited.onnx"
        code, out, err = cli("edit", path, *options, "-o", target)
        assert (code, err) == (0, "")
        assert out.endswith(f"saved {target} ({target.stat().st_size} bytes)\n")
        return sabir.load(target)

    return run


@pytest.fixture
def refused(fails, tmp_path):
    """Edit a model, which fails and writes nothing; returns the message."""

    def run(path, *options, code=2):
        before = sorted(tmp_path.iterdir()), path.read_bytes()
        messages = {fails("edit", path, *options, "-o", to, code=code) for to in (tmp_path / "o.onnx", path)}
        assert (sorted(tmp_path.iterdir()), path.read_bytes()) == before
        (message,) = messages
        return message

    return run


def test_every_edit(model, edited, tmp_path):
    (tmp_path / "d.md").write_bytes("\ufeff# Größe\r\n".encode())
    new = edited(
        model('model_version: 7, domain: "old", metadata_props: ["a": "1", "b": "2"]'),
        "--model-version", "1.2.345", "--domain", "org.acme", "--author", "Ada", "--author", " Grace ",
        "--set", "model_license=MIT", "--set", "eq=a=b", "--set", "b=3", "--unset", "a",
        "--doc-file", tmp_path / "d.md", "--producer", "tool", "--producer-version", "9", "--graph-name", "main",
    )  # fmt: skip
    assert (new.version, new.semver) == (0x0001000200000159, ModelVersion(1, 2, 345))
    assert (new.domain, new.doc, new.graph.name) == ("org.acme", "# Größe\r\n", "main")
    assert (new.producer_name, new.producer_version) == ("tool", "9")
    assert new.metadata == {"b": "3", "model_license": "MIT", "eq": "a=b", "model_author": "Ada, Grace"}
    assert [n.op for n in new.graph] == ["Relu"]


def test_the_report(cli, model, tmp_path):
    path = model('model_version: 281483566645593, doc_string: "Old"')
    target = tmp_path / "n.onnx"
    edit = ("edit", path, "--bump", "minor", "--set", "k=", "--doc", "", "-o", target)
    assert cli(*edit).out == (
        f"{path}\n"
        "   version      1.2.345 (281483566645593) → 1.3.0 (281487861612544)\n"
        "   doc          Old → (none)\n"
        "   metadata k   (none) → (empty)\n"
        f"saved {target} ({target.stat().st_size} bytes)\n"
    )
    assert json.loads(cli(*edit, "--json").out) == {
        "path": str(path),
        "saved": str(target),
        "changes": [
            {"field": "version", "key": None, "old": 0x0001000200000159, "new": 0x0001000300000000},
            {"field": "semver", "key": None, "old": "1.2.345", "new": "1.3.0"},
            {"field": "doc", "key": None, "old": "Old", "new": ""},
            {"field": "metadata", "key": "k", "old": None, "new": ""},
        ],
        "findings": [],
        "notes": [],
    }


def test_what_the_model_has_already(cli, model, tmp_path):
    path = model('domain: "org.acme"')
    out = cli("edit", path, "--domain", "org.acme", "-o", tmp_path / "n.onnx").out
    assert "   nothing changes: the model has these values\n" in out
    assert sabir.load(tmp_path / "n.onnx").domain == "org.acme"


@pytest.mark.parametrize(
    ("old", "options", "new"),
    [
        (0, ("--model-version", "7"), 7),
        (0, ("--model-version", "4294967295"), 4294967295),
        (7, ("--model-version", "0"), 0),
        (0x0001000200000159, ("--bump", "major"), 0x0002000000000000),
        (0x0001000200000159, ("--bump", "patch"), 0x000100020000015A),
        (0x7FFF000000000001, ("--bump", "major"), -0x8000000000000000),
        (7, ("--bump", "patch"), 8),
        (0, ("--bump", "patch"), 1),
    ],
)
def test_versions(model, edited, old, options, new):
    assert edited(model(f"model_version: {old}"), *options).version == new


@pytest.mark.parametrize(
    ("old", "options", "message"),
    [
        (7, ("--bump", "minor"), "is the simple number 7, which has no minor part; --model-version 1.0.0"),
        (0, ("--bump", "major"), "is the simple number 0, which has no major part"),
        (4294967295, ("--bump", "patch"), "4294967295, is the largest simple number"),
        (-1, ("--bump", "minor"), "the minor version of 65535.65535.4294967295 is at its maximum, 65535"),
        (0, ("--bump", "middle"), "'middle' is not one of 'major', 'minor', 'patch'"),
        (0, ("--model-version", "1.2"), "'1.2' is not a semantic version"),
        (0, ("--model-version", "1.2.3-rc1"), "leave out '-rc1'"),
        (0, ("--model-version", "0.0.7"), "or the simple number 7"),
        (0, ("--model-version", "281483566645593"), "it means 1.2.345; write 1.2.345"),
        (0, ("--model-version", "9" * 9000), "a signed 64-bit number"),
        (0, ("--model-version", "1.0.0", "--bump", "major"), "both set the version"),
    ],
)
def test_versions_that_are_refused(model, refused, old, options, message):
    assert message in refused(model(f"model_version: {old}"), *options)


def test_a_bump_of_a_simple_number_has_a_note(cli, model, tmp_path):
    path = model("model_version: 7")
    assert "note: the version is a simple number, which has no parts; --bump patch added one to it\n" in (
        cli("edit", path, "--bump", "patch", "-o", tmp_path / "n.onnx").out
    )
    assert "note" not in cli("edit", path, "--model-version", "8", "-o", tmp_path / "n.onnx").out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "there is nothing to edit; see sabir edit --help"),
        (("--set", "k"), "--set k: write --set KEY=VALUE"),
        (("--set", "=v"), "a metadata key must not be empty"),
        (("--unset", ""), "a metadata key must not be empty"),
        (("--set", "k=1", "--set", "k=2"), "the metadata key 'k' is set or removed twice"),
        (("--set", "k=1", "--unset", "k"), "the metadata key 'k' is set or removed twice"),
        (("--author", "A", "--set", "model_author=B"), "'model_author' is set or removed twice"),
        (("--author", " "), "--author needs a name; --unset model_author removes the authors"),
        (("--unset", "model_licence"), "has no key 'model_licence'; is it 'model_license'?"),
        (("--unset", "zzz"), "has no key 'zzz'; it has 2 keys: 'model_license', 'run'"),
        (("--graph-name", ""), "GRAPH001: the graph has no name"),
        (("--doc", "a", "--doc-file", "b.md"), "both set the documentation"),
        (("--doc-file", "missing.md"), "missing.md: No such file or directory"),
        (("--domain", "caf\udce9"), "'caf\\udce9' is not UTF-8"),
        (("--set", "k=\udce9"), "'\\udce9' is not UTF-8"),
        (("--set", "\udce9=k"), "'\\udce9' is not UTF-8"),
    ],
)
def test_edits_that_are_refused(model, refused, options, message):
    path = model('metadata_props: ["model_license": "MIT", "run": "1"]')
    assert message in refused(path, *options)


def test_nothing_to_remove(model, refused):
    assert refused(model(), "--unset", "k").endswith("no metadata, so there is no key 'k' to remove")


def test_documentation_that_is_no_text(model, refused, tmp_path):
    (tmp_path / "d.md").write_bytes(b"caf\xe9")
    assert "d.md: the documentation is not UTF-8" in refused(model(), "--doc-file", tmp_path / "d.md")


def test_a_key_that_the_file_has_twice(relu, refused, edited):
    message = message_in(relu)
    for key, value in (("k", "1"), ("other", "2"), ("k", "3")):
        message.metadata_props.add(key=key, value=value)
    relu.write_bytes(message.SerializeToString())
    for option in (("--set", "k=4"), ("--unset", "k")):
        assert "META001: the metadata key 'k' occurs twice" in refused(relu, *option, code=1)
    new = ModelProto.FromString(sabir.dumps(edited(relu, "--set", "other=4")))
    assert [(e.key, e.value) for e in new.metadata_props] == [("k", "1"), ("other", "4"), ("k", "3")]


def test_the_checker_s_findings_about_an_edit(cli, model, tmp_path):
    path, target = model(), tmp_path / "n.onnx"
    edit = ("edit", path, "--domain", "acme", "--doc", "A <b>bold</b> word.", "-o", target)
    code, out, _ = cli(*edit)
    assert code == 0
    assert "model: warning MODEL009: 'acme' is not a reverse domain name (name one such as" in out
    assert "model: warning META003: the documentation has HTML: '<b>'" in out
    assert sabir.load(target).domain == "acme"
    found = json.loads(cli(*edit, "--json").out)["findings"]
    assert [f["rule"] for f in found] == ["META003", "MODEL009"]
    out = cli("edit", target, "--bump", "patch", "-o", target).out
    assert "warning" not in out  # these fields are not edited


@pytest.mark.parametrize(
    ("entry", "note"),
    [
        ("model_licence=MIT", "'model_licence' is not a key of the standard; is it 'model_license'?"),
        ("Image.BitmapPixelFormt=Rgb8", "is it 'Image.BitmapPixelFormat'?"),
        (
            "Image.ColorSpaceGamma=2.2",
            "'2.2' is not a value of Image.ColorSpaceGamma; those are Linear, SRGB",
        ),
        ("Image.NominalPixelRange=0..1", "Normalized_0_1"),
        ("Image.BitmapPixelFormat=rgb8", ""),
        ("image.colorspacegamma=SRGB", ""),
        ("model_license=anything", ""),
        ("model_name=resnet", ""),
        ("org.acme.run=1", ""),
    ],
)
def test_standard_metadata(cli, model, tmp_path, entry, note):
    out = cli("edit", model(), "--set", entry, "-o", tmp_path / "n.onnx").out
    assert ("note: " in out) == bool(note)
    assert note in out


def test_the_model_itself_is_replaced(cli, softmax):
    before = sabir.load(softmax)
    assert cli("edit", softmax, "--model-version", "1.0.0", "-o", softmax).code == 0
    after = sabir.load(softmax)
    assert str(after.semver) == "1.0.0"
    after.version = before.version
    assert sabir.dumps(after) == sabir.dumps(before)


def test_external_data_stays(cli, tmp_path):
    path = tmp_path / "m.onnx"
    array = np.arange(1000, dtype=np.float32)
    sabir.save(model_of(a=array), path, external="w.data")
    data = (tmp_path / "w.data").stat()
    for target in (tmp_path / "n.onnx", path):
        assert cli("edit", path, "--domain", "org.acme", "-o", target).code == 0
        assert locations(sabir.load(target)) == ["w.data"]
        assert sabir.load(target).domain == "org.acme"
    now = (tmp_path / "w.data").stat()
    assert (now.st_ino, now.st_mtime_ns, now.st_size) == (data.st_ino, data.st_mtime_ns, data.st_size)
    elsewhere = tmp_path / "folder" / "m.onnx"
    elsewhere.parent.mkdir()
    assert cli("edit", path, "--domain", "org.acme", "-o", elsewhere).code == 0
    assert locations(sabir.load(elsewhere)) == []
    assert np.array_equal(sabir.load(elsewhere).graph.initializers["a"].numpy(), array)


def test_streams(cli, fails, relu, monkeypatch, tmp_path):
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(relu.read_bytes()), encoding="utf-8"))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", written)
        assert sabir.cli.main(["edit", "-", "--domain", "org.acme", "-o", "-"]) == 0
    assert sabir.loads(written.buffer.getvalue()).domain == "org.acme"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"From a pipe."), encoding="utf-8"))
    assert cli("edit", relu, "--doc-file", "-", "-o", tmp_path / "n.onnx").code == 0
    assert sabir.load(tmp_path / "n.onnx").doc == "From a pipe."
    assert "only one of MODEL and --doc-file" in fails(
        "edit", "-", "--doc-file", "-", "-o", tmp_path / "n.onnx"
    )
    assert "--json writes the report" in fails("edit", relu, "--domain", "a.b", "-o", "-", "--json")


def test_files_that_are_no_models(fails, relu, tmp_path):
    (tmp_path / "junk.onnx").write_bytes(b"PK\x03\x04")
    edit = ("--bump", "patch", "-o", tmp_path / "o.onnx")
    assert "no ONNX model" in fails("edit", tmp_path / "junk.onnx", *edit)
    assert "there is no such file" in fails("edit", tmp_path / "none.onnx", *edit)
    assert "names no format" in fails("edit", relu, "--bump", "patch", "-o", tmp_path / "o.odd")
    assert "missing option '--output'" in fails("edit", relu, "--bump", "patch")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["junk.onnx", "relu.onnx"]


def test_texts_of_a_model_stay_texts(cli, model, tmp_path):
    path = model('metadata_props: ["k": "\\u001b[31mred"]')
    edit = ("edit", path, "--set", "k=\x1b[2J", "--doc", "a\nb\x07", "--graph-name", "\u202ex")
    out = cli(*edit, "-o", tmp_path / "n.onnx").out
    assert all(line.isprintable() for line in out.split("\n"))
    assert sabir.load(tmp_path / "n.onnx").doc == "a\nb\x07"
