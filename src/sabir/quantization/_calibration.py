"""Calibration: runs of a model that observe the ranges of its activations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import EvaluationError, FeedError, quote
from sabir.ir import FreshNames, Tensor
from sabir.quantization._ranges import Observed
from sabir.runtime import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from sabir.ir import Array, Model, Value
    from sabir.quantization._sources import Feeds
    from sabir.schema import Registry


def observe(
    model: Model,
    values: Collection[Value],
    feeds: Feeds,
    registry: Registry,
    progress: Callable[[int, int], None] | None = None,
    *,
    with_counts: bool,
    allow_infinite: bool = False,
) -> dict[Value, Observed]:
    """Return what values of the main graph have been in runs with the feeds.

    What the feeds have been observed for before is not observed again. The memory is that of the values of
    one run, and with `with_counts` of a histogram for each value. Raises FeedError where there are no feeds
    or a run refuses them, and EvaluationError where a run fails or, unless `allow_infinite`, a value has
    elements that are infinite or no number; else these are left out.
    """
    _name_apart(model)
    found = {
        value: Observed(with_counts=with_counts, allow_infinite=allow_infinite)
        for value in values
        if value.name not in feeds.observed
    }
    inputs = {value.name for value in model.graph.inputs}
    names = [value.name for value in found if value.name not in inputs]
    session = Session(model, registry=registry)
    count = 0
    for count, feed in enumerate(feeds if found else (), 1):
        results = session.run(feed, names) if names else {}
        for value, observed in found.items():
            array = _fed(value, feed) if value.name in inputs else results[value.name]
            try:
                observed.add(array)
            except EvaluationError as error:
                raise EvaluationError(f"the value {quote(value.name)} of run {count}: {error}") from error
        if progress is not None:
            progress(count, feeds.count)
    if found and not count:
        raise FeedError("the calibration data has no feeds; it must have those of one run or more")
    feeds.observed.update({value.name: observed for value, observed in found.items()})
    return {value: feeds.observed[value.name] for value in values}


def _fed(value: Value, feed: Mapping[str, Any]) -> Array:
    """Return what an input is in a run: its feed, or else its default."""
    if value.name in feed:
        return np.asarray(feed[value.name])
    if not isinstance(value.constant, Tensor):
        raise FeedError(f"the calibration data has no feed for the input {quote(value.name)}")
    return value.constant.array()


def _name_apart(model: Model) -> None:
    """Give each value of the main graph a name that no other value has, so that a run can be asked for it."""
    taken: dict[str, Value] = {}
    for graph in model.graph.scopes():
        for value in graph.defined():
            taken.setdefault(value.name, value)
    names = FreshNames(taken)
    for value in model.graph.defined():
        if not value.name or taken.get(value.name) is not value:
            value.name = names.fresh(value.name)
