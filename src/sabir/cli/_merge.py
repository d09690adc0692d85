"""`sabir merge`: join two models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import counted, quote
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
from sabir.cli._usage import refuse
from sabir.editing import merge_and_report

if TYPE_CHECKING:
    from sabir.cli._screen import Screen
    from sabir.editing import Merging

_MOST_SHOWN = 10  # new names
EXAMPLES = (
    "sabir merge encoder.onnx decoder.onnx --connect hidden=states -o whole.onnx",
    "sabir merge a.onnx b.onnx --connect y=x --keep y --prefix a_,b_ -o both.onnx",
    "sabir merge left.onnx right.onnx --apart -o side-by-side.onnx",
)


def merge(  # ruff: ignore[too-many-arguments]  each is an option
    first: ModelPath,
    second: ModelPath,
    *,
    output: RequiredOutputPath,
    connect: Annotated[
        list[str] | None,
        typer.Option(
            "--connect",
            metavar="OUT=IN",
            help="Connect an output of the first model to an input of the second. May be repeated. By "
            "default ports of equal names are connected.",
        ),
    ] = None,
    apart: Annotated[
        bool, typer.Option("--apart", help="Connect nothing: the models are side by side.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="OUT", help="Keep a connected output as an output. May be repeated."),
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="P1,P2",
            help="Put a prefix before the names of values and nodes of each model; one may be empty.",
        ),
    ] = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Join two models into one.

    Outputs of the first become inputs of the second. The model with the older operator sets is converted, and
    names that both have become unique. Ports whose types contradict each other are an error, and the exit
    code is 1.
    """
    refuse_two_reports(output, as_json=as_json)
    if apart and connect:
        refuse("--apart connects nothing, and --connect does; pass one of them")
    connections: dict[str, list[str]] = {}
    for made, taken in [pair(word, "OUT=IN", "hidden=states") for word in connect or ()]:
        connections.setdefault(made, []).append(taken)
    screen = report_screen(output)
    found = merge_and_report(
        load_any(first),
        load_any(second),
        connections if connections or apart else None,
        None if prefix is None else _prefixes(prefix),
        keep_outputs=keep or (),
        registry=registry_of(operators, documents),
    )
    save_any(found.model, output)
    if as_json:
        write_json(_as_json(found))
        return
    _show(screen, found)
    report_saved(screen, output)


def _prefixes(text: str) -> tuple[str, str]:
    first, separated, second = text.partition(",")
    if not separated or "," in second:
        refuse(f"--prefix {quote(text)}: write two prefixes with a comma between them, such as a_,b_")
    return first, second


def _show(screen: Screen, found: Merging) -> None:
    screen.table([(plain(made), "→", plain(taken)) for made, taken in found.connected], "cyan")
    for which, versions in zip(("first", "second"), found.converted, strict=True):
        listed = ", ".join(
            f"opset {version} of {domain or 'ai.onnx'}" for domain, version in versions.items()
        )
        if listed:
            screen.line(plain(f"the {which} model converted to {listed}"))
    for name in found.renamed[:_MOST_SHOWN]:
        which = ("first", "second")[name.model]
        screen.line(plain(f"{name.kind} {quote(name.old)} of the {which} model is now {quote(name.new)}"))
    if len(found.renamed) > _MOST_SHOWN:
        screen.line(f"and {counted(len(found.renamed) - _MOST_SHOWN, 'other name')}")


def _as_json(found: Merging) -> dict[str, Any]:
    return {
        "connected": [{"output": made, "input": taken} for made, taken in found.connected],
        "converted": [{domain or "ai.onnx": v for domain, v in one.items()} for one in found.converted],
        "renamed": [name._asdict() for name in found.renamed],
    }
