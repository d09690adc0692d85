"""The arguments of a run: feeds and requested outputs, in several forms and both orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from sabir.base import FeedError
from sabir.evaluation._feeds import shown_class

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.evaluation._feeds import ModelPort


class Request(NamedTuple):
    """The feeds by name and the requested outputs; `outputs_first` if these were the first argument.

    >>> Request({'x': [1.0]}, ('y',)).outputs
    ('y',)
    """

    feeds: Mapping[str, Any]
    outputs: tuple[str, ...] | None
    outputs_first: bool = False


def read_request(first: Any, second: Any, inputs: Sequence[ModelPort]) -> Request:
    """Return the request that two arguments of a run mean: feeds and outputs, or outputs and feeds.

    Feeds are a dict, a list or tuple of values in the order of the inputs, or one array; outputs a name or
    several. In the second order, which is onnxruntime's, no names mean all outputs. Raises FeedError for
    anything else.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> read_request(None, {'x': 1.0}, Runner(model).inputs).outputs_first
    True
    """
    if isinstance(first, Mapping):
        if isinstance(second, Mapping):
            raise FeedError(
                "both arguments of the run are dicts; pass one dict of feeds, and names of outputs"
            )
        return Request(cast("Mapping[str, Any]", first), _names(second))
    if second is None or (_is_names(second) and first is not None):
        return Request(_by_name(first, inputs), _names(second))
    return Request(_by_name(second, inputs), _names(first) or None, outputs_first=True)


def _is_names(value: Any) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in cast("list[Any]", value))


def _names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, str):
        return (value,)
    names = tuple(cast("Iterable[Any]", value)) if isinstance(value, Iterable) else (value,)
    wrong = next((n for n in names if not isinstance(n, str)), None)
    if wrong is not None:
        raise FeedError(f"outputs are requested by name; got {shown_class(wrong)}")
    return names


def _by_name(feeds: Any, inputs: Sequence[ModelPort]) -> Mapping[str, Any]:
    """Return feeds by name; by position they go to all inputs, or to those that need one."""
    if isinstance(feeds, Mapping):
        return cast("Mapping[str, Any]", feeds)
    if isinstance(feeds, (list, tuple)):
        values = cast("Sequence[Any]", feeds)
    elif hasattr(feeds, "__array__"):
        values = [feeds]
    else:
        raise FeedError(
            f"pass the feeds as a dict from input names to arrays; got {shown_class(feeds)}{_listed(inputs)}"
        )
    needed = [port.name for port in inputs if not port.optional]
    names = needed if len(values) == len(needed) else [port.name for port in inputs]
    if len(values) != len(names):
        raise FeedError(
            "feeds without names are a list with one value for each input; "
            f"got {len(values)} for {len(names)}{_listed(inputs)}"
        )
    return dict(zip(names, values, strict=True))


def _listed(inputs: Sequence[ModelPort]) -> str:
    listed = ", ".join(repr(port.name) for port in inputs)
    return f"; the inputs are {listed}" if listed else "; the model has no inputs"
