"""`sabir infer`: infer types and shapes, and write them into the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import counted
from sabir.checking import finding_of
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import (
    ModelPaths,
    OutputPath,
    load_any,
    report_saved,
    report_screen,
    save_any,
    shown,
)
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._reports import finding_lines, findings_json
from sabir.cli._screen import Screen, plain
from sabir.cli._usage import FAULTY, refuse
from sabir.inference import Inference

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.base import Finding
    from sabir.ir import Model

EXAMPLES = (
    "sabir infer model.onnx",
    "sabir infer model.onnx -o typed.onnx",
    "sabir infer models/*.onnx --json",
    "sabir infer model.onnx --fresh -o typed.onnx",
)


def infer(
    models: ModelPaths,
    *,
    output: OutputPath = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first contradiction.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Replace the declared types of computed values, also of outputs.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Write one line for each finding, even if a rule has many.")
    ] = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Infer the type and shape of every value.

    Shows the types of the outputs. A declared type that contradicts the inferred one is reported and kept; so
    is a declared size that depends on an input: use --fresh after you made an input dynamic. A node that
    cannot be inferred, such as one of an unknown domain, is a warning, as in `sabir check`. The exit code
    is 1 if there is an error.
    """
    if output is not None and (len(models) > 1 or as_json):
        refuse("-o takes one model, and no --json")
    registry, screen = registry_of(operators, documents), report_screen(output)
    reports: list[dict[str, Any]] = []
    failed = False
    for path in models:
        loaded = load_any(path)
        engine = Inference(loaded, registry=registry, strict=strict, fresh=fresh)
        engine.run()
        engine.annotate()
        found = [finding_of(d) for d in engine.diagnostics]
        failed |= any(f.severity == "error" for f in found)
        if as_json:
            reports.append(_as_json(path, loaded, found))
        else:
            _show(screen, path, loaded, found, verbose=verbose)
        if output is not None:
            save_any(loaded, output)
            report_saved(screen, output)
    if as_json:
        write_json(reports)
    if failed:
        raise typer.Exit(FAULTY)


def _show(screen: Screen, path: Path, model: Model, findings: list[Finding], *, verbose: bool) -> None:
    screen.lines(finding_lines(findings, screen, verbose=verbose))
    known, values = _coverage(model)
    screen.line(f"{shown(path)}: {known:,} of {counted(values, 'value')} have a type")
    outputs = [v for v in model.graph.outputs if v is not None]
    screen.table([(plain(v.name), plain(v.type or "of unknown type")) for v in outputs], "cyan")


def _as_json(path: Path, model: Model, findings: list[Finding]) -> dict[str, Any]:
    values = [v for graph in model.graphs() for scope in graph.scopes() for v in scope.defined()]
    return {
        "path": str(path),
        "findings": findings_json(findings),
        "types": {v.name: None if v.type is None else str(v.type) for v in values},
    }


def _coverage(model: Model) -> tuple[int, int]:
    """Return how many values of the nodes have types, and how many there are."""
    values = [v for node in model.graph.all_nodes() for v in node.outputs if v is not None]
    return sum(v.type is not None for v in values), len(values)
