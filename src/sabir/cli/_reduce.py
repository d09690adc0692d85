"""`sabir reduce`: the smallest model for which a command still fails."""

from __future__ import annotations

import shlex
import subprocess  # ruff: ignore[suspicious-subprocess-import]  it runs the command that the user names
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from sabir.base import FileError, counted, quote
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import (
    ModelPath,
    RequiredOutputPath,
    load_any,
    refuse_two_reports,
    report_saved,
    report_screen,
    save_any,
)
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._progress import reduction_line
from sabir.cli._usage import refuse
from sabir.debugging import Reduction
from sabir.serial import save

if TYPE_CHECKING:
    from sabir.cli._screen import Screen
    from sabir.ir import Model

EXAMPLES = (
    "sabir reduce model.onnx --failing 'sabir check' -o small.onnx",
    "sabir reduce model.onnx --failing 'python run.py {} --fast' --message 'Shape mismatch' -o small.onnx",
    "sabir reduce model.onnx --failing 'sabir compare {} --dim N=4' --timeout 60 -o small.onnx",
)
_PLACE = "{}"


class Command(NamedTuple):
    """A command that fails on a model: its words, and what counts as the failure.

    It fails if it ends with `code` (None for any but 0), and prints `message` if that is not empty.
    `timeout` is in seconds, None for no limit; a command that takes longer does not count as failing.
    """

    words: list[str]
    message: str
    timeout: float | None
    code: int | None = None

    def run(self, path: Path) -> tuple[int, str] | None:
        """Return the exit code of the command on a model and what it printed; None where it took too long.

        Raises FileError for a command that cannot be started.
        """
        words = [word.replace(_PLACE, str(path)) for word in self.words]
        if words == self.words:
            words.append(str(path))
        try:
            # ruff: ignore[subprocess-without-shell-equals-true]  the command that the user names, without a shell
            ended = subprocess.run(
                words, capture_output=True, check=False, timeout=self.timeout, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            return None
        except OSError as error:
            raise FileError(f"--failing: {quote(words[0])} cannot be started: {error.strerror}") from error
        return ended.returncode, (ended.stdout + ended.stderr).decode(errors="replace")

    def fails(self, path: Path) -> bool:
        """Return whether the command fails on a model as described."""
        ended = self.run(path)
        if ended is None or self.message not in ended[1]:
            return False
        return ended[0] != 0 if self.code is None else ended[0] == self.code


def reduce(
    model: ModelPath,
    *,
    failing: Annotated[
        str,
        typer.Option(
            "--failing",
            metavar="COMMAND",
            help="A command that fails on the model. It gets the path of a model in the place of {}, else as "
            "its last argument.",
        ),
    ],
    output: RequiredOutputPath,
    message: Annotated[
        str, typer.Option("--message", metavar="TEXT", help="The failure also prints this.")
    ] = "",
    timeout: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="A command that takes longer does not count as failing."),
    ] = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Find the smallest model for which a command still fails.

    A failure is the exit code that the command has for the whole model, if that is not 0, with --message also
    this text in what it prints. Nodes, outputs, weights, sizes and attributes go as long as the command fails
    in this way; what a node reads of one that is gone becomes an input. All models that are tried are valid,
    as far as the whole model is.

    An interrupt ends the search, and writes the smallest model so far. The command runs without a shell.
    """
    refuse_two_reports(output, as_json=as_json)
    words = shlex.split(failing)
    if not words:
        refuse("--failing: the command is empty")
    loaded, screen = load_any(model), report_screen(output)
    command = Command(words, message, timeout)
    with tempfile.TemporaryDirectory(prefix="sabir-reduce-") as folder, reduction_line() as progress:
        path = Path(folder) / "model.onnx"
        command = command._replace(code=_code_of(command, loaded, path))

        def fails(candidate: Model) -> bool:
            save(candidate, path)
            return command.fails(path)

        reduction = Reduction(loaded, fails, progress=progress, registry=registry_of(operators, documents))
        try:
            reduction.run()
        except KeyboardInterrupt:
            save_any(reduction.model, output)
            _report(screen, loaded, reduction, as_json=as_json, interrupted=True)
            raise
    save_any(reduction.model, output)
    _report(screen, loaded, reduction, as_json=as_json, interrupted=False)
    if not as_json:
        report_saved(screen, output)


def _code_of(command: Command, model: Model, path: Path) -> int:
    """Return the exit code of the command on the whole model; leaves the program if it is no failure."""
    save(model, path)
    ended = command.run(path)
    if ended is None:
        refuse("--failing: the command took longer than --timeout on the whole model")
    if ended[0] == 0:
        refuse(
            "--failing: the command ends with exit code 0 on the whole model, so there is nothing to reduce"
        )
    if command.message not in ended[1]:
        refuse(f"--message: the command does not print {quote(command.message)} on the whole model")
    return ended[0]


def _report(screen: Screen, model: Model, reduction: Reduction, *, as_json: bool, interrupted: bool) -> None:
    old, new = model.graph, reduction.model.graph
    if as_json:
        write_json(_as_json(model, reduction, interrupted=interrupted))
        return
    screen.line(f"{counted(reduction.trials, 'model')} tried{', then interrupted' if interrupted else ''}")
    rows = [
        ("nodes", f"{len(old):,}", "→", f"{len(new):,}"),
        ("initializers", f"{len(old.initializers):,}", "→", f"{len(new.initializers):,}"),
        ("inputs", f"{len(old.inputs):,}", "→", f"{len(new.inputs):,}"),
        ("outputs", f"{len(old.outputs):,}", "→", f"{len(new.outputs):,}"),
    ]
    screen.table(rows, "", "right", "", "right")


def _as_json(model: Model, reduction: Reduction, *, interrupted: bool) -> dict[str, Any]:
    def sizes(of: Model) -> dict[str, int]:
        graph = of.graph
        return {
            "nodes": len(graph),
            "initializers": len(graph.initializers),
            "inputs": len(graph.inputs),
            "outputs": len(graph.outputs),
        }

    return {
        "trials": reduction.trials,
        "interrupted": interrupted,
        "old": sizes(model),
        "new": sizes(reduction.model),
    }
