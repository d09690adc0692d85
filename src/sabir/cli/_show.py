"""`sabir show`: what is in a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import UnsupportedError, counted
from sabir.cli import _weights
from sabir.cli._facts import (
    Facts,
    TensorTotals,
    facts_of,
    nested,
    operator_name,
    semver_text,
    subgraphs,
    version_text,
)
from sabir.cli._json import JsonOption, write_json
from sabir.cli._models import STREAM, ModelPaths, load_any, shown
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._progress import progress_bar
from sabir.cli._requirements import (
    ConsumerOption,
    IrOption,
    Needs,
    OpsetsOption,
    RequirementsOption,
    consumer_of,
)
from sabir.cli._screen import Screen, cut, exact_bytes_text, plain
from sabir.cli._usage import FAULTY
from sabir.drawing import box_text, columns, one_line
from sabir.ir import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.ir import Graph, Model, Node, Value

EXAMPLES = (
    "sabir show model.onnx",
    "sabir show model.onnx --nodes | grep Conv",
    "sabir show model.onnx --tree",
    "sabir show model.onnx --graph",
    "sabir show model.onnx --weights",
    "sabir show model.onnx --for onnxruntime-1.20",
    "sabir show model.onnx --opset 17 --opset ai.onnx.ml=3 --ir 8",
    "sabir show models/*.onnx --json",
)
_NOTHING = "-"  # an omitted optional input or output
_FIRST_IR_OF_DEFAULTS = 4  # before it every initializer had to be listed as an input too


def show(  # ruff: ignore[too-many-arguments]  each is an option
    models: ModelPaths,
    *,
    nodes: Annotated[
        bool, typer.Option("--nodes", help="List every node: inputs → outputs, with types.")
    ] = False,
    tree: Annotated[
        bool, typer.Option("--tree", help="Show the subgraphs of nodes, and functions, as a tree.")
    ] = False,
    graph: Annotated[
        bool, typer.Option("--graph", help="Draw the main graph, of at most 300 nodes, as boxes and lines.")
    ] = False,
    weights: Annotated[
        bool,
        typer.Option("--weights", help="List every initializer: type, bytes, min, max, mean, zeros, NaN."),
    ] = False,
    needs: RequirementsOption = False,
    target: ConsumerOption = None,
    opsets: OpsetsOption = None,
    ir_version: IrOption = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the inputs, outputs, operators, parameters of a model.

    Tensors are read only for --weights; without it a large model shows as fast as a small one. With --for,
    --opset or --ir the exit code is 1 if that consumer does not accept a model.
    """
    consumer, registry = consumer_of(target, opsets, ir_version), registry_of(operators, documents)
    loaded = [(path, load_any(path)) for path in models]
    wanted = needs or consumer is not None
    reports = [Needs.of(model, registry, consumer) if wanted else None for _, model in loaded]
    shown_models = [(path, model, report) for (path, model), report in zip(loaded, reports, strict=True)]
    if as_json:
        write_json([_as_json(*parts, nodes=nodes, weights=weights) for parts in shown_models])
    else:
        screen = Screen()
        for place, parts in enumerate(shown_models):
            if len(loaded) > 1:
                screen.line(("\n" if place else "") + screen.paint(f"== {plain(parts[0])}", bold=True))
            _show(screen, *parts, nodes=nodes, tree=tree, graph=graph, weights=weights)
    if any(report is not None and report.obstacles for report in reports):
        raise typer.Exit(FAULTY)


def _show(
    screen: Screen,
    path: Path,
    loaded: Model,
    report: Needs | None,
    *,
    nodes: bool,
    tree: bool,
    graph: bool,
    weights: bool,
) -> None:
    drawn = list(_drawn(screen, path, loaded.graph)) if graph else []
    screen.line(screen.paint(shown(Path(path.name)), bold=True))
    if report is None:
        _summary(screen, loaded)
    else:
        report.show(screen)
    if weights:
        screen.heading("Weights")
        with progress_bar("reading") as progress:
            rows = [_weights.row(weight) for weight in _weights.weights(loaded, progress)]
        screen.table([_weights.COLUMNS, *rows], "cyan", "", *["right"] * 6)
    if nodes:
        screen.heading("Nodes")
        screen.lines(_nodes(screen, loaded))
    if tree:
        screen.heading("Tree")
        screen.lines(_trees(screen, loaded))
    if graph:
        screen.heading("Graph")
        screen.lines(drawn)


