"""Calls: warnings of the operators' own checks, and names of values in attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sabir.base import quote
from sabir.checking._examples import HEAD
from sabir.checking._rule import Problem, rule
from sabir.schema import Version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import GraphSite, Survey

_GRADIENT = """<ir_version: 10, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
g (float x) => (float d) {{ y = Mul(x, x)  d = ai.onnx.preview.training.Gradient<{}>(x) }}"""


@rule(
    "NODE017",
    "A node calls its operator as the text of the operator specifies.",
    source="practice",
    over="model",
    severity="warning",
    note="runtimes accept such a call, but not all in the same way",
    bad=HEAD + "g (float[1,N] x, int64 step, float[4] w) => (float[1,M,3,2] y) { y = STFT(x, step, w) }",
    good=HEAD + "g (float[1,N,1] x, int64 step, float[4] w) => (float[1,M,3,2] y) { y = STFT(x, step, w) }",
)
def calls_as_meant(_: Survey) -> Iterator[Problem]:
    """The operator's own check has no warning: a call may run though the text does not allow it."""
    yield from ()  # the engine adds these warnings, which need inferred types


@rule(
    "NODE018",
    "The 'y', 'xs' and 'zs' attributes name tensors of the graph that contains the node.",
    source="practice",
    over="calls",
    bad=_GRADIENT.format('xs = ["x"], y = "z"'),
    good=_GRADIENT.format('xs = ["x"], y = "y"'),
)
def names_values(site: GraphSite) -> Iterator[Problem]:
    """An attribute that contains names of values contains names of values that the node may read."""
    for callee, places in site.calls.items():
        keys = [a.name for a in callee.attributes if a.names_values] if isinstance(callee, Version) else []
        known = _names_around(site) if keys else set[str]()
        for index, key in ((index, key) for index in places for key in keys):
            attribute = site.nodes[index].attributes.get(key)
            value: Any = () if attribute is None else attribute.value
            names = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value,)
            for name in names:
                if isinstance(name, str) and name not in known:
                    message = f"{key!r} names {quote(name)}, and no graph around the node has such a value"
                    yield Problem(message, site.at_node(index), "name a value of this graph")


def _names_around(site: GraphSite | None) -> set[str]:
    """Return the names of the values of a graph, of those around it, and of the main graph in training."""
    found: set[str] = set()
    while site is not None:
        found.update(v.name for v in (*site.values, *site.visible))
        site = site.outer
    return found
