"""One run of a model, and engines for models from anywhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sabir.base import SabirError, UnsupportedError, run_with_limits
from sabir.evaluation._feeds import shown_class
from sabir.evaluation._requests import read_request
from sabir.files import OpenedFile
from sabir.ir import Model, drop_constants
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.base import Limits
    from sabir.schema import Registry

T = TypeVar("T")


def evaluate(
    model: Model | str | os.PathLike[str] | bytes,
    feeds: Mapping[str, Any] | Sequence[Any],
    outputs: str | Sequence[str] | None = None,
    *,
    strict: bool = False,
    newer_opsets: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> dict[str, Any]:
    """Return what a model computes from `feeds`, by output name.

    `model` is a model, or the path or the bytes of a file. `feeds` maps input names to arrays (lists for
    sequences, dicts for maps, None for an empty optional), or has one value for each input in order.
    `outputs` is a name or several, by default all outputs. `strict` makes an error of what contradicts a
    declared type or shape, else a warning. With `newer_opsets` an operator set newer than any known one
    counts as the newest. `registry` has the operators, those of the standard by default. `limits` bounds what
    the run may spend, by default as `Limits()` does.

    Raises FileError or WireError for a file that cannot be read, and SchemaError, UnsupportedError,
    FeedError, LimitError or EvaluationError, each naming the node or input.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> sabir.evaluate(model, {'x': [-1.0, 2.0]})['y']
    array([0., 2.], dtype=float32)
    """
    # ruff: ignore[import-outside-top-level]  sessions of compiled models need no interpreter
    from sabir.evaluation._engine import Runner

    def run() -> dict[str, Any]:
        engine = make_engine(model, lambda m: Runner(m, registry, strict=strict, newer_opsets=newer_opsets))
        request = read_request(feeds, outputs, engine.inputs)
        return engine.run(request.feeds, request.outputs)

    return run_with_limits(limits, run)


def make_engine(source: Model | str | os.PathLike[str] | bytes | OpenedFile, make: Callable[[Model], T]) -> T:
    """Return the engine that `make` returns for a model, which is loaded from a file or bytes if need be.

    An error of `make` names the file. The constants of a model that is loaded here are dropped afterwards:
        nothing else refers to it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> make_engine(sabir.dumps(model), Runner).outputs[0].name
    'y'
    """
    model = source if isinstance(source, Model) else _loaded(source)
    try:
        engine = make(model)
    except SabirError as error:
        if model.path is None:
            raise
        raise error.located(str(model.path)) from error
    if model is not source:
        for graph in model.graphs():
            drop_constants(graph)
    return engine


def _loaded(source: object) -> Model:
    # ruff: ignore[import-outside-top-level]  a model that is built in memory needs no readers
    from sabir.serial import load, load_opened

    if isinstance(source, OpenedFile):
        return load_opened(source)
    if not isinstance(source, (str, os.PathLike, bytes, bytearray, memoryview)) and not hasattr(
        source, "read"
    ):
        advice = "; pass its `SerializeToString()`" if hasattr(source, "SerializeToString") else ""
        raise UnsupportedError(
            f"a model is a sabir.Model, the path of a file or its bytes; got {shown_class(source)}{advice}"
        )
    return load(cast("str | os.PathLike[str] | bytes", source))
