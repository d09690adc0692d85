import io
import sys

import pytest

import sabir
from sabir.serial import FORMATS

SUFFIXES = {"protobuf": ".onnx", "textproto": ".textproto", "json": ".json", "onnxtxt": ".onnxtxt"}


@pytest.mark.parametrize("origin", FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_from_each_format_to_each(cli, softmax, tmp_path, origin, name):
    source = tmp_path / f"in{SUFFIXES[origin]}"
    target = tmp_path / f"out{SUFFIXES[name]}"
    sabir.save(sabir.load(softmax), source)
    code, out, err = cli("convert", source, target)
    assert (code, out) == (0, "")
    assert err.startswith(f"saved {target} ({name}, ")
    assert err.endswith("B)\n" if target.stat().st_size >= 1024 else "bytes)\n")
    assert sabir.text(sabir.load(target)) == sabir.text(sabir.load(softmax))


def test_the_options_win_over_the_names(cli, softmax, tmp_path):
    source, target = tmp_path / "in.json", tmp_path / "out.json"
    source.write_bytes(softmax.read_bytes())
    assert cli("convert", source, target, "--from", "protobuf", "--format", "textproto").code == 0
    assert sabir.load(target, format="textproto").graph.name == "tiny"


def test_an_unknown_extension_needs_the_format(cli, fails, softmax, tmp_path):
    odd = tmp_path / "m.odd"
    assert "the extension '.odd' names no format" in fails("convert", softmax, odd)
    assert not odd.exists()
    assert cli("convert", softmax, odd, "--to", "json").code == 0
    back = tmp_path / "back.onnx"
    assert "--from and --to of `sabir convert`" in fails("convert", odd, back)
    assert cli("convert", odd, back, "--from", "json").code == 0
    assert back.read_bytes() == softmax.read_bytes()
    assert cli("convert", odd, odd, "--from", "json", "--to", "protobuf").code == 0
    assert odd.read_bytes() == softmax.read_bytes()


def test_every_command_refuses_an_unknown_extension(cli, fails, softmax, tmp_path):
    odd = tmp_path / "m.odd"
    odd.write_bytes(softmax.read_bytes())
    for command in ("show", "run", "infer", "text"):
        assert "the extension '.odd' names no format of a model. The known ones are .onnx" in fails(
            command, odd
        )
    assert "the extension '.odd' names no format" in cli("check", odd).out
    for command in (("infer", softmax), ("check", softmax, "--fix"), ("unpack", softmax), ("pack", softmax)):
        before = odd.read_bytes()
        assert "'.odd'" in fails(*command, "-o", odd)
        assert odd.read_bytes() == before


@pytest.mark.parametrize("name", FORMATS)
def test_through_standard_input_and_output(softmax, tmp_path, name, cli, monkeypatch):
    sent = sabir.dumps(sabir.load(softmax), format=name)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(sent), encoding="utf-8"))
    assert cli("convert", "-", tmp_path / "m.onnx").code == 0
    assert sabir.dumps(sabir.load(tmp_path / "m.onnx")) == softmax.read_bytes()
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", written)
    sabir.cli.main(["convert", str(softmax), "-", "--format", name])
    assert written.buffer.getvalue() == sent


def test_a_terminal_gets_no_binary(fails, softmax, monkeypatch):
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert "protobuf is binary, and is not written to a terminal" in fails("convert", softmax, "-")


def test_the_input_is_not_replaced_by_what_its_name_does_not_tell(cli, fails, softmax):
    before = softmax.read_bytes()
    message = fails("convert", softmax, softmax, "--format", "json")
    assert (
        "this would replace the input by a model in the format json, but its extension names protobuf"
        in message
    )
    assert softmax.read_bytes() == before
    assert cli("convert", softmax, softmax, "--format", "json", "--force").code == 0
    assert sabir.load(softmax, format="json").graph.name == "tiny"
    assert cli("convert", softmax, softmax, "--from", "json").code == 0
    assert softmax.read_bytes() == before


def test_a_format_that_there_is_not(fails, softmax):
    assert fails("convert", softmax, "-", "--format", "yaml").startswith("there is no format 'yaml'")
    assert fails("convert", softmax, "-", "--from", "jsn").endswith("is it 'json'?")


def test_nothing_is_written_where_something_is_wrong(fails, tmp_path):
    source, target = tmp_path / "m.json", tmp_path / "m.onnx"
    source.write_text('{"graph": {"node": [{"op": "Relu\x1b[31m"}]}}')
    assert "\x1b" not in fails("convert", source, target)
    assert not target.exists()


@pytest.mark.parametrize("suffix", SUFFIXES.values())
def test_every_command_takes_every_format(cli, softmax, tmp_path, suffix):
    path = tmp_path / f"m{suffix}"
    assert cli("infer", softmax, "-o", path).code == 0
    for command in ("show", "check", "infer", "text", "run"):
        code, _, err = cli(command, path)
        assert (code, err) == (0, "")
