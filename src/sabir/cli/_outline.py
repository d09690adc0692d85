"""`sabir outline`: make nodes a call of a new function."""

from __future__ import annotations

from typing import Annotated

import typer

from sabir.cli._edited import save_edited

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._json import JsonOption

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import ModelPath, RequiredOutputPath, load_any, refuse_two_reports
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.editing import outline as outline_nodes

EXAMPLES = (
    "sabir outline model.onnx dense activation --name Block -o model.onnx",
    "sabir outline model.onnx dense activation --name Block --domain org.acme -o out.onnx --json",
)


def outline(
    model: ModelPath,
    nodes: Annotated[
        list[str],
        typer.Argument(metavar="NODE...", help="The names of nodes, or of values that they compute."),
    ],
    *,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the function.")],
    output: RequiredOutputPath,
    domain: Annotated[
        str, typer.Option("--domain", metavar="NAME", help="The domain of the function.")
    ] = "local",
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Make nodes the body of a new function, and call it.

    `sabir inline` is the inverse. Values that the nodes read of others become the inputs of the function, and
    those that others read of them its outputs. If another node depends on the nodes and they on it, the path
    is shown, nothing is written, and the exit code is 2.
    """
    refuse_two_reports(output, as_json=as_json)
    loaded = load_any(model)
    changed = outline_nodes(loaded, nodes, name, domain=domain, registry=registry_of(operators, documents))
    save_edited(changed, output, loaded, as_json=as_json)
