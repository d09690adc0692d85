"""No text of a model can move the cursor, recolour a terminal, hide or fake a line."""

import os
import re
import subprocess
import sys

import pytest

import sabir
from hostile.case import FLOAT, graph, info, model, node
from hostile.cases.texts import PLACES
from sabir.cli import main

# the models import less than they use, which a run reports by a warning
pytestmark = pytest.mark.filterwarnings("ignore::sabir.SabirWarning")

EVIL = "x\x1b[2J\x1b]0;title\x07\r\n::error ::fake\u202egnp\x9b31m\u2028\u2066\x00\x7fé"
FORBIDDEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
COMMANDS = {
    "show": ("show", "--nodes", "--tree"), "check": ("check", "--strict"), "check as for GitHub": ("check", "--strict", "--format", "github"),
    "infer": ("infer",), "strict": ("infer", "--strict"), "run": ("run",), "text": ("text",),
}  # fmt: skip


def evil_models():
    """Return models with an evil text in each place that has one, by place."""
    found = {}
    for place, put in PLACES.items():
        made = model()
        put(made, EVIL)
        found[place] = made
    whole = graph(EVIL)
    info(whole.input, EVIL, [EVIL, 2])
    info(whole.output, "y" + EVIL, [EVIL, 2])
    node(whole, "Relu", [EVIL], ["y" + EVIL], name=EVIL, doc_string=EVIL)
    found["a model that runs"] = model(whole)
    texts = graph()
    info(texts.output, "y", [1], 8)
    held = node(texts, "Constant", [], ["y"]).attribute.add(name="value_strings", type=8)
    held.strings.append(EVIL.encode())
    found["an output"] = model(texts)
    wrong = graph()
    info(wrong.input, "x", [EVIL], FLOAT)
    info(wrong.output, "y", ["M"], 7)
    node(wrong, "Relu", domain=EVIL)
    node(wrong, EVIL, ["x"], ["z"])
    found["calls of nothing"] = model(wrong)
    return found


MODELS = evil_models()


@pytest.fixture(params=MODELS, ids=str)
def evil(request, tmp_path):
    path = tmp_path / "evil.onnx"
    path.write_bytes(MODELS[request.param].SerializeToString())
    return path


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_no_command_prints_what_does_not_print(evil, command, capsys, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    if command == "text":  # a pipe gets the text as it is
        monkeypatch.setattr("sabir.cli._screen.Screen.is_terminal", True)
    name, *options = COMMANDS[command]
    main([name, str(evil), *options])
    told = capsys.readouterr()
    assert FORBIDDEN.findall(told.out + told.err) == []


@pytest.mark.parametrize("command", ["show", "check", "check as for GitHub", "infer", "run"])
def test_no_text_fakes_a_line(evil, command, capsys):
    name, *options = COMMANDS[command]
    main([name, str(evil), *options])
    told = capsys.readouterr()
    assert [line for line in (told.out + told.err).splitlines() if line.startswith("::error ::fake")] == []


def test_no_error_or_finding_has_control_characters(evil):
    messages = []
    for work in (
        sabir.check,
        sabir.load,
        lambda p: sabir.evaluate(sabir.load(p), {}),
        lambda p: sabir.infer(sabir.load(p), strict=True),
    ):
        try:
            work(evil)
        except sabir.SabirError as error:
            messages.append(str(error))
    try:
        messages += [str(f) for f in sabir.findings(evil)]
    except sabir.SabirError as error:
        messages.append(str(error))
    assert [m for m in messages if FORBIDDEN.search(m)] == []


def test_reprs_print(evil):
    try:
        loaded = sabir.load(evil)
    except sabir.WireError:
        return
    shown = [repr(loaded), *map(repr, loaded.functions), *map(repr, loaded.graph)]
    for value in loaded.graph.defined():
        shown += [repr(value), repr(value.type)]
    assert [s for s in shown if not s.isprintable()] == []


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(
    "command",
    [("show",), ("check", "--strict"), ("text",), ("convert", "-", "--format", "onnxtxt")],
    ids=" ".join,
)
def test_on_a_real_terminal(tmp_path, command):
    path = tmp_path / "evil.onnx"
    path.write_bytes(MODELS["a model that runs"].SerializeToString())
    name, *options = command
    ours, theirs = os.openpty()
    done = subprocess.Popen(  # ruff: ignore[subprocess-without-shell-equals-true]  our own program
        [sys.executable, "-m", "sabir.cli", name, str(path), *options],
        stdout=theirs, stderr=theirs, env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 1 << 16):
            shown += part
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    done.wait()
    text = shown.decode().replace("\r\n", "\n")
    assert EVIL[:1] + "\\x1b[2J" in text
    assert FORBIDDEN.findall(text) == []
