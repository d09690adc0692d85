from typing import NamedTuple

import numpy as np
import pytest

import sabir
from sabir.cli import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def cli(capsys):
    """Run the command line in this process."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def fails(cli):
    """Run the command line, and return the one message of its failure."""

    def run(*arguments, code=2):
        outcome = cli(*arguments)
        assert outcome.code == code
        assert outcome.err.startswith("error: ")
        assert outcome.err.endswith("\n")
        assert "Traceback" not in outcome.err
        assert "a bug in Sabir" not in outcome.err
        return outcome.err.removeprefix("error: ").rstrip("\n")

    return run


@pytest.fixture
def write(tmp_path):
    """Save a text as a model in the text syntax."""

    def save(text, name="model.onnxtxt"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return save


@pytest.fixture
def relu(tmp_path):
    """A model of one Relu on [N,3]."""
    b = sabir.Builder(17, name="tiny")
    x = b.input("x", "float", ["N", 3])
    b.output(b.Relu(x, name="clamp"), "y", "float", ["N", 3])
    path = tmp_path / "relu.onnx"
    sabir.save(b.model(producer_version="9"), path)
    return path


@pytest.fixture
def softmax(tmp_path):
    """A model with an initializer: Reshape, then Softmax."""
    b = sabir.Builder(17, name="tiny")
    x = b.input("x", "float", ["N", 2, 3])
    flat = b.Reshape(x, b.initializer("shape", np.array([-1, 6])), name="flatten")
    b.output(b.Softmax(flat, axis=1), "y")
    path = tmp_path / "softmax.onnx"
    sabir.save(b.model(), path)
    return path
