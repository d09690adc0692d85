"""Numbers in the documentation: written from the code, compared with it, or dated."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import sabir
from sabir.cli import main

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# by tools/write_*.py and tools/run_onnx_tests.py
WRITTEN = {
    "rules.md", "oracles.md", "fallbacks.md", "inference.md", "conversions.md", "compat-tests.md",
}  # fmt: skip
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(p for p in (ROOT / "docs").glob("*.md") if p.name not in WRITTEN),
]
# a measured time, or a speed beside another one
MEASURED = re.compile(r"\b\d[\d.]* (?:ns|us|ms)\b|\btimes\s+as\s+(?:fast|slow)|\btimes\s+(?:faster|slower)\b")
FENCED = re.compile(r"^```.*?^```$|^    .*$", re.MULTILINE | re.DOTALL)


def names(requirements):
    return {re.match(r"[\w.-]+", line)[0] for line in requirements}


def test_the_readme_names_every_dependency():
    install = README.partition("## Install")[2].partition("\n## ")[0]
    rows = [line for line in install.splitlines() if line.startswith("| `pip")]
    for row, requirements in zip(
        rows, (PROJECT["dependencies"], PROJECT["optional-dependencies"]["cli"]), strict=True
    ):
        assert names(requirements) <= set(re.findall(r"`([\w-]+)`", row))
    assert re.search(r"figures are of \w+ 20\d\d", install)
    extras = {"data", "image", "plot", "progress", "ray", "tensorboard", "text"}
    assert extras <= set(re.findall(r"`([\w-]+)`", install))


def test_the_commands_of_the_readme_do_something(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    b = sabir.Builder(opset=21)
    x = b.input("x", "float", ["N", 1, 8, 8])
    b.output(b.Softmax(b.Flatten(b.GlobalAveragePool(b.Relu(x)))), "y")
    sabir.save(sabir.infer(b.model()), "model.onnx")
    block = README.partition("## From the command line")[2].partition("```sh\n")[2].partition("```")[0]
    for line in block.splitlines():
        words = shlex.split(line)[1:]
        assert main(words) == 0, line
        printed = capsys.readouterr().out
        if words[0] == "diff":
            assert " became " in printed
        elif words[0] == "convert" and "--opset" in words:
            assert sabir.load(words[1]).opset() != sabir.load(words[2]).opset() == int(words[-1])
        elif words[0] == "set-dims":
            assert sabir.load(words[1]).graph.inputs[0].type != sabir.load(words[-1]).graph.inputs[0].type


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_measurements_are_dated(page):
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    undated = [
        paragraph
        for paragraph in re.split(r"\n\n|\n(?=[-*|] )", text)
        if MEASURED.search(paragraph) and not re.search(r"\b20\d\d\b", paragraph)
    ]
    assert not undated


def test_gradients_are_compared_with_pytorch_for_so_many_operators():
    record = json.loads((ROOT / "tests" / "differentiation" / "torch.json").read_text(encoding="utf-8"))
    stated = re.search(
        r"- (\d+) operators, .* with PyTorch", (ROOT / "docs" / "gradients.md").read_text("utf-8")
    )
    compared = {case["name"].split()[0] for case in record["cases"]}
    assert int(stated[1]) == len(compared)
