"""`sabir check`: report what is wrong with models, and repair it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import SabirError, SchemaError
from sabir.checking import chosen, findings
from sabir.cli._completion import rule_ids

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import STREAM, ModelPaths, OutputPath, load_any, save_any
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._reports import Format, report_as
from sabir.cli._usage import FAULTY, UNREADABLE, refuse
from sabir.repairing import UNSAFE_REPAIRS, fix_in_place
from sabir.serial import load_either

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sabir.base import Finding
    from sabir.cli._reports import Report
    from sabir.ir import Model, OperatorSet

EXAMPLES = (
    "sabir check model.onnx",
    "sabir check models/*.onnx --format github",
    "cat model.onnx | sabir check - --json",
    "sabir check model.onnx --select GRAPH,NODE001 --strict",
    "sabir check model.onnx --fix -o repaired.onnx",
    "sabir check model.onnx --fix-unsafe NAME001,MODEL007 -o renamed.onnx",
)
_IDS = "IDS"


def check(  # ruff: ignore[too-many-arguments]  each is an option
    models: ModelPaths,
    *,
    written: Annotated[Format, typer.Option("--format", help="The format of the report.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar=_IDS,
            autocompletion=rule_ids,
            help="Check only these rules: ids (GRAPH001), beginnings of ids (GRAPH) or groups (style), "
            "separated by commas.",
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar=_IDS, help="Check all rules except these.", autocompletion=rule_ids),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Check style and pedantic rules too, and treat warnings as errors."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Write one line for each finding, even if a rule has many.")
    ] = False,
    untyped: Annotated[bool, typer.Option("--no-types", help="Skip type inference (faster).")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all external data and verify its checksums.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--fix", help="Do all safe repairs, and save the model with -o.")
    ] = False,
    unsafe: Annotated[
        list[str] | None,
        typer.Option(
            "--fix-unsafe",
            metavar=_IDS,
            help="Also do the unsafe repairs of these rules (ids), which change names or the IR version.",
        ),
    ] = None,
    output: OutputPath = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Report what is wrong with models and operator sets.

    Checks all rules of the standard (`sabir rule` lists them), and style and pedantic rules only with
    --strict or --select. The exit code is 0 without errors, 1 with errors, 2 if a model cannot be read.
    """
    rules: dict[str, Any] = {"select": _ids(select), "ignore": _ids(ignore)}
    try:
        chosen(**rules)
    except SchemaError as error:
        refuse(str(error))
    unsafe_ids = _ids(unsafe)
    _require_unsafe_repairs(unsafe_ids)
    if (repair or unsafe_ids) and (output is None or len(models) > 1):
        refuse("--fix takes one model, and -o FILE for the repaired one")
    if output is not None and not (repair or unsafe_ids):
        refuse("-o needs --fix: it names the file for the repaired model")
    report = report_as(Format.JSON if as_json else written, verbose=verbose, error=output == STREAM)
    options = {**rules, "strict": strict, "types": not untyped, "verify": verify}
    options["registry"] = registry_of(operators, documents)
    if output is not None:
        codes = [_repair(report, models[0], output, options, unsafe_ids)]
    else:
        codes = [_look(report, path, options) for path in models]
    report.end()
    if any(codes):
        raise typer.Exit(max(codes))


def _ids(options: Iterable[str] | None) -> tuple[str, ...]:
    """Return the ids of repeated options, each a list separated by commas."""
    return tuple(name.strip() for names in options or () for name in names.split(","))


def _require_unsafe_repairs(unsafe_ids: Iterable[str]) -> None:
    """Refuse an id that has no unsafe repair."""
    for name in unsafe_ids:
        if name not in UNSAFE_REPAIRS:
            known = ", ".join(UNSAFE_REPAIRS)
            refuse(f"{name!r} is not a rule with an unsafe repair; those are {known}")


def _found(model: Path | Model | OperatorSet, options: dict[str, Any]) -> tuple[list[Finding], int]:
    """Return the findings of the selected rules, and how many more `--strict` would report."""
    all_rules: dict[str, Any] = {**options, "strict": True}
    every = list(findings(model, **all_rules))
    asked = {r.id for r in chosen(options["select"], options["ignore"], strict=options["strict"])}
    found = [f for f in every if f.rule in asked]
    return found, len(every) - len(found)


def _look(report: Report, path: Path, options: dict[str, Any]) -> int:
    """Report the findings of one model; returns its exit code."""
    try:
        found, more = _found(load_either(sys.stdin.buffer.read()) if path == STREAM else path, options)
    except SabirError as error:  # the other models are checked all the same
        report.unreadable(path, str(error).removeprefix(f"{path}: "))
        return UNREADABLE
    report.model(path, found, more)
    return _code(found, options)


def _repair(
    report: Report, path: Path, output: Path, options: dict[str, Any], unsafe_ids: tuple[str, ...]
) -> int:
    """Repair one model, save it, and report the findings that remain."""
    try:
        model = load_any(path)
        done = fix_in_place(
            model,
            select=options["select"],
            ignore=options["ignore"],
            unsafe=unsafe_ids,
            registry=options["registry"],
        )
        left, more = _found(model, options)
        save_any(model, output)
    except SabirError as error:
        report.unreadable(path, str(error).removeprefix(f"{path}: "))
        return UNREADABLE
    report.repairs(path, done, output)
    report.model(output, left, more)
    return _code(left, options)


def _code(found: Iterable[Finding], options: dict[str, Any]) -> int:
    return FAULTY if any(options["strict"] or f.severity == "error" for f in found) else 0
