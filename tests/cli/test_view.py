"""`sabir view`."""

import json
import os
import re
import subprocess
import sys
import urllib.request
import webbrowser

import pytest

MODEL = (
    '<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y) { a = Sqrt (x)  y = Exp (a) }'
)


def layers_of(path):
    data = json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])
    return {layer["name"]: layer for layer in data["layers"]}


def test_a_page_beside_the_model(cli, write, tmp_path):
    path = write(MODEL)
    code, out, err = cli("view", path)
    assert (code, err) == (0, "")
    assert re.fullmatch(rf"saved {re.escape(str(tmp_path / 'model.html'))} \(2 nodes, [\d.]+ KiB\)\n", out)
    assert cli("view", path).out.startswith("replaced ")
    assert layers_of(tmp_path / "model.html") == {}


def test_findings_are_counted(cli, write, tmp_path):
    out = cli("view", write(MODEL.replace("Sqrt", "Sqqrt")), "-o", tmp_path / "page.html").out
    assert "2 nodes, 1 finding, " in out


def test_layers_of_runs(cli, write, tmp_path):
    other = write(MODEL.replace("Exp", "Neg"), "other.onnxtxt")
    page = tmp_path / "page.html"
    options = (
        "--profile",
        "--decisions",
        "--trace",
        "--diff",
        other,
        "--quantization",
        other,
        "--dim",
        "N=3",
    )
    code, _, err = cli("view", write(MODEL), "-o", page, *options)
    assert (code, err) == (0, "")
    layers = layers_of(page)
    assert list(layers) == ["time", "decisions", "trace", "error", "difference"]
    assert all(layer["values"] for layer in layers.values())


def test_assumed_sizes_are_said(cli, write):
    assert "note: " in cli("view", write(MODEL), "--trace").out


def test_the_page_opens(cli, write, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    cli("view", write(MODEL), "--open")
    assert opened == [(tmp_path / "model.html").as_uri()]


def test_a_name_that_is_no_page(fails, write, tmp_path):
    message = fails("view", write(MODEL), "-o", tmp_path / "model.onnx")
    assert "a page is an .html file" in message
    assert not (tmp_path / "model.onnx").exists()


def test_standard_input_needs_a_name(fails):
    assert (
        fails("view", "-") == "the model comes from standard input, so its page has no name; name it with -o"
    )


def test_a_page_that_cannot_be_written(fails, write, tmp_path):
    message = fails("view", write(MODEL), "-o", tmp_path / "missing" / "page.html")
    assert "there is no folder" in message


@pytest.mark.parametrize(
    "option", [["--trace"], ["-o", "page.html"], ["--diff", "other.onnx"], ["-d", "N=1"]]
)
def test_a_server_shows_models_as_they_are(fails, tmp_path, option):
    assert "--serve shows models as they are" in fails("view", tmp_path, "--serve", *option)


def test_options_without_a_run(fails, write):
    message = "nothing is run that --input, --shape or --threads would apply to; add --profile, --decisions, "
    assert fails("view", write(MODEL), "--shape", "x=3").startswith(message)
    assert fails("view", write(MODEL), "--port", "8000") == "--port is the port of a server; add --serve"


def test_a_server_of_a_file(fails, write):
    assert "this is no folder" in fails("view", write(MODEL), "--serve")


def test_serve(write, tmp_path):
    write(MODEL)
    command = [sys.executable, "-m", "sabir.cli", "view", str(tmp_path), "--serve"]
    # ruff: ignore[subprocess-without-shell-equals-true]  our own program
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        try:
            address = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())[0]
            with urllib.request.urlopen(address) as response:  # ruff: ignore[suspicious-url-open-usage]  our own server
                assert b"model.onnxtxt" in response.read()
        finally:
            process.terminate()
