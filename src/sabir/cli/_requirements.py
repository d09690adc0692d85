"""`sabir show --requirements`: what a model requires of its reader, and whether a consumer can read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from sabir.base import counted
from sabir.cli._completion import consumer_names
from sabir.cli._facts import operator_name
from sabir.cli._screen import plain
from sabir.cli._versions import opsets_of
from sabir.consumers import Consumer, find_consumer, requirements
from sabir.ir import least_ir_of_imports, opsets_of_ir
from sabir.schema import Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from sabir.base import Location
    from sabir.cli._screen import Screen
    from sabir.consumers import ImportUse, Obstacle, OperatorUse, Requirements, UnknownUse
    from sabir.ir import Model
    from sabir.schema import Registry

RequirementsOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--requirements",
        help="Show what a program must have to read and run the model: IR version, operator sets, operators "
        "by version, features, element types.",
    ),
]
ConsumerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--for",
        metavar="NAME",
        help="Show the requirements, and whether this consumer has them: onnxruntime-1.20, onnx-1.17.0.",
        autocompletion=consumer_names,
    ),
]
OpsetsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--opset",
        metavar="[DOMAIN=]N",
        help="As --for, for a consumer with this operator set; beside --for, one that it has too. "
        "May be repeated.",
    ),
]
IrOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--ir",
        metavar="N",
        min=1,
        help="As --for, for a consumer that reads up to this IR version; by default the oldest one that has "
        "the operator sets.",
    ),
]
_MOST_LOCATIONS = 5


def consumer_of(name: str | None, opsets: Iterable[str] | None, ir_version: int | None) -> Consumer | None:
    """Return the consumer that the options describe, or None without any; raises UnsupportedError."""
    stated = opsets_of(opsets)
    if name is not None:
        known = find_consumer(name)
        return Consumer(known.name, {**known.opsets, **stated}, ir_version or known.ir_version)
    if stated:
        return Consumer("the target", stated, ir_version or least_ir_of_imports(stated))
    return None if ir_version is None else Consumer("the target", opsets_of_ir(ir_version), ir_version)


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of a model, and what keeps the consumer, if one was named, from reading it."""

    found: Requirements
    consumer: Consumer | None
    obstacles: list[Obstacle]

    @classmethod
    def of(cls, model: Model, registry: Registry, consumer: Consumer | None) -> Self:
        """Return the report about a model."""
        found = requirements(model, registry=registry)
        return cls(found, consumer, [] if consumer is None else found.obstacles(consumer))

    def show(self, screen: Screen) -> None:
        """Write the report."""
        found = self.found
        causes = f" ({', '.join(map(plain, found.least_ir_causes))})" if found.least_ir_causes else ""
        screen.table([("IR", f"{found.ir_version}, needs {found.least_ir}{causes}")], "cyan")
        screen.heading("Operator sets")
        screen.table(map(_import_row, found.imports), "cyan", "right")
        screen.heading("Operators", counted(sum(use.calls for use in found.operators), "node"))
        screen.table(map(_operator_row, found.operators), "cyan", "right")
        if found.functions:
            screen.heading("Calls of functions")
            screen.table(map(_operator_row, found.functions), "cyan", "right")
        if found.features:
            screen.heading("Features")
            rows = [(f.name, f"IR {f.since}" if f.since else "", f"{f.uses:,}") for f in found.features]
            screen.table(rows, "cyan", "", "right")
        screen.heading("Element types")
        screen.line(f"   {', '.join(e.name for e in found.element_types) or 'none'}")
        if found.unknown:
            screen.heading("Unknown")
            screen.lines(map(_unknown_line, found.unknown))
        if self.consumer is not None:
            verdict = "Not accepted" if self.obstacles else "Accepted"
            screen.heading(f"{verdict} by {plain(self.consumer.name)}")
            screen.lines(_obstacle_lines(self.obstacles))

    def as_json(self) -> dict[str, Any]:
        """Return the report for JSON."""
        data = _requirements_json(self.found)
        if self.consumer is not None:
            opsets = {domain or "ai.onnx": version for domain, version in self.consumer.opsets.items()}
            ir_version = self.consumer.ir_version
            data["consumer"] = {"name": self.consumer.name, "ir_version": ir_version, "opsets": opsets}
            data["obstacles"] = [_obstacle_json(obstacle) for obstacle in self.obstacles]
        return data


def _operator_row(use: OperatorUse) -> tuple[str, str]:
    return plain(_callee_name(use)), f"{use.calls:,}"


def _callee_name(use: OperatorUse) -> str:
    return str(use.callee) if isinstance(use.callee, Version) else operator_name(use.callee)


def _unknown_line(use: UnknownUse) -> str:
    first = "" if use.calls == 1 else "first "
    return f"   {counted(use.calls, 'node')}, {first}{plain(use.location)}: {plain(use.message)}"


def _import_row(use: ImportUse) -> tuple[str, str, str]:
    owner = "" if use.function is None else f", in function {operator_name(use.function)}"
    if not use.calls:
        needs = f"{counted(use.function_calls, 'call')} of functions" if use.function_calls else "unused"
    else:
        least = "not all known" if use.least is None else f"needs {use.least}"
        needs = f"{counted(use.calls, 'node')}, {least}"
    return plain(use.domain or "ai.onnx"), str(use.version), plain(f"{needs}{owner}")


def _obstacle_lines(obstacles: Iterable[Obstacle]) -> Iterator[str]:
    """Yield each sentence once, with the places that it is about."""
    places: dict[str, list[Location]] = {}
    for obstacle in obstacles:
        places.setdefault(obstacle.sentence, []).append(obstacle.location)
    for sentence, locations in places.items():
        yield f"   {plain(sentence)}"
        yield from (f"      {plain(place)}" for place in locations[:_MOST_LOCATIONS])
        if len(locations) > _MOST_LOCATIONS:
            yield f"      ... and {len(locations) - _MOST_LOCATIONS:,} more; --json lists all"


def _requirements_json(found: Requirements) -> dict[str, Any]:
    return {
        "ir_version": found.ir_version,
        "least_ir": found.least_ir,
        "least_ir_causes": list(found.least_ir_causes),
        "imports": [
            {
                "domain": use.domain or "ai.onnx",
                "version": use.version,
                "least": use.least,
                "nodes": use.calls,
                "function_calls": use.function_calls,
                "function": None if use.function is None else operator_name(use.function),
            }
            for use in found.imports
        ],
        "operators": {_callee_name(use): use.calls for use in found.operators},
        "functions": {_callee_name(use): use.calls for use in found.functions},
        "features": [
            {"name": f.name, "since": f.since or None, "uses": f.uses, "location": str(f.location)}
            for f in found.features
        ],
        "element_types": [element.name for element in found.element_types],
        "unknown": [
            {"message": use.message, "nodes": use.calls, "location": str(use.location)}
            for use in found.unknown
        ],
    }


def _obstacle_json(obstacle: Obstacle) -> dict[str, Any]:
    return {
        "kind": obstacle.kind,
        "sentence": obstacle.sentence,
        "location": str(obstacle.location),
        "node": None if obstacle.node is None else obstacle.node.name,
    }
