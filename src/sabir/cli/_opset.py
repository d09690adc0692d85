"""`sabir opset`: the documents of operator sets: written from a registry, shown, and compared."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import UnsupportedError, counted
from sabir.checking import set_changes
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import STREAM, OutputPath, report_saved, report_screen
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import Screen, plain
from sabir.cli._usage import FAULTY, refuse
from sabir.ir import OperatorSet, canonical_domain

if TYPE_CHECKING:
    from sabir.checking import OperatorChange, SetChanges
    from sabir.ir import OperatorEntry

EXAMPLES = (
    "sabir opset export ai.onnx:13 -o opset13.textproto",
    "sabir opset show opset13.textproto",
    "sabir opset diff acme3.onnx acme4.onnx",
)
EXPORT_EXAMPLES = (
    "sabir opset export ai.onnx:13 -o opset13.onnx",
    "sabir opset export ai.onnx.ml -o ml.json",
    "sabir opset export com.acme:3 --operators acme_ops:registry -o acme3.onnx",
)
SHOW_EXAMPLES = ("sabir opset show opset13.onnx", "sabir opset show opset13.onnx --json")
DIFF_EXAMPLES = ("sabir opset diff acme3.onnx acme4.onnx", "sabir opset diff acme3.onnx acme4.onnx --json")

_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_SET_NAMES = (
    "a document of an operator set, in the format that its extension names: .onnx, .textproto or .json"
)
SetPath = Annotated[
    Path, typer.Argument(metavar="FILE", help=f"{_SET_NAMES.capitalize()}; - is standard input.")
]


def opset(context: typer.Context) -> None:
    """Write, show and compare documents of operator sets."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def export(
    name: Annotated[
        str,
        typer.Argument(metavar="DOMAIN[:VERSION]", help="An operator set; without a version the newest one."),
    ],
    *,
    output: OutputPath = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Write an operator set as a document.

    It lists the operators in force with their since_version and status. The operators of the standard are
    known; --operators and --opset-document add others. Without -o the document is written to standard output.
    """
    domain, version = _named(name)
    found = registry_of(operators, documents).operator_set(domain, version)
    target = STREAM if output is None else output
    if target == STREAM:
        if sys.stdout.isatty():
            raise UnsupportedError(
                "protobuf is binary, and is not written to a terminal; name a file with -o"
            )
        sys.stdout.flush()
        sys.stdout.buffer.write(found.dumps())
        return
    found.save(target)
    report_saved(report_screen(target), target)


def show(
    document: SetPath, *, as_json: JsonOption = False, _: LimitOption = None, __: UntrustedOption = False
) -> None:
    """Show the operators of a document."""
    found = _loaded(document)
    if as_json:
        write_json(_facts(found))
        return
    screen = Screen()
    counts = [counted(len(found.operators), "operator"), counted(len(found.functions), "function")]
    screen.line(f"{plain(found.label)}: {', '.join(counts)}, IR {plain(_ir_version(found))}")
    if found.doc:
        screen.line(plain(found.doc))
    defined = {function.name for function in found.functions}
    screen.table(
        (
            (
                plain(entry.name),
                str(entry.since),
                entry.status,
                "function" if entry.name in defined else "",
                plain(entry.doc),
            )
            for entry in found.operators
        ),
        "bold",
        "right",
    )


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help=f"The older operator set: {_SET_NAMES}.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The newer operator set of the same domain.")],
    *,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Show what changed between two operator sets.

    The version of a set rises with each added, removed or changed operator, and so does the since_version of
    the operator: the last line says whether they did. The exit code is 0 where the versions are right, 1
    where they are not, 2 if a document cannot be read.
    """
    before, after = _loaded(old), _loaded(new)
    if canonical_domain(before.domain) != canonical_domain(after.domain):
        refuse(f"{before.label} and {after.label} are operator sets of different domains")
    found = set_changes(before, after)
    if as_json:
        write_json(_difference(before, after, found))
    else:
        _write_difference(before, after, found)
    if not found.are_valid:
        raise typer.Exit(FAULTY)


def _named(name: str) -> tuple[str, int | None]:
    """Return the domain and the version of `domain:version`; None for no version."""
    domain, colon, version = name.rpartition(":")
    if not colon:
        return name, None
    if not version.isascii() or not version.isdigit():
        refuse(f"{name!r}: write it as DOMAIN:VERSION, such as ai.onnx:13")
    return domain, int(version)


def _loaded(path: Path) -> OperatorSet:
    if path == STREAM:
        return OperatorSet.loads(sys.stdin.buffer.read())
    return OperatorSet.load(path)


def _ir_version(operator_set: OperatorSet) -> str:
    """Return the IR version with its pre-release part and build metadata, as in semantic versions."""
    prerelease = f"-{operator_set.ir_prerelease}" if operator_set.ir_prerelease else ""
    build = f"+{operator_set.ir_build}" if operator_set.ir_build else ""
    return f"{operator_set.ir_version}{prerelease}{build}"


def _facts(operator_set: OperatorSet) -> dict[str, Any]:
    return {
        "domain": operator_set.domain,
        "version": operator_set.version,
        "ir_version": _ir_version(operator_set),
        "doc": operator_set.doc,
        "operators": [
            {"name": e.name, "since_version": e.since, "status": e.status, "doc": e.doc}
            for e in operator_set.operators
        ],
        "functions": [{"name": f.name, "overload": f.overload} for f in operator_set.functions],
    }


def _difference(old: OperatorSet, new: OperatorSet, found: SetChanges) -> dict[str, Any]:
    return {
        "old": old.label,
        "new": new.label,
        "changes": [
            {
                "kind": change.kind,
                "name": change.name,
                "old_since_version": None if change.old is None else change.old.since,
                "new_since_version": None if change.new is None else change.new.since,
                "what": list(change.what),
                "problem": change.problem,
            }
            for change in found.changes
        ],
        "problem": found.problem,
        "valid": found.are_valid,
    }


def _write_difference(old: OperatorSet, new: OperatorSet, found: SetChanges) -> None:
    screen = Screen()
    screen.line(f"{plain(old.label)} to {plain(new.label)}: {counted(len(found.changes), 'change')}")
    screen.table(
        (_SIGNS[c.kind], plain(c.name), _versions(c), ", ".join(c.what), plain(c.problem))
        for c in found.changes
    )
    if found.problem:
        screen.line(plain(found.problem))
    screen.line("the versions are right" if found.are_valid else "the versions are wrong")


def _versions(change: OperatorChange) -> str:
    def of(entry: OperatorEntry | None) -> str:
        return "" if entry is None else str(entry.since)

    both = change.old is not None and change.new is not None
    if both and of(change.old) != of(change.new):
        return f"{of(change.old)} -> {of(change.new)}"
    return of(change.new) or of(change.old)
