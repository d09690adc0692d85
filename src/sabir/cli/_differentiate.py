"""`sabir differentiate`: write a model that also computes gradients."""

from __future__ import annotations

from typing import Annotated

import typer

from sabir.base import counted

# ruff: ignore[typing-only-first-party-import]  typer reads these at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import ModelPath, RequiredOutputPath, load_any, report_saved, report_screen, save_any
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import plain
from sabir.cli._usage import refuse
from sabir.cli._versions import OpsetsOption, opsets_of
from sabir.conversion import convert
from sabir.differentiation import differentiate as differentiated

EXAMPLES = (
    "sabir differentiate model.onnx --of loss --wrt w1,w2 -o training.onnx",
    "sabir differentiate model.onnx --of logits --seed d_logits --wrt x -o pullback.onnx",
    "sabir differentiate model.onnx --of loss --wrt w --opset 17 -o training.onnx",
)


def differentiate(  # ruff: ignore[too-many-arguments]  each is an option of the command
    model: ModelPath,
    *,
    of: Annotated[str, typer.Option("--of", metavar="NAME", help="The value to differentiate.")],
    wrt: Annotated[
        list[str],
        typer.Option(
            "--wrt",
            metavar="NAMES",
            help="The inputs, initializers or other values to differentiate by, between commas. "
            "May be repeated, as for a name with a comma in it.",
        ),
    ],
    output: RequiredOutputPath,
    seed: Annotated[
        str | None,
        typer.Option(
            "--seed", metavar="NAME", help="Add an input of this name: the weight of each element of --of."
        ),
    ] = None,
    recompute: Annotated[
        list[str] | None,
        typer.Option(
            "--recompute",
            metavar="PATTERN",
            help="Compute the results of nodes whose names match this regular expression again, instead of "
            "keeping them. May be repeated.",
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Refuse a gradient that is zero because every path ends at comparisons, casts to integers "
            "or the like.",
        ),
    ] = False,
    opsets: OpsetsOption = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Write a model that also computes gradients.

    The result has an output grad_NAME for each value in --wrt: the gradient of the sum of the elements of
    --of. Any runtime executes it. A model below opset 18 is converted to it; with --opset the result is
    converted once more, and if nodes have no equivalent there, they are listed and the exit code is 1.
    """
    versions, registry = opsets_of(opsets), registry_of(operators, documents)
    loaded = load_any(model)
    names = _names(wrt, {v.name for v in loaded.graph.defined()})
    found = differentiated(
        loaded, of, names, seed=seed, recompute=recompute or (), strict=strict, registry=registry
    )
    added = list(found.graph.outputs)[len(loaded.graph.outputs) :]
    if versions:
        found = convert(found, opsets=versions, registry=registry)
    screen = report_screen(output)
    nodes = [sum(1 for graph in m.graphs() for _ in graph.all_nodes()) for m in (loaded, found)]
    screen.line(f"{counted(nodes[0], 'node')} → {counted(nodes[1], 'node')}")
    screen.table(
        [(plain(v.name), plain(v.type or "of unknown type")) for v in added if v is not None], "cyan"
    )
    save_any(found, output)
    report_saved(screen, output)


def _names(options: list[str], known: set[str]) -> list[str]:
    """Return the names in `--wrt` options; one that a value has as it stands is not split."""
    names = [n for option in options for n in ([option] if option in known else option.split(","))]
    found = [name for name in dict.fromkeys(names) if name]
    if not found:
        refuse("--wrt names no value; write it as w1,w2")
    return found