def _summary(screen: Screen, loaded: Model) -> None:
    facts = facts_of(loaded)
    screen.table(_header(loaded, facts), "cyan")
    _ports(screen, loaded)
    screen.heading("Operators", counted(facts.nodes, "node"))
    screen.table([(plain(name), f"{count:,}") for name, count in facts.operators], "cyan", "right")
    if loaded.functions:
        screen.heading("Functions", f"{len(loaded.functions)}")
        rows = [
            (plain(operator_name(f)), _interface(f.graph), counted(len(f.graph), "node"))
            for f in loaded.functions
        ]
        screen.table(rows, "cyan")


def _as_json(path: Path, model: Model, report: Needs | None, *, nodes: bool, weights: bool) -> dict[str, Any]:
    facts = facts_of(model)
    data: dict[str, Any] = {
        "path": None if path == STREAM else str(path),
        "graph": model.graph.name,
        "domain": model.domain,
        "producer": {"name": model.producer_name, "version": model.producer_version},
        "version": model.version,
        "semver": semver_text(model.version),
        "ir_version": model.ir_version,
        "opsets": {domain or "ai.onnx": version for domain, version in model.opsets.items()},
        "doc": model.doc,
        "metadata": dict(model.metadata or {}),
        "inputs": [_port_json(v) | {"optional": v in model.graph.initializers} for v in model.graph.inputs],
        "outputs": [_port_json(v) for v in model.graph.outputs if v is not None],
        "nodes": facts.nodes,
        "operators": dict(facts.operators),
        "functions": [operator_name(f) for f in model.functions],
        "training": len(model.training),
        "parameters": _totals_json(facts.parameters),
        "external": {location: _totals_json(totals) for location, totals in facts.external.items()},
    }
    if report is not None:
        data["requirements"] = report.as_json()
    if nodes:
        data["node_list"] = [_node_json(place, node) for place, _, node in nested(model.graph)]
    if weights:
        with progress_bar("reading") as progress:
            data["weights"] = [_weights.as_json(w) for w in _weights.weights(model, progress)]
    return data


def _port_json(value: Value) -> dict[str, Any]:
    return {"name": value.name, "type": None if value.type is None else str(value.type)}


def _totals_json(totals: TensorTotals) -> dict[str, int]:
    return {"tensors": totals.tensors, "elements": totals.elements, "bytes": totals.bytes}


def _node_json(place: str, node: Node) -> dict[str, Any]:
    return {
        "place": place,
        "operator": operator_name(node),
        "name": node.name,
        "inputs": [None if v is None else v.name for v in node.inputs],
        "outputs": [None if v is None else v.name for v in node.outputs],
    }


def _header(model: Model, facts: Facts) -> Iterator[tuple[str, str]]:
    producer = f"{model.producer_name} {model.producer_version}".strip()
    for label, text in (("graph", model.graph.name), ("domain", model.domain), ("producer", producer)):
        if text:
            yield label, cut(text)
    if model.version:
        yield "version", version_text(model.version)
    yield "IR", str(model.ir_version)
    yield (
        "opsets",
        ", ".join(f"{plain(d or 'ai.onnx')} {version}" for d, version in model.opsets.items()) or "none",
    )
    if model.doc:
        yield "doc", cut(model.doc.strip(), 300)
    for key, value in (model.metadata or {}).items():
        yield "metadata", f"{cut(key, 60)}: {cut(value)}"
    if model.training:
        yield "training", counted(len(model.training), "pair") + " of graphs"
    if model.path is not None:
        yield "file", exact_bytes_text(model.path.stat().st_size)
    totals = facts.parameters
    yield (
        "parameters",
        f"{totals.elements:,} in {counted(totals.tensors, 'tensor')}, {exact_bytes_text(totals.bytes)}",
    )
    for location, totals in facts.external.items():
        size = f"{counted(totals.tensors, 'tensor')}, {exact_bytes_text(totals.bytes)}"
        yield "external", f"{cut(location)}: {size}"


