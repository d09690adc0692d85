"""The pages of the operators, as they stand in docs/ and as `sabir op` shows them."""

import importlib.util
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sabir.base import SchemaError
from sabir.cli import app
from sabir.opsets import STANDARD
from sabir.reference import page
from sabir.reference._page import summarised
from sabir.schema import CLASSIC, FLOATS, sequences, tensors

ROOT = Path(__file__).parents[2]


def softmax():
    return STANDARD.find("", "Softmax")


def test_a_page_tells_signature_types_and_history():
    text = page(softmax())
    assert "output = Softmax(input, *, axis=-1)" in text
    assert "| `T` | float16, float, double; bfloat16 |" in text
    assert "- **11**: A negative `axis` counts from the end." in text
    assert "version 13 (others: 1, 11)" in text


def test_a_page_of_an_older_version():
    assert "output = Softmax(input, *, axis=1)" in page(softmax(), 12)
    with pytest.raises(SchemaError, match="Reshape came with opset 1; opset 0 has no Reshape"):
        page(STANDARD.find("", "Reshape"), 0)
    with pytest.raises(SchemaError, match="the newest opset is 28"):
        page(softmax(), 29)


def test_every_operator_has_a_page():
    for operator in STANDARD:
        for version in operator.versions:
            assert page(operator, version.since).startswith(f"# {operator.name}\n")


def test_sets_of_types_are_told_whole():
    assert (
        summarised(CLASSIC | sequences(FLOATS))
        == "every tensor of the first release; sequences of float16, float, double"
    )
    assert summarised(tensors("bool", "int8") | {"map(int64, float)"}) == "bool, int8, map(int64, float)"


def test_the_pages_in_docs_are_those_of_the_rooms():
    spec = importlib.util.spec_from_file_location("write_reference", ROOT / "tools" / "write_reference.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    found = {p.name: p.read_text("utf-8") for p in (ROOT / "docs" / "operators").glob("*.md")}
    stale = {name for name in {*found, *tool.pages()} if found.get(name) != tool.pages().get(name)}
    assert not stale, "run tools/write_reference.py"


def test_the_command():
    run = CliRunner().invoke
    assert "Softmax" in run(app, ["op"]).output
    assert "axis=1" in run(app, ["op", "Softmax", "--opset", "11"]).output
    assert run(app, ["op", "Softmaxx"]).exit_code != 0
