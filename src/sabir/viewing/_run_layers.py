"""Layers of what runs and the compiler say about the nodes of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import counted
from sabir.drawing import seconds_text
from sabir.scheduling import label_of
from sabir.viewing._layers import Layer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.compilation import Explanation, Profile, Roofline
    from sabir.debugging import Trace
    from sabir.ir import Value
    from sabir.viewing._document import ModelPage

_FINITE, _INFINITE, _NAN = range(3)
_ALONE, _FUSED, _EVALUATED, _IDLE = range(4)


def time_layer(page: ModelPage, profile: Profile, roofline: Roofline) -> Layer:
    """Return the time of each node in a run, in seconds.

    The time of a kernel is divided among the nodes that it computes, which are a group.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.compilation import Profile, Roofline, Timing
    >>> profile = Profile((Timing('nest', ("Relu with output 'y'",), 2e-6, 8, 8),), 3e-6, 1)
    >>> time_layer(page_of(model), profile, Roofline(1e9, 1e9)).values
    {0: 2e-06}
    """
    layer = Layer("time", "Time of a run", unit="s")
    labels = _labels(page)
    lost = 0.0
    for timing in profile.timings:
        nodes = [labels[label] for label in timing.nodes if label in labels]
        if not nodes:
            lost += timing.seconds
            continue
        for node in nodes:
            layer.values[node] = layer.values.get(node, 0.0) + timing.seconds / len(nodes)
            layer.note(node, _timing_text(timing.kind, timing.seconds, len(nodes), timing.fraction(roofline)))
            for decision in timing.decisions:
                if decision.rejected:
                    layer.note(node, decision.text)
        _group(layer, nodes)
    layer.lines.append(
        f"{seconds_text(profile.whole)} a run, median of {profile.runs}; "
        f"one by one {seconds_text(profile.seconds)}"
    )
    if lost:
        layer.lines.append(
            f"{seconds_text(lost)} in kernels of nodes that the model does not have as they are"
        )
    return layer


def decision_layer(page: ModelPage, explanation: Explanation) -> Layer:
    """Return what the compiler made of each node, with its decisions and their reasons.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[4] x) => (float[4] y) { y = Relu (x) }''')
    >>> from sabir.compilation import Compiled
    >>> decision_layer(page_of(model), Compiled(model).explain()).notes
    {0: ['a kernel of kind nest', 'a separate kernel']}
    """
    classes = ("a kernel of its own", "fused with other nodes", "evaluated", "without work in a run")
    layer = Layer("decisions", "What the compiler made of it", classes=classes)
    labels = _labels(page)
    for kernel in (*explanation.prepared, *explanation.kernels):
        nodes = [labels[label] for label in kernel.nodes if label in labels]
        for node in nodes:
            layer.values[node] = _FUSED if len(nodes) > 1 else _ALONE
            layer.note(node, f"a kernel of kind {kernel.kind}")
        _group(layer, nodes)
    for call in explanation.evaluated:
        if call.node in labels:
            layer.values[labels[call.node]] = _EVALUATED
            layer.note(labels[call.node], f"evaluated: {call.reason}")
    for label in explanation.without_work:
        if label in labels:
            layer.values.setdefault(labels[label], _IDLE)
    for decision in explanation.decisions:
        if not decision.nodes:
            layer.lines.append(str(decision))
        for label in decision.nodes:
            if label in labels:
                layer.note(labels[label], decision.text)
    return layer


def trace_layer(page: ModelPage, trace: Trace) -> Layer:
    """Return what the results of each node were in a run: their ranges, and where NaNs are.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Sqrt (x) }''')
    >>> trace_layer(page_of(model), sabir.trace(model, {'x': [4.0, -1.0]})).notes
    {0: ['y: float[2], 2 to 2, mean 2, 1 NaN']}
    """
    layer = Layer("trace", "Values of a run", classes=("finite", "with infinite elements", "with NaNs"))
    producers = _producers(page)
    for value in trace.values:
        node = producers.get(value.name)
        if node is None:
            continue
        found = _NAN if value.nans else _INFINITE if value.infinities else _FINITE
        layer.values[node] = max(layer.values.get(node, _FINITE), found)
        layer.note(node, str(value))
    return layer


def error_layer(page: ModelPage, errors: Iterable[tuple[Value, float]]) -> Layer:
    """Return the largest error of the results of each node, as `RunPair.errors` has them.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Sqrt (x) }''')
    >>> error_layer(page_of(model), [(model.graph[0].output, 0.25)]).values
    {0: 0.25}
    """
    layer = Layer("error", "Error of the other model", combine="max")
    compared = 0
    for value, error in errors:
        node = None if value.node is None else page.numbers.get(value.node)
        if node is None:
            continue
        compared += 1
        layer.values[node] = max(layer.values.get(node, 0.0), error)
        layer.note(node, f"{value.name}: relative error {error:.4g}")
    layer.lines.append(
        f"{counted(compared, 'value')} compared; an error is the root mean square of the differences, "
        "relative to that of the values"
    )
    return layer


def _labels(page: ModelPage) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for node, number in page.numbers.items():
        found.setdefault(label_of(node), number)
    return found


def _producers(page: ModelPage) -> Mapping[str, int]:
    """Return the nodes of main graphs by the names of what they compute."""
    main = page.data["main"]
    nodes = (
        (node, number) for node, number in page.numbers.items() if page.data["nodes"][number]["graph"] == main
    )
    return {v.name: number for node, number in nodes for v in node.outputs if v is not None and v.name}


def _group(layer: Layer, nodes: Sequence[int]) -> None:
    if len(nodes) > 1:
        layer.groups.append(list(nodes))


def _timing_text(kind: str, seconds: float, nodes: int, fraction: float | None) -> str:
    shared = f" for {counted(nodes, 'node')} together" if nodes > 1 else ""
    limit = "" if fraction is None else f", {fraction:.0%} of the limit of the machine"
    what = "evaluated" if kind == "evaluated" else f"a kernel of kind {kind}"
    return f"{what}: {seconds_text(seconds)}{shared}{limit}"
