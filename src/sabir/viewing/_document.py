"""A model as the data of its page: one value of JSON with all graphs, and what Sabir knows about them.

Graphs, nodes, values, boxes, operators and types are numbered lists, in which the others refer by number. A
box has its items as numbers: n is node n, -1 - n is box n. Texts of the model are cut; a weight is a summary.
The size of the document depends on the number of nodes, and not on the size of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError, counted, run_with_limits
from sabir.inference import change_model_dims
from sabir.ir import check_is_model
from sabir.opsets import STANDARD
from sabir.viewing._findings import found_in
from sabir.viewing._texts import header_of
from sabir.viewing._writer import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sabir.base import Limits
    from sabir.ir import Model, Node
    from sabir.schema import Registry
    from sabir.viewing._layers import Layer

MOST_NODES = 200_000


@dataclass(frozen=True)
class ModelPage:
    """The data of a page, and the number that each node of the model has in it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> page_of(model).numbers[model.graph[0]]
    0
    """

    data: dict[str, Any]
    numbers: Mapping[Node, int]

    def add_layer(self, layer: Layer) -> None:
        """Add values of nodes that the page can show as colours."""
        self.data["layers"].append(layer.as_json())


def page_of(
    model: Model,
    dims: Mapping[str, int | str | None] | None = None,
    *,
    name: str = "",
    beside: Model | None = None,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> ModelPage:
    """Return the data of a model's page; the model is not changed.

    `dims` sets dimension variables as `set_dims` does, `name` is what the page calls the model. The main
    graph of a model `beside` it is shown too. Large tensors are sampled.

    Raises UnsupportedError for more than 200,000 nodes, NotFoundError for a dimension that the model does not
    have, and LimitError beyond `limits`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> data = page_of(model).data
    >>> data['operators'][data['nodes'][0]['op']]['name'], data['types']
    ('Relu', ['float[N]'])
    """
    shown = [_with_dims(one, dims, registry, limits) for one in (model, beside) if one is not None]
    nodes = sum(1 for one in shown for _ in _all_nodes(one))
    if nodes > MOST_NODES:
        raise UnsupportedError(
            f"a page shows at most {counted(MOST_NODES, 'node')}, and the model has {nodes:,}; "
            "`sabir.extract` returns a part of a model"
        )
    page = run_with_limits(limits, _written, shown, name, registry)
    originals = [one for one in (model, beside) if one is not None]
    return ModelPage(page.data, dict(_renumbered(originals, shown, page.numbers)))


def _written(models: Sequence[Model], name: str, registry: Registry) -> ModelPage:
    model, *others = models
    writer = Writer(registry)
    for other in others:
        writer.add(other, "beside")
    main = writer.add(model, "main")
    data = {
        "model": header_of(model, name),
        "main": main,
        **writer.lists(),
        "findings": found_in(model, writer.numbers, registry),
        "layers": [],
    }
    return ModelPage(data, writer.numbers)


def _with_dims(
    model: Model, dims: Mapping[str, int | str | None] | None, registry: Registry, limits: Limits | None
) -> Model:
    check_is_model(model)
    return change_model_dims(model, dims, registry=registry, limits=limits).model if dims else model


def _renumbered(
    originals: Sequence[Model], shown: Sequence[Model], numbers: Mapping[Node, int]
) -> Iterator[tuple[Node, int]]:
    """Yield the nodes of the caller's models with the numbers of those that were shown."""
    for original, copy in zip(originals, shown, strict=True):
        for node, same in zip(_all_nodes(original), _all_nodes(copy), strict=True):
            if same in numbers:  # a function that another one of the same name hides is not shown
                yield node, numbers[same]


def _all_nodes(model: Model) -> Iterator[Node]:
    for graph in model.graphs():
        yield from graph.all_nodes()
