"""`--operators`: operators of the user's own on the command line."""

import sys

import pytest

import sabir

pytestmark = pytest.mark.usefixtures("folder")

ROOM = """
import numpy as np
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output

T = Constraint("T", FLOATS)
double = Operator("Double", "org.acme", summary="Twice x.")
v1 = double.first(1, inputs=[Input("x", T)], outputs=[Output("y", T)])

@v1.infer
def infer(x, /):
    return x.with_known(None)

@v1.evaluate
def evaluate(x, /):
    return x + x

registry = STANDARD.with_operators(double)
several = [double]
nothing = 7
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "acme_room.py").write_text(ROOM)
    text = '<ir_version: 8, opset_import: ["" : 17, "org.acme" : 1]> g (float[2] x) => (float[2] y) { y = org.acme.Double (x) }'
    sabir.save(sabir.parse(text), tmp_path / "m.onnx")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("acme_room", None)


@pytest.mark.parametrize("name", ["registry", "double", "several"])
@pytest.mark.parametrize("command", ["check", "infer", "run"])
def test_a_model_with_operators_of_its_own(command, name, cli):
    code, printed, _ = cli(command, "m.onnx", "--operators", f"acme_room:{name}")
    assert code == 0
    assert "NODE007" not in printed


def test_without_them_the_error_says_how(cli):
    code, _, printed = cli("run", "m.onnx")
    assert code == 1
    assert "Known are those of ai.onnx, ai.onnx.ml" in printed
    assert "--operators" in printed


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("acme_room", "write it as MODULE:NAME"),
        ("nowhere_at_all:x", "nowhere_at_all cannot be imported"),
        ("acme_room:missing", "acme_room has nothing of that name"),
        ("acme_room:nothing", "is a int; it must be a Registry"),
    ],
)
def test_a_wrong_option_is_refused(option, message, cli):
    code, _, printed = cli("run", "m.onnx", "--operators", option)
    assert code == 1
    assert message in printed