def _ports(screen: Screen, model: Model) -> None:
    graph = model.graph
    defaults = [v for v in graph.inputs if v in graph.initializers]
    old = model.ir_version < _FIRST_IR_OF_DEFAULTS
    inputs = [v for v in graph.inputs if not old or v not in graph.initializers]
    screen.heading("Inputs")
    noted = set(() if old else defaults)
    screen.table([(*_described(v), "optional" if v in noted else "") for v in inputs], "cyan", "", "dim")
    if old and defaults:
        screen.line(
            f"   and {counted(len(defaults), 'initializer')}, which this IR version lists as inputs too"
        )
    screen.heading("Outputs")
    screen.table([_described(v) for v in graph.outputs if v is not None], "cyan")


def _described(value: Value) -> tuple[str, str]:
    return plain(value.name), plain(value.type or "of unknown type")


def _interface(graph: Graph) -> str:
    return f"({_names(graph.inputs)}) → ({_names(graph.outputs)})"


def _names(values: Iterable[Value | None]) -> str:
    return ", ".join(_NOTHING if v is None else plain(v.name) for v in values)


def _typed(values: Iterable[Value | None]) -> str:
    return ", ".join(_NOTHING if v is None else _with_type(v) for v in values)


def _with_type(value: Value) -> str:
    kind = value.type or (value.constant.type if isinstance(value.constant, Tensor) else None)
    return f"{plain(value.name)}: {plain(kind)}" if kind else plain(value.name)


def _call(screen: Screen, node: Node) -> str:
    name = screen.paint(f" {plain(node.name)}", dim=True) if node.name else ""
    return screen.paint(plain(operator_name(node)), fg="cyan") + name


def _nodes(screen: Screen, model: Model) -> Iterator[str]:
    yield from _listed(screen, model.graph)
    for function in model.functions:
        yield f"   function {plain(operator_name(function))} {_interface(function.graph)}"
        yield from _listed(screen, function.graph)


def _listed(screen: Screen, graph: Graph) -> Iterator[str]:
    width = len(str(len(graph)))
    for place, depth, node in nested(graph):
        call = "  " * depth + _call(screen, node)
        yield f"   {place:>{width}}  {call}  {_typed(node.inputs)} → {_typed(node.outputs)}"


def _trees(screen: Screen, model: Model) -> Iterator[str]:
    yield f"   graph {plain(model.graph.name)} {_interface(model.graph)}"
    yield from _tree(screen, model.graph, "   ")
    for function in model.functions:
        yield f"   function {plain(operator_name(function))} {_interface(function.graph)}"
        yield from _tree(screen, function.graph, "   ")


def _tree(screen: Screen, graph: Graph, indent: str) -> Iterator[str]:
    nodes = list(graph)
    for place, node in enumerate(nodes):
        branch, below = _branch(place, nodes)
        yield f"{indent}{branch}{_call(screen, node)}  {_names(node.inputs)} → {_names(node.outputs)}"
        inner = subgraphs(node)
        for at, (label, body) in enumerate(inner):
            twig, under = _branch(at, inner)
            yield f"{indent}{below}{twig}{plain(label)}: {plain(body.name)} {_interface(body)}"
            yield from _tree(screen, body, indent + below + under)


def _drawn(screen: Screen, path: Path, graph: Graph) -> Iterator[str]:
    """Yield the picture of a graph, cut at the right edge of the terminal; raises UnsupportedError."""
    try:
        rows = box_text(graph)
    except UnsupportedError as error:
        advice = f"`sabir view {shown(path)} -o page.html` shows it, `sabir extract` takes a part"
        raise UnsupportedError(f"{error}; {advice}") from None
    wide = max(map(columns, rows), default=0)
    if not screen.is_terminal or wide <= screen.width:
        yield from rows
        return
    yield from (one_line(row, screen.width) for row in rows)
    yield (
        f"the picture has {wide} columns, and the terminal {screen.width}: the rest is cut; "
        "a file or a pipe gets all of it"
    )


def _branch(place: int, among: Sequence[object]) -> tuple[str, str]:
    """Return the line characters before an entry, and before the lines below it."""
    return ("└─ ", "   ") if place == len(among) - 1 else ("├─ ", "│  ")
