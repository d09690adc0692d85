"""`sabir rewrite`: rules of one's own, applied, explained and proved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from sabir.base import EvaluationError, SchemaError, counted, quote
from sabir.cli._edited import edited_json, show_edited, show_verification, verification_json
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import (
    OutputPath,
    load_any,
    refuse_two_reports,
    report_saved,
    report_screen,
    save_any,
)
from sabir.cli._modules import imported
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import Screen, plain
from sabir.cli._usage import FAULTY, refuse
from sabir.optimization import explain_node, prove, rewrite_and_report
from sabir.patterns import RewriteRule, load_rules

if TYPE_CHECKING:
    from sabir.ir import Model
    from sabir.optimization import Rewriting
    from sabir.patterns import Refusal
    from sabir.schema import Registry

EXAMPLES = (
    "sabir rewrite model.onnx --rules rules.toml -o rewritten.onnx",
    "sabir rewrite model.onnx --rules rules.toml --why-not /encoder/Mul_3",
    "sabir rewrite --rules rules.toml --prove",
)


def rewrite(
    model: Annotated[
        Path | None, typer.Argument(metavar="[MODEL]", help="The model; `-` reads standard input.")
    ] = None,
    *,
    rules: Annotated[
        list[str],
        typer.Option(
            "--rules",
            metavar="FILE",
            help="A TOML file of rules, or MODULE:NAME, a RewriteRule or a list of them in a Python module. "
            "May be repeated.",
        ),
    ],
    output: OutputPath = None,
    why_not: Annotated[
        str | None,
        typer.Option(
            "--why-not",
            metavar="NODE",
            help="Say why the rules leave the calls around a node alone, instead of rewriting.",
        ),
    ] = None,
    proof: Annotated[
        bool, typer.Option("--prove", help="Run the examples and near misses of the rules.")
    ] = False,
    verify: Annotated[
        bool | None,
        typer.Option(
            "--verify/--no-verify",
            help="Run both models on random inputs and compare them; by default up to 256 MiB.",
        ),
    ] = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Replace what rules match.

    docs/rewriting.md describes the rules. If a verification finds that the results differ, nothing is
    written, and the exit code is 1; so it is if an example of a rule does not prove it.
    """
    registry = registry_of(operators, documents)
    found = [rule for option in rules for rule in _rules(option)]
    if proof:
        _prove(found, registry, as_json=as_json)
    if model is None:
        if not proof:
            refuse("a model is missing; `--prove` alone needs none")
        return
    if why_not is not None:
        refusals = explain_node(load_any(model), found, why_not, registry=registry)
        _show_refusals(refusals, as_json=as_json)
        return
    if output is None:
        refuse("`-o FILE` is missing: where the rewritten model is saved")
    refuse_two_reports(output, as_json=as_json)
    loaded = load_any(model)
    result = rewrite_and_report(loaded, found, verify=verify, registry=registry)
    save_any(result.model, output)
    _report(result, loaded, output, as_json=as_json)


def _rules(option: str) -> list[RewriteRule]:
    if ":" not in option or Path(option).exists():
        return load_rules(option)
    found: object = imported(option, "--rules")
    items = cast("list[object]", [*found]) if isinstance(found, (list, tuple)) else [found]
    rules = [item for item in items if isinstance(item, RewriteRule)]
    if len(rules) < len(items):
        other = next(item for item in items if not isinstance(item, RewriteRule))
        raise SchemaError(f"--rules {option!r} has a {type(other).__name__}; it must be a RewriteRule")
    return rules


def _prove(rules: list[RewriteRule], registry: Registry, *, as_json: bool) -> None:
    """Run the proofs of all rules, report them, and leave the program where one fails."""
    failures: dict[str, str] = {}
    for rule in rules:
        try:
            prove(rule, registry=registry)
        except (EvaluationError, SchemaError) as error:
            failures[rule.name] = str(error)
    if as_json:
        write_json({"rules": len(rules), "failures": failures})
    else:
        screen = Screen()
        for rule in rules:
            examples, others = counted(len(rule.examples), "example"), len(rule.near_misses)
            proved = f"{quote(rule.name)}: {examples}, near misses: {others}, all as declared"
            screen.line(plain(failures.get(rule.name, proved)))
    if failures:
        raise typer.Exit(FAULTY)


def _show_refusals(refusals: list[Refusal], *, as_json: bool) -> None:
    if as_json:
        write_json([{"rule": r.rule, "node": r.place, "reason": r.reason} for r in refusals])
        return
    screen = Screen()
    for refusal in refusals:
        screen.line(plain(f"{refusal.rule} at {refusal.place}: {refusal.reason or 'the rule applies'}"))


def _report(result: Rewriting, before: Model, output: Path, *, as_json: bool) -> None:
    if as_json:
        report = edited_json(result.model, before)
        verification = verification_json(result.verification)
        write_json({**report, "applied": dict(result.applied), "verification": verification})
        return
    screen = report_screen(output)
    rows = [(plain(name), f"{count:,}") for name, count in result.applied.items()]
    if rows:
        screen.table(rows, "cyan")
    else:
        screen.line("no rule applies")
    show_edited(screen, result.model, before)
    show_verification(screen, result.verification)
    report_saved(screen, output)
