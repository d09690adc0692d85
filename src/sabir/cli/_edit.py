"""`sabir edit`: change the version, the texts and the metadata of a model."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import SchemaError
from sabir.cli._edits import METADATA, SEMVER, VERSION, Edits, apply, read_version, violations
from sabir.cli._facts import version_text
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._metadata import doubts, metadata_of
from sabir.cli._models import (
    STREAM,
    ModelPath,
    RequiredOutputPath,
    load_any,
    refuse_two_reports,
    report_saved,
    report_screen,
    save_any,
    shown,
)
from sabir.cli._reports import finding_lines, findings_json
from sabir.cli._screen import cut
from sabir.cli._usage import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.base import Finding
    from sabir.cli._edits import Change
    from sabir.ir import Model

EXAMPLES = (
    "sabir edit model.onnx --model-version 1.0.0 -o model.onnx",
    "sabir edit model.onnx --bump minor --doc-file CHANGES.md -o next.onnx",
    "sabir edit model.onnx --domain org.acme --author 'Ada Lovelace' --set model_license=MIT -o out.onnx",
    "sabir edit model.onnx --unset training_run -o model.onnx --json",
)
_ABSENT, _EMPTY = "(none)", "(empty)"
_MOST_SHOWN = 60  # characters of a text


class Part(StrEnum):
    """The parts of a semantic version."""

    MAJOR = "major"
    MINOR = "minor"
    PATCH = "patch"


def edit(  # ruff: ignore[too-many-arguments]  each is an option
    model: ModelPath,
    *,
    output: RequiredOutputPath,
    version: Annotated[
        str | None,
        typer.Option(
            "--model-version",
            metavar="VERSION",
            help="Set the model's version: MAJOR.MINOR.PATCH, or a simple number.",
        ),
    ] = None,
    bump: Annotated[
        Part | None,
        typer.Option(
            "--bump",
            help="Set the next version of a part, and the lower parts to zero. A simple number has no parts: "
            "`patch` adds one to it, and the others are refused.",
        ),
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", metavar="NAME", help="Set the model's domain, such as org.acme.")
    ] = None,
    entries: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a value of the metadata. May be repeated."),
    ] = None,
    removed: Annotated[
        list[str] | None,
        typer.Option("--unset", metavar="KEY", help="Remove a key of the metadata. May be repeated."),
    ] = None,
    authors: Annotated[
        list[str] | None,
        typer.Option("--author", metavar="NAME", help="Set the metadata model_author. May be repeated."),
    ] = None,
    doc: Annotated[
        str | None, typer.Option("--doc", metavar="TEXT", help="Set the documentation, in Markdown.")
    ] = None,
    doc_file: Annotated[
        Path | None,
        typer.Option(
            "--doc-file", metavar="FILE", help="Take the documentation from a file; - is standard input."
        ),
    ] = None,
    producer: Annotated[
        str | None, typer.Option("--producer", metavar="NAME", help="Set the name of the generating tool.")
    ] = None,
    producer_version: Annotated[
        str | None,
        typer.Option("--producer-version", metavar="TEXT", help="Set the version of the generating tool."),
    ] = None,
    graph: Annotated[
        str | None, typer.Option("--graph-name", metavar="NAME", help="Set the name of the main graph.")
    ] = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Change the version, the texts and the metadata of a model.

    The output may replace the model itself. An empty text removes a domain, a producer or the documentation.
    Nothing is computed or checked except what is edited: use `sabir check` for the rest. External data stays
    in its files if the output is in the folder of the model.
    """
    refuse_two_reports(output, as_json=as_json)
    if version is not None and bump is not None:
        refuse("--model-version and --bump both set the version; use one of them")
    if doc_file is not None:
        doc = _documentation(doc, doc_file, model)
    texts = {
        "domain": domain, "producer_name": producer, "producer_version": producer_version, "doc": doc,
        "graph": graph,
    }  # fmt: skip
    try:
        edits = Edits(
            {field: text for field, text in texts.items() if text is not None},
            metadata_of(entries or (), authors or (), removed or ()),
            None if version is None else read_version(version),
            None if bump is None else bump.value,
        )
        _require_edits(edits)
        loaded = load_any(model)
        changes = apply(loaded, edits)
    except SchemaError as error:
        refuse(str(error))
    found = violations(loaded, edits)
    errors = [str(f) for f in found if f.severity == "error"]
    if errors:
        refuse("; ".join(errors))
    notes = list(_notes(loaded, edits))
    save_any(loaded, output)
    if as_json:
        report: dict[str, Any] = {"path": None if model == STREAM else str(model), "saved": str(output)}
        report |= {"changes": [change._asdict() for change in changes]}
        write_json(report | {"findings": findings_json(found), "notes": notes})
    else:
        _show(model, output, changes, found, notes)


def _documentation(doc: str | None, path: Path, model: Path) -> str:
    if doc is not None:
        refuse("--doc and --doc-file both set the documentation; use one of them")
    if path == STREAM and model == STREAM:
        refuse("only one of MODEL and --doc-file can be standard input")
    data = sys.stdin.buffer.read() if path == STREAM else path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse(f"{shown(path)}: the documentation is not UTF-8: {error.reason} at byte {error.start}")


def _require_edits(edits: Edits) -> None:
    """Refuse edits that are none, and texts that no model can contain."""
    if edits.is_empty:
        refuse("there is nothing to edit; see sabir edit --help")
    for text in (*edits.texts.values(), *edits.metadata, *edits.metadata.values()):
        try:
            (text or "").encode()
        except UnicodeEncodeError:  # bytes of the command line that are no text
            refuse(f"{text!r} is not UTF-8, as the texts of a model must be")


def _notes(model: Model, edits: Edits) -> Iterator[str]:
    if edits.bump is not None and model.semver is None:
        yield "the version is a simple number, which has no parts; --bump patch added one to it"
    yield from doubts(
        model.metadata or {}, (key for key, value in edits.metadata.items() if value is not None)
    )


def _show(
    model: Path, output: Path, changes: Sequence[Change], found: Sequence[Finding], notes: Sequence[str]
) -> None:
    screen = report_screen(output)
    screen.line(screen.paint(shown(model), bold=True))
    rows = [_row(change) for change in changes if change.field != SEMVER]
    if rows:
        screen.table(rows, "cyan")
    else:
        screen.line("   nothing changes: the model has these values")
    screen.lines(finding_lines(found, screen, verbose=True))
    screen.lines(f"note: {cut(note, 500)}" for note in notes)
    report_saved(screen, output)


def _row(change: Change) -> tuple[str, str]:
    name = f"{METADATA} {cut(change.key, _MOST_SHOWN)}" if change.key is not None else change.field
    old, new = (_text(change, value) for value in (change.old, change.new))
    return name.replace("_", " ") if change.key is None else name, f"{old} → {new}"


def _text(change: Change, value: str | int | None) -> str:
    """Return an old or a new value; an empty one is absent, except in metadata."""
    if not value:
        return _EMPTY if change.field == METADATA and value is not None else _ABSENT
    if change.field == VERSION and isinstance(value, int):
        return version_text(value)
    return cut(str(value).strip(), _MOST_SHOWN)
