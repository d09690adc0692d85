"""Standard input and output as a model, and the exit codes, for every command."""

import io
import json
import sys

import numpy as np
import pytest

import sabir


@pytest.fixture
def piped(monkeypatch):
    """Run a command with bytes on standard input; returns the exit code and standard output as bytes."""

    def run(data, *arguments):
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            code = sabir.cli.main([str(a) for a in arguments])
        return code, out.buffer.getvalue()

    return run


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("show", "-"), b"Reshape   1"),
        (("check", "-"), b"no problems found in standard input"),
        (("infer", "-"), b"standard input: 2 of 2 values have a type"),
        (("run", "-", "--dim", "N=2"), b"y   float[2,6]"),
        (("text", "-"), b"y = Softmax"),
        (("convert", "-", "-", "--to", "onnxtxt"), b"y = Softmax"),
    ],
)
def test_a_model_on_standard_input(piped, softmax, command, shown):
    code, out = piped(softmax.read_bytes(), *command)
    assert code == 0
    assert shown in out


@pytest.mark.parametrize(
    "command", [("infer", "-"), ("check", "-", "--fix"), ("pack", "-"), ("convert", "-", "-")]
)
def test_a_model_on_standard_output_has_nothing_beside_it(piped, softmax, command):
    options = () if command[0] == "convert" else ("-o", "-")
    code, out = piped(softmax.read_bytes(), *command, *options)
    assert code == 0
    assert [n.op for n in sabir.loads(out).graph] == ["Reshape", "Softmax"]


def test_data_files_need_a_folder(piped, softmax):
    assert piped(softmax.read_bytes(), "unpack", "-", "-o", "-")[0] == 2


@pytest.mark.parametrize("command", ["show", "check", "infer", "run", "text", "pack", "unpack", "convert"])
def test_what_cannot_be_read_ends_with_2(cli, tmp_path, command):
    (tmp_path / "junk.onnx").write_bytes(b"PK\x03\x04")
    target = {"pack": ("-o", tmp_path / "o.onnx"), "unpack": ("-o", tmp_path / "o.onnx")}.get(command, ())
    target = (tmp_path / "o.onnx",) if command == "convert" else target
    assert cli(command, tmp_path / "junk.onnx", *target).code == 2
    assert cli(command, tmp_path / "none.onnx", *target).code == 2


BROKEN = '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[3] y) { y = Relu(x) }'


@pytest.mark.parametrize("command", ["check", "infer"])
def test_a_model_at_fault_ends_with_1(cli, write, command):
    assert cli(command, write(BROKEN)).code == 1


def test_several_models_in_one_report(cli, softmax, relu):
    shown = cli("show", softmax, relu).out
    assert f"== {softmax}" in shown
    assert f"== {relu}" in shown
    described = json.loads(cli("show", softmax, relu, "--json", "--nodes", "--weights").out)
    assert [m["operators"] for m in described] == [{"Reshape": 1, "Softmax": 1}, {"Relu": 1}]
    assert described[0]["weights"] == [
        {
            "name": "shape",
            "type": "int64[2]",
            "bytes": 16,
            "min": -1,
            "max": 6,
            "mean": 2.5,
            "zeros": 0,
            "nan": 0,
        }
    ]
    assert described[1]["node_list"][0]["operator"] == "Relu"
    types = json.loads(cli("infer", softmax, relu, "--json").out)
    assert types[0]["types"]["y"] == "float[N,6]"
    assert types[1]["findings"] == []


def test_json_of_every_command_that_reports(cli, softmax, relu, tmp_path):
    assert json.loads(cli("check", softmax, "--json").out) == []
    ran = json.loads(cli("run", relu, "--json", "--dim", "N=2").out)
    assert (ran["inputs"][0]["shape"], ran["outputs"][0]["type"]) == ([2, 3], "float[2,3]")
    assert (ran["assumed"], len(ran["seconds"])) == ([], 1)
    assert json.loads(cli("op", "Relu", "--json").out)[0]["since_version"] == 14
    assert {"name": "Relu", "domain": "ai.onnx"}.items() <= next(
        o for o in json.loads(cli("op", "--opset", "14", "--json").out) if o["name"] == "Relu"
    ).items()
    assert [r["id"] for r in json.loads(cli("rule", "GRAPH001", "--json").out)] == ["GRAPH001"]
    packed = json.loads(cli("pack", softmax, "-o", tmp_path / "p.onnx", "--json").out)
    assert packed["files"] == [{"path": f"{tmp_path}/p.onnx", "bytes": (tmp_path / "p.onnx").stat().st_size}]
    unpacked = json.loads(cli("unpack", softmax, "-o", tmp_path / "u.onnx", "--json").out)
    assert "the largest tensor, 'shape', has 16 bytes" in unpacked["note"]


def test_numbers_that_json_lacks_are_strings(cli, tmp_path):
    b = sabir.Builder(17)
    b.output(b.Add(b.input("x", "float", [2]), b.initializer("w", np.float32([np.nan, 1]))), "y")
    sabir.save(b.model(), tmp_path / "m.onnx")
    (shown,) = json.loads(cli("show", tmp_path / "m.onnx", "--weights", "--json").out)
    assert (shown["weights"][0]["nan"], shown["weights"][0]["mean"]) == (1, 1)


def test_the_shell_completes_rules_and_operators():
    from sabir.cli._completion import operator_names, rule_ids  # ruff: ignore[import-outside-top-level]  beside its use

    assert [name for name, _ in rule_ids("graph00")][:2] == ["GRAPH001", "GRAPH002"]
    assert [name for name, _ in rule_ids("NODE001,sty")] == ["NODE001,style"]
    assert [name for name, _ in operator_names("softm")] == ["Softmax", "SoftmaxCrossEntropyLoss"]
    assert "ai.onnx.ml.Scaler" in dict(operator_names("ai.onnx.ml.S"))


def test_pages_are_rendered_on_a_terminal_alone(cli, monkeypatch):
    assert "| `axis` | int |" in cli("op", "Softmax").out
    monkeypatch.setenv("TTY_COMPATIBLE", "1")  # what rich takes for a terminal
    rendered = cli("op", "Softmax").out
    assert "| `axis` |" not in rendered
    assert "axis" in rendered
