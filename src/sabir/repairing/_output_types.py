"""The repair of outputs of subgraphs without a declared type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.inference import Inference
from sabir.ir import with_dims
from sabir.repairing._declaring import repair
from sabir.repairing._dims import is_plain
from sabir.repairing._repair import Repair, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking import GraphSite, Survey
    from sabir.ir import Graph, Model, Type, Value


@repair("GRAPH015", "The inferred type is declared, if inference finds one.")
def declare_subgraph_outputs(task: Task) -> Iterator[Repair]:
    """Declare the inferred types of outputs of subgraphs that have none."""
    if "GRAPH015" not in task.selected:
        return
    untyped = {v: (s, i) for s in task.survey.graphs if s.kind == "subgraph" for i, v in _untyped(s)}
    if not untyped:
        return
    inferred = _inferred_types(task.survey)
    for value, (site, index) in untyped.items():
        type_ = inferred.get(value)
        if type_ is not None:
            # the names that inference invents for dimensions are not part of the model
            value.type = with_dims(type_, lambda d: d if is_plain(d) else None)
            where = site.where.at("output", index=index, name=value.name)
            yield Repair("GRAPH015", f"declared the output {quote(value.name)} as {value.type}", where)


def _untyped(site: GraphSite) -> Iterator[tuple[int, Value]]:
    for index, value in enumerate(site.graph.outputs):
        if value is not None and value.type is None and value.home is site.graph:
            yield index, value


def _inferred_types(survey: Survey) -> dict[Value, Type]:
    """Return the inferred types of a model's values; the declared ones are restored afterwards."""
    values = [v for g in _graphs(survey.model) for v in g.defined()]
    declared = [v.type for v in values]
    inference = Inference(survey.model, registry=survey.registry)
    inference.run()
    inference.annotate()
    inferred = {v: v.type for v in values if v.type is not None}
    for value, type_ in zip(values, declared, strict=True):
        value.type = type_
    return inferred


def _graphs(model: Model) -> Iterator[Graph]:
    for root in model.graphs():
        yield from root.scopes()
