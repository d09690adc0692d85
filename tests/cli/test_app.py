import subprocess
import sys

import numpy as np
import pytest

import sabir
from sabir.cli import _app

COMMANDS = (
    "show",
    "summary",
    "view",
    "run",
    "compile",
    "profile",
    "bench",
    "check",
    "rule",
    "infer",
    "text",
    "convert",
    "differentiate",
    "train",
    "generate",
    "edit",
    "set-dims",
    "extract",
    "split",
    "outline",
    "add-outputs",
    "inputs",
    "rename",
    "merge",
    "prepend",
    "append",
    "quantize",
    "inline",
    "simplify",
    "rewrite",
    "diff",
    "compare",
    "reduce",
    "pack",
    "unpack",
    "op",
    "opset",
    "cache",
    "releases",
    "info",
    "demo",
)


def spawn(*arguments, **options):
    return subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own program
        [sys.executable, "-m", "sabir.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_version(cli):
    assert cli("--version") == (0, f"sabir {sabir.__version__}\n", "")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_names_every_command(cli, arguments):
    code, out, err = cli(*arguments)
    assert (code, err) == (0, "")
    assert all(f"\n  {name} " in out for name in COMMANDS)
    assert "..." not in out.split("Commands:")[1]  # each summary fits its line


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_examples(cli, command):
    code, out, _ = cli(command, "--help")
    assert code == 0
    assert f"Usage: sabir {command}" in out
    assert f"Examples:\n    sabir {command}" in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("show",), "missing argument 'MODEL'; see sabir show --help"),
        (("shw", "x"), "no such command 'shw'"),
        (("show", "--color", "x"), "no such option: --color"),
        (("run", "x", "--repeat", "0"), "'--repeat'"),
        (("run", "x", "--threads", "no"), "'--threads'"),
    ],
)
def test_wrong_usage_is_one_line(fails, arguments, expected):
    message = fails(*arguments, code=2)
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize("command", ["show", "run", "infer", "text"])
def test_what_is_no_model(fails, tmp_path, command):
    (tmp_path / "junk.onnx").write_bytes(b"PK\x03\x04 an archive")
    (tmp_path / "empty.onnx").write_bytes(b"")
    assert fails(command, tmp_path / "none.onnx") == f"{tmp_path}/none.onnx: there is no such file"
    assert fails(command, tmp_path) == f"{tmp_path}: this is a directory, not a file"
    assert fails(command, tmp_path / "junk.onnx").startswith(f"{tmp_path}/junk.onnx: no ONNX model")
    assert f"{tmp_path}/empty.onnx" in fails(command, tmp_path / "empty.onnx")


def test_a_bad_text_is_told_with_its_place(fails, write):
    path = write("g (float x) => (float y) {\n  y = Relu(x\n}")
    message = fails("show", path)
    assert message.startswith(f"{path}: line 3, column 1: ")
    latin = path.with_name("latin.txt")
    latin.write_bytes(b"caf\xe9")
    assert fails("show", latin).startswith(f"{latin}: line 1, column 4: ")


def test_a_name_in_an_error_cannot_reach_the_terminal(fails):
    assert fails("show", "\x1b[31mred.onnx") == "\\x1b[31mred.onnx: there is no such file"


def raising(error):
    def command(**_):
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            ZeroDivisionError("division by zero"),
            "a bug in Sabir, please report it: ZeroDivisionError: division by zero",
        ),
        (OSError(28, "No space left on device", "out.npy"), "out.npy: No space left on device"),
        (MemoryError(), "there is not enough memory for this"),
    ],
)
def test_what_nobody_expects_is_a_message_too(monkeypatch, capsys, error, expected):
    monkeypatch.setattr(_app, "_command", lambda: raising(error))
    monkeypatch.delenv("SABIR_TRACEBACK", raising=False)
    assert _app.main(["demo"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {expected}")
    monkeypatch.setenv("SABIR_TRACEBACK", "1")
    with pytest.raises(type(error)):
        _app.main(["demo"])


def test_an_interrupt_is_silent(monkeypatch, capsys):
    monkeypatch.setattr(_app, "_command", lambda: raising(KeyboardInterrupt()))
    assert _app.main(["demo"]) == 130
    assert capsys.readouterr() == ("", "")


def test_a_closed_pipe_is_silent(tmp_path):
    b = sabir.Builder(17)
    x = b.input("x", "float", [1])
    for _ in range(2500):  # more text than a pipe holds
        x = b.Relu(x)
    b.output(x, "y")
    sabir.save(b.model(), tmp_path / "long.onnx")
    for command in (["text"], ["show", "--nodes"]):
        with subprocess.Popen(  # ruff: ignore[subprocess-without-shell-equals-true]  our own program
            [sys.executable, "-m", "sabir.cli", *command, tmp_path / "long.onnx"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            process.stdout.read(10)
            process.stdout.close()
            assert process.stderr.read() == b""


def test_the_program_by_itself(relu):
    done = spawn("check", relu)
    assert (done.returncode, done.stderr) == (0, "")
    assert spawn("show", relu.with_name("none.onnx")).returncode == 2


def test_a_terminal_without_the_characters_still_gets_an_answer(relu, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = spawn("show", relu, "--nodes")
    assert (done.returncode, done.stderr) == (0, "")
    assert "x: float[N,3] \\u2192 y: float[N,3]" in done.stdout


def test_the_library_does_not_import_the_command_line():
    code = "import sabir, sys; assert not {'sabir.cli', 'typer', 'rich'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)  # ruff: ignore[subprocess-without-shell-equals-true]  our own program


def test_a_limit_is_raised_on_the_command_line(cli, fails, tmp_path):
    text = '<ir_version: 8, opset_import: ["" : 17]>\ng (int64[1] n) => (int64[M] y) { y = Expand(one, n) }'
    model = sabir.parse(text.replace("{ y", "<int64 one = {1}> { y").replace("y) <", "y)\n<"))
    sabir.save(model, tmp_path / "m.onnx")
    np.save(tmp_path / "n.npy", np.int64([1 << 20]))
    run = ("run", tmp_path / "m.onnx", "--input", f"n={tmp_path / 'n.npy'}")
    assert cli(*run).code == 0
    expected = fails(*run, "--limit", "elements=1000")
    assert (
        "raise it with `sabir.Limits(elements=1048576)`, or here with `--limit elements=1048576`" in expected
    )
    assert cli(*run, "--limit", "elements=1e7").code == 0
    assert cli(*run, "--limit", "elements=none").code == 0
    assert "is it 'elements'?" in fails(*run, "--limit", "element=3", code=2)
    assert "write a number such as 1e9, or none" in fails(*run, "--limit", "elements=many", code=2)
