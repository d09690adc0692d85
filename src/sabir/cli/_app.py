"""The program: its commands, and the place where errors become messages and exit codes."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import sys
import warnings
from contextvars import copy_context
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from sabir import __version__
from sabir.base import (
    CheckError,
    ConversionError,
    EvaluationError,
    InferenceError,
    LimitError,
    SabirError,
    SchemaError,
)
from sabir.cli import (
    _bench,
    _cache,
    _check,
    _compare_runs,
    _compile,
    _convert,
    _demo,
    _diff,
    _differentiate,
    _edit,
    _extract,
    _generate,
    _infer,
    _info,
    _inline,
    _merge,
    _op,
    _opset,
    _outline,
    _pack,
    _ports,
    _processing,
    _profile,
    _quantize,
    _reduce,
    _releases,
    _rename,
    _rewrite,
    _rule,
    _run,
    _set_dims,
    _show,
    _simplify,
    _summary,
    _text,
    _train,
    _view,
)
from sabir.cli._mistakes import usage_message
from sabir.cli._screen import plain
from sabir.cli._usage import FAULTY, UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INTERRUPTED = 130
_MODEL_ERRORS = (CheckError, ConversionError, EvaluationError, InferenceError, SchemaError)
_DEBUG = "SABIR_TRACEBACK"  # if it is set, errors end in tracebacks


def _examples(lines: Sequence[str]) -> str:
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def _command_name(command: Callable[..., None]) -> str:
    """Return the name of a command; that of `compare` is a function of its module already."""
    return "compare" if command is _compare_runs.compare_runs else command.__name__.replace("_", "-")


app = typer.Typer(
    name="sabir",
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command, examples in (
    (_show.show, _show.EXAMPLES),
    (_summary.summary, _summary.EXAMPLES),
    (_view.view, _view.EXAMPLES),
    (_run.run, _run.EXAMPLES),
    (_compile.compile, _compile.EXAMPLES),
    (_profile.profile, _profile.EXAMPLES),
    (_bench.bench, _bench.EXAMPLES),
    (_check.check, _check.EXAMPLES),
    (_rule.rule, _rule.EXAMPLES),
    (_infer.infer, _infer.EXAMPLES),
    (_text.text, _text.EXAMPLES),
    (_convert.convert, _convert.EXAMPLES),
    (_inline.inline, _inline.EXAMPLES),
    (_simplify.simplify, _simplify.EXAMPLES),
    (_rewrite.rewrite, _rewrite.EXAMPLES),
    (_differentiate.differentiate, _differentiate.EXAMPLES),
    (_train.train, _train.EXAMPLES),
    (_generate.generate, _generate.EXAMPLES),
    (_edit.edit, _edit.EXAMPLES),
    (_set_dims.set_dims, _set_dims.EXAMPLES),
    (_extract.extract, _extract.EXTRACT_EXAMPLES),
    (_extract.split, _extract.SPLIT_EXAMPLES),
    (_outline.outline, _outline.EXAMPLES),
    (_ports.add_outputs, _ports.OUTPUTS_EXAMPLES),
    (_ports.inputs, _ports.INPUTS_EXAMPLES),
    (_rename.rename, _rename.EXAMPLES),
    (_merge.merge, _merge.EXAMPLES),
    (_processing.prepend, _processing.PREPEND_EXAMPLES),
    (_processing.append, _processing.APPEND_EXAMPLES),
    (_quantize.quantize, _quantize.EXAMPLES),
    (_diff.diff, _diff.EXAMPLES),
    (_compare_runs.compare_runs, _compare_runs.EXAMPLES),
    (_reduce.reduce, _reduce.EXAMPLES),
    (_pack.pack, _pack.PACK_EXAMPLES),
    (_pack.unpack, _pack.UNPACK_EXAMPLES),
    (_op.op, _op.EXAMPLES),
    (_releases.releases, _releases.EXAMPLES),
    (_info.info, _info.EXAMPLES),
    (_demo.demo, _demo.EXAMPLES),
):
    app.command(_command_name(command), epilog=_examples(examples))(command)

_documents = typer.Typer(rich_markup_mode=None)
for command, examples in (
    (_opset.export, _opset.EXPORT_EXAMPLES),
    (_opset.show, _opset.SHOW_EXAMPLES),
    (_opset.diff, _opset.DIFF_EXAMPLES),
):
    _documents.command(epilog=_examples(examples))(command)
_documents.callback(invoke_without_command=True)(_opset.opset)
app.add_typer(_documents, name="opset", epilog=_examples(_opset.EXAMPLES))

_entries = typer.Typer(rich_markup_mode=None)
for command, examples in (
    (_cache.show, _cache.SHOW_EXAMPLES),
    (_cache.verify, _cache.VERIFY_EXAMPLES),
    (_cache.clear, _cache.CLEAR_EXAMPLES),
):
    _entries.command(epilog=_examples(examples))(command)
_entries.callback(invoke_without_command=True)(_cache.cache)
app.add_typer(_entries, name="cache", epilog=_examples(_cache.EXAMPLES))


def _version(asked: bool) -> None:  # ruff: ignore[boolean-type-hint-positional-argument]  typer calls it so
    if asked:
        typer.echo(f"sabir {__version__}")
        raise typer.Exit


@app.callback(
    invoke_without_command=True,
    epilog=_examples(("sabir demo", "sabir show model.onnx", "sabir run model.onnx --dim N=4")),
)
def sabir(
    context: typer.Context,
    *,
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Inspect, check, run, edit, convert, quantize, differentiate and train ONNX models; generate text."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default on the program's arguments; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # names in a model may have characters that the terminal's encoding lacks
            stream.reconfigure(errors="backslashreplace")
    words = None if arguments is None else list(arguments)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        return _exit_code(words)


@functools.cache
def _command() -> Any:
    """Return the parser of all commands; a caller that runs several in one process builds it once."""
    return get_command(app)


def _exit_code(words: list[str] | None) -> int:
    try:
        # a separate context: the limits of one command do not apply to the next
        code: object = copy_context().run(_command(), args=words, prog_name="sabir", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _close_quietly()
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except Exception as error:  # any error ends in a message, not in a traceback
        if os.environ.get(_DEBUG):
            raise
        message = _message(error, sys.argv[1:] if words is None else words)
        return _fail(message, FAULTY if isinstance(error, _MODEL_ERRORS) else UNREADABLE)
    return code if isinstance(code, int) else 0


def _show_warning(message: Warning | str, *_: Any) -> None:
    """Print a warning as one line, without the source line that issued it."""
    with contextlib.suppress(BrokenPipeError):
        print(f"warning: {plain(str(message))}", file=sys.stderr)  # ruff: ignore[print]  this is where messages go


def _message(error: Exception, words: Sequence[str]) -> str:
    if hasattr(error, "format_message"):  # typer's own errors, whose base class depends on its version
        return usage_message(error, words)
    if isinstance(error, LimitError):
        return f"{error}, or here with `{' '.join(f'--limit {e.shown}' for e in error.exceeded)}`"
    if isinstance(error, SabirError):
        return str(error)
    if isinstance(error, OSError):
        return ": ".join(str(part) for part in (error.filename, error.strerror) if part) or str(error)
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this{f': {error}' if str(error) else ''}"
    return f"a bug in Sabir, please report it: {type(error).__name__}: {error} ({_DEBUG}=1 shows where)"


def _fail(message: str, code: int) -> int:
    lines = "\n".join(map(plain, message.split("\n")))
    with contextlib.suppress(BrokenPipeError):
        print(f"error: {lines}", file=sys.stderr)  # ruff: ignore[print]  this is where messages go
    return code


def _close_quietly() -> int:
    """Close a pipe without a reader, so that the interpreter's last flush succeeds."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAULTY
