"""`sabir releases`: the releases of the standard, and the first one that has all that a model uses."""

from __future__ import annotations

# ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.cli._completion import release_names
from sabir.cli._json import JsonOption, write_json
from sabir.cli._models import STREAM, load_any, shown
from sabir.cli._screen import Screen
from sabir.cli._usage import refuse
from sabir.ir import first_release, release
from sabir.ir import releases as all_releases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Release

EXAMPLES = (
    "sabir releases",
    "sabir releases 1.17.0",
    "sabir releases --model model.onnx",
    "sabir releases --json",
)


def releases(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Names of releases, such as 1.17.0. Without a name all are listed.",
            autocompletion=release_names,
        ),
    ] = None,
    *,
    models: Annotated[
        list[Path] | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Show the first release that has the IR version, the operator sets and the features of this "
            "model; - is standard input.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the releases of the standard with their versions.

    With --model, show the first release that has all that a model declares and uses.
    """
    if models:
        if names:
            refuse("name releases, or models with --model, not both")
        _show_models(models, as_json=as_json)
        return
    chosen = [release(name) for name in names] if names else all_releases()
    if as_json:
        write_json([_as_json(r) for r in chosen])
    else:
        Screen().table(_rows(chosen), "bold", *["right"] * (1 + len(_columns(chosen))))


def _show_models(models: Sequence[Path], *, as_json: bool) -> None:
    found = [(path, first_release(load_any(path))) for path in models]
    if as_json:
        write_json([{"path": None if p == STREAM else str(p), "release": _as_json(r)} for p, r in found])
        return
    screen = Screen()
    for path, first in found:
        screen.line(f"{shown(path)}: {first.name} (IR {first.ir_version}, opset {first.opsets['']})")


def _columns(chosen: Sequence[Release]) -> list[str]:
    """Return the domains that any of the releases has."""
    return list(dict.fromkeys(domain for r in chosen for domain in r.opsets))


def _rows(chosen: Sequence[Release]) -> Iterator[tuple[str, ...]]:
    domains = _columns(chosen)
    yield ("release", "IR", *(domain or "ai.onnx" for domain in domains))
    for r in chosen:
        yield (r.name, str(r.ir_version), *(str(r.opsets.get(domain, "")) for domain in domains))


def _as_json(found: Release) -> dict[str, Any]:
    opsets = {domain or "ai.onnx": version for domain, version in found.opsets.items()}
    return {"name": found.name, "ir_version": found.ir_version, "opsets": opsets}
