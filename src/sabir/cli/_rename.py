"""`sabir rename`: other names for parts of a model."""

from __future__ import annotations

from typing import Annotated

import typer

from sabir.cli._edited import pair
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
from sabir.cli._screen import plain
from sabir.editing import rename_and_report

EXAMPLES = (
    "sabir rename model.onnx input.1=image 482=logits -o named.onnx",
    "sabir rename model.onnx dimension:N=batch node:Conv_0=stem -o named.onnx",
    "sabir rename model.onnx pkg.local=org.acme -o named.onnx",
)


def rename(
    model: ModelPath,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="OLD=NEW...",
            help="The name of a value, a node, a dimension, a function or a domain, and the new one. Where "
            "several kinds have the old name: value:OLD, node:OLD, dimension:OLD, function:OLD, domain:OLD.",
        ),
    ],
    *,
    output: RequiredOutputPath,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Rename values, nodes, dimensions, functions and domains.

    All changes are made at once. A new name that is in use already is refused.
    """
    refuse_two_reports(output, as_json=as_json)
    screen = report_screen(output)
    wanted = dict(pair(word, "OLD=NEW", "input.1=image") for word in names)
    found = rename_and_report(load_any(model), wanted, registry=registry_of(operators, documents))
    save_any(found.model, output)
    if as_json:
        write_json({"renamed": [name._asdict() for name in found.names]})
        return
    screen.table([(n.kind, plain(n.old), "→", plain(n.new)) for n in found.names], "cyan")
    report_saved(screen, output)
