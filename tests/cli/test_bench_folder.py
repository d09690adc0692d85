"""`sabir bench FOLDER`: a table of all models, in the terminal and as a file; faulty models, and usage."""

import html.parser
import json
import subprocess
import types

import pytest

from sabir.cli import _bench_folder

PROGRAM = {"name": "compiled", "p50": 2e-3, "p90": 2e-3, "p99": 3e-3, "flops_per_second": 4e9, "of_peak": 0.5,
           "memory": 1 << 20, "seconds": [2e-3]}  # fmt: skip
FOUND = {
    "programs": [PROGRAM, {**PROGRAM, "name": "onnxruntime", "p50": 3e-3}],
    "ratio": 1.5, "flops": 8e6, "limits": None, "evaluated": 2, "assumed": [], "differences": [],
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of three models and a file of something else, with answers in the place of processes."""
    made = tmp_path / "mod|els"
    made.mkdir()
    for name in ("a.onnx", "b<i>.onnxtxt", "c.onnx", "notes.txt"):
        (made / name).write_bytes(b"")
    answers = {
        "a.onnx": (0, json.dumps(FOUND), ""),
        "b<i>.onnxtxt": (
            1,
            json.dumps({**FOUND, "ratio": 0.5, "differences": ["output y: 1 of 2 differ"]}),
            "",
        ),
        "c.onnx": (2, "", "note: x\nerror: c.onnx: no ONNX model: a | b\n"),
    }
    asked = []

    def run(command, **_):
        asked.append(command)
        code, out, err = answers[command[4].rpartition("/")[2]]
        return types.SimpleNamespace(returncode=code, stdout=out, stderr=err)

    monkeypatch.setattr(_bench_folder.subprocess, "run", run)
    return types.SimpleNamespace(path=made, asked=asked, answers=answers)


def test_the_table_of_a_folder(cli, folder):
    code, out, err = cli("bench", folder.path, "--against", "onnxruntime", "--dim", "N=3", "-d", "M=4")
    assert (code, err) == (1, "")
    assert [command[5:] for command in folder.asked] == [
        ["--dim", "N=3", "--dim", "M=4", "--against", "onnxruntime", "--json"]
    ] * 3
    lines = out.splitlines()
    assert lines[0] == f"{folder.path}: 3 models"
    assert lines[1].split() == [
        "model",
        "p50",
        "p99",
        "onnxruntime",
        "ratio",
        "GFLOP/s",
        "of",
        "peak",
        "memory",
        "evaluated",
    ]
    assert lines[2].split() == [
        "a.onnx",
        "2",
        "ms",
        "3",
        "ms",
        "3",
        "ms",
        "1.50",
        "4",
        "50%",
        "1.0",
        "MiB",
        "2",
    ]
    assert "   c.onnx: c.onnx: no ONNX model: a | b" in lines
    assert "   b<i>.onnxtxt: the results differ: output y: 1 of 2 differ" in lines
    assert "   geometric mean of 2 ratios: 0.87; the least: 0.50" in lines


def test_the_files_of_the_table(cli, folder, tmp_path):
    for suffix in ("md", "html", "json"):
        assert cli("bench", folder.path, "-o", tmp_path / f"table.{suffix}").out.endswith(f"table.{suffix}\n")
    text = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert text.startswith("# mod|els\n")
    assert "| a.onnx | 2 ms | 3 ms | 3 ms | 1.50 | 4 | 50% | 1.0 MiB | 2 |" in text
    assert "| c.onnx | c.onnx: no ONNX model: a \\| b |" in text
    written = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert written == json.loads(cli("bench", folder.path, "--json").out)
    assert [row["model"] for row in written] == ["a.onnx", "b<i>.onnxtxt", "c.onnx"]
    page = (tmp_path / "table.html").read_text(encoding="utf-8")
    tags = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, _: tags.append(tag)
    parser.feed(page)
    assert tags.count("tr") == 3 + 2
    assert not {"script", "i"} & set(tags)


def test_an_interrupt_leaves_the_table_of_what_was_measured(cli, folder, monkeypatch, tmp_path):
    before = _bench_folder.subprocess.run

    def run(command, **options):
        if command[4].endswith("c.onnx"):
            raise KeyboardInterrupt
        return before(command, **options)

    monkeypatch.setattr(_bench_folder.subprocess, "run", run)
    code, out, _ = cli("bench", folder.path, "-o", tmp_path / "table.json")
    assert code == 130
    assert f"{folder.path}: 2 of 3 models\n" in out
    assert len(json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))) == 2


def test_a_process_that_dies_is_a_row(cli, folder):
    folder.answers["c.onnx"] = (-9, "", "")
    assert "   c.onnx: the process ended with -9\n" in cli("bench", folder.path).out


def test_usage(fails, folder, tmp_path):
    assert fails("bench", folder.path, "--shape", "x=3").startswith("--shape names an input of one model")
    assert "the table is written as .html, .md, .json" in fails("bench", folder.path, "-o", "table.txt")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "there is no model in this folder" in fails("bench", empty)
    assert "-o writes the table of a folder" in fails("bench", folder.path / "a.onnx", "-o", "table.md")


def test_a_model_in_a_process_of_its_own(cli, write):
    model = write('<ir_version: 10, opset_import: ["" : 21]> g (float[3] x) => (float[3] y) { y = Relu (x) }')
    assert _bench_folder.subprocess.run is subprocess.run
    (row,) = json.loads(cli("bench", model.parent, "--rounds", "1", "--engine", "reference", "--json").out)
    assert row["model"] == "model.onnxtxt"
    assert row["programs"][0]["name"] == "reference"
