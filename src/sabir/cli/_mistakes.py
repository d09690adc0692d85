"""Wrong usage as one line, with what the user probably meant: the nearest word, or another command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sabir.base import quote, suggest
from sabir.serial import PICTURES, format_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_VALUES = (".npy", ".npz", ".pb", *PICTURES)  # files of inputs
_UNKNOWN_COMMAND = "no such command "
_EXTRA = "got unexpected extra argument"

# commands of other programs, and what does their work here
_TASKS = {
    name: text
    for names, text in (
        ("cut submodel slice subgraph", "`sabir extract` writes the part of a model between values"),
        ("expose tap debug-outputs", "`sabir add-outputs` lets a model return more of its values"),
        (
            "function functionalize",
            "`sabir outline` makes nodes a function, and `sabir inline` is the inverse",
        ),
        (
            "optimize fold fuse slim",
            "`sabir simplify` writes a model with fewer nodes; `sabir run` optimizes what it runs",
        ),
        ("quantize prune", "no command makes the numbers of a model smaller"),
        ("merge compose join", "no command joins two models"),
        ("validate verify lint", "`sabir check` finds what is wrong in a model"),
        ("fix repair", "`sabir check MODEL --fix -o OUT` repairs a model"),
        ("shapes shape types infer-shapes infer_shapes", "`sabir infer` infers types and shapes"),
        (
            "print dump cat view inspect list ls",
            "`sabir show` says what is in a model, and `sabir text` writes all of it",
        ),
        ("flops macs params", "`sabir summary` says what a model costs"),
        ("draw plot visualize netron", "`sabir show MODEL --tree` shows the graph as text"),
        ("upgrade downgrade version convert-version", "`sabir convert IN OUT --opset N` changes the opset"),
        ("benchmark perf perf_test time", "`sabir bench` measures how fast a model runs"),
        ("test evaluate predict exec eval", "`sabir run` runs a model"),
        (
            "fix-dims make-dynamic dims reshape set-shape set-batch batch",
            "`sabir set-dims` fixes, renames and frees dimensions",
        ),
        ("grad gradient backward", "`sabir differentiate` adds gradients to a model"),
        ("metadata set rename", "`sabir edit` changes versions, texts and metadata"),
        ("rules explain", "`sabir rule` explains the rules of the checker"),
        ("ops operators schema", "`sabir op` describes operators"),
    )
    for name in names.split()
}


def usage_message(error: Any, words: Sequence[str]) -> str:
    """Return the message for wrong usage that typer reports; `words` are the arguments of the program."""
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context else "sabir"
    option = getattr(error, "option_name", None)
    message: str = error.format_message().rstrip(".")
    message = f"{message[:1].lower()}{message[1:]}"
    if context is not None and option is not None and hasattr(error, "possibilities"):
        message = f"no such option: {option}{_option_hint(option, context.command, words)}"
    elif context is not None and message.startswith(_UNKNOWN_COMMAND):
        name = message.removeprefix(_UNKNOWN_COMMAND).split("'")[1]
        message = f"{_UNKNOWN_COMMAND}{quote(name)}{_command_hint(name, context.command.commands)}"
    elif context is not None and message.startswith(_EXTRA):
        extra = message.partition("(s) (")[2].removesuffix(")").split()
        message += _argument_hint(extra, context.command)
    return f"{message}; see {path} --help"


def _options(command: Any) -> list[str]:
    return [name for parameter in command.params for name in parameter.opts if name.startswith("--")]


def _option_hint(option: str, command: Any, words: Sequence[str]) -> str:
    known, name = _options(command), option.lstrip("-")
    near = suggest(name, [o.removeprefix("--") for o in known]).replace("is it '", "is it '--")
    if near:
        return near
    place = next((i for i, word in enumerate(words) if word.partition("=")[0] == option), None)
    value = "" if place is None else words[place].partition("=")[2] or next(iter(words[place + 1 :]), "")
    if "--dim" in known and value.isdigit():
        return f"; to set the size of a dimension write `--dim {name}={value}`"
    if "--input" in known and Path(value).suffix.lower() in _VALUES:
        return f"; to feed an input write `--input {name}={value}`"
    return ""


def _command_hint(name: str, known: Sequence[str]) -> str:
    task = _TASKS.get(name.lower()) if "show" in known and "run" in known else None
    return f"; {task}" if task else suggest(name, known)


def _argument_hint(extra: Sequence[str], command: Any) -> str:
    known = _options(command)
    for word in extra:
        name, is_pair, value = word.partition("=")
        if "--dim" in known and is_pair and value.isdigit():
            return f"; to set the size of a dimension write `--dim {word}`"
        file = value if is_pair else word
        if "--input" in known and Path(file).suffix.lower() in _VALUES:
            return f"; to feed an input write `--input {name if is_pair else 'NAME'}={file}`"
        if command.name == "run" and format_of(Path(word)) is not None:
            return "; to compare what two models compute use `sabir compare`"
    return ""
