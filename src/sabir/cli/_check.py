"""`sabir check`: what is wrong with models, and what of it can be repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import SabirError, SchemaError
from sabir.checking import chosen, findings

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption
from sabir.cli._models import ModelPaths, OutputPath, load_any, save_any
from sabir.cli._operators import OperatorsOption, registry_of
from sabir.cli._reports import Format, report_as
from sabir.cli._usage import FAULTY, UNREADABLE, refuse
from sabir.repairing import UNSAFE_REPAIRS, fix

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from sabir.base import Finding
    from sabir.cli._reports import Report
    from sabir.ir import Model

EXAMPLES = (
    "sabir check model.onnx",
    "sabir check models/*.onnx --format github",
    "sabir check model.onnx --select GRAPH,NODE001 --strict",
    "sabir check model.onnx --fix -o repaired.onnx",
    "sabir check model.onnx --fix-unsafe NAME001,MODEL007 -o renamed.onnx",
)
_IDS = "IDS"


def check(  # ruff: ignore[too-many-arguments]  each is an option
    models: ModelPaths,
    *,
    written: Annotated[Format, typer.Option("--format", help="How to write the findings.")] = Format.TEXT,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select", metavar=_IDS, help="Only these rules, by id, its beginning or group: GRAPH,style."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar=_IDS, help="All but these rules.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Style and pedantic rules too; warnings count as errors.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="A line for each finding, however many there are of a rule.")
    ] = False,
    untyped: Annotated[
        bool, typer.Option("--no-types", help="Infer no types, which takes the time.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all external data to compare its checksums.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--fix", help="Make the repairs that can hurt nobody; saved where -o says.")
    ] = False,
    unsafe: Annotated[
        list[str] | None,
        typer.Option(
            "--fix-unsafe",
            metavar=_IDS,
            help="Repair breaks of these rules too, by whole ids: it renames, or raises the IR version.",
        ),
    ] = None,
    output: OutputPath = None,
    operators: OperatorsOption = None,
    _: LimitOption = None,
) -> None:
    """Report what is wrong with models.

    Every rule of the standard is tried (`sabir rule` lists them), those of style only with --strict or where
    they are selected. The exit code is 0 where nothing is wrong but for warnings, 1 where there are errors,
    2 where a model could not be read.
    """
    rules: dict[str, Any] = {"select": _ids(select), "ignore": _ids(ignore)}
    try:
        chosen(**rules)
    except SchemaError as error:
        refuse(str(error))
    hazards = _ids(unsafe)
    _refuse_safe(hazards)
    if (repair or hazards) and (output is None or len(models) > 1):
        refuse("--fix takes one model, and -o FILE to save it in")
    if output is not None and not (repair or hazards):
        refuse("-o is for --fix: what is repaired is saved there")
    report = report_as(written, verbose=verbose)
    options = {**rules, "strict": strict, "types": not untyped, "verify": verify}
    options["registry"] = registry_of(operators)
    if output is not None:
        codes = [_repair(report, models[0], output, options, hazards)]
    else:
        codes = [_look(report, path, options) for path in models]
    report.end()
    if any(codes):
        raise typer.Exit(max(codes))


def _ids(given: Iterable[str] | None) -> tuple[str, ...]:
    """Return the ids in options that may each name several."""
    return tuple(name.strip() for names in given or () for name in names.split(","))


def _refuse_safe(hazards: Iterable[str]) -> None:
    """Refuse names of rules that have no unsafe repair: each is asked for by its own id."""
    for name in hazards:
        if name not in UNSAFE_REPAIRS:
            known = ", ".join(UNSAFE_REPAIRS)
            refuse(f"{name!r} is no rule with an unsafe repair; those are {known}")


def _found(model: Path | Model, options: dict[str, Any]) -> tuple[list[Finding], int]:
    """Return what is found of the rules that are asked for, and how much more `--strict` finds."""
    all_rules: dict[str, Any] = {**options, "strict": True}
    every = list(findings(model, **all_rules))
    asked = {r.id for r in chosen(options["select"], options["ignore"], strict=options["strict"])}
    found = [f for f in every if f.rule in asked]
    return found, len(every) - len(found)


def _look(report: Report, path: Path, options: dict[str, Any]) -> int:
    """Report what is wrong with one model; returns the exit code that it deserves."""
    try:
        found, more = _found(path, options)
    except SabirError as error:  # the other models are still worth a look
        report.unreadable(path, str(error).removeprefix(f"{path}: "))
        return UNREADABLE
    report.model(path, found, more)
    return _code(found, options)


def _repair(
    report: Report, path: Path, output: Path, options: dict[str, Any], hazards: tuple[str, ...]
) -> int:
    """Repair one model, save it, and report what is left."""
    try:
        model = load_any(path)
        done = fix(
            model,
            select=options["select"],
            ignore=options["ignore"],
            unsafe=hazards,
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
