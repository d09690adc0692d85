"""The feeds of `sabir run`: values from files, and random ones of the declared types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import FeedError, listed_names, quote, suggest
from sabir.cli._files import as_declared, present_type, read_archive, read_value
from sabir.cli._random import random_value
from sabir.ir import Expr, OptionalType, SequenceType, TensorType
from sabir.serial import Normalization

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sabir.evaluation import ModelPort
    from sabir.ir import Array, Dim, Type


class Feed(NamedTuple):
    """The value of one input, and its origin: a file's name, or `random`."""

    value: Any
    origin: str


class Feeds(NamedTuple):
    """The feeds of a run by input name, and a sentence for each size that nothing states."""

    values: dict[str, Feed]
    assumed: tuple[str, ...] = ()


class FeedOptions(NamedTuple):
    """The options about inputs: files and shapes by input, archives of several inputs, sizes by variable."""

    files: Mapping[str, Path] = {}
    archives: Sequence[Path] = ()
    dims: Mapping[str, int] = {}
    shapes: Mapping[str, tuple[int, ...]] = {}
    seed: int = 0
    normalization: Normalization = Normalization()


def gather(ports: Sequence[ModelPort], options: FeedOptions) -> Feeds:
    """Return a feed for each input: from its file, else random unless the input has a default.

    A dimension variable has the size that `dims`, `shapes` or the shape of a file states, else 1. Raises
    FeedError or FileError, each naming the input or the file.
    """
    by_name = {port.name: port for port in ports}
    _reject_unknown("--input", options.files, by_name, "input")
    _reject_unknown("--shape", options.shapes, by_name, "input")
    variables = {name for port in ports for name in _variables(port.type)}
    _reject_unknown("--dim", options.dims, variables, "dimension variable")
    read = dict(_from_archives(options.archives, by_name))
    for name, path in options.files.items():
        read[name] = Feed(read_value(path, by_name[name].type, name, options.normalization), path.name)
    types = {name: _with_shape(port, options.shapes) for name, port in by_name.items()}
    sizes: dict[str, int] = {}
    for name, feed in read.items():
        sizes.update(_sizes_of(feed.value, by_name[name].type))
    for name, shape in options.shapes.items():
        sizes.update(_matched(shape, by_name[name].type))
    sizes.update(options.dims)
    rng = np.random.default_rng(options.seed)
    assumed: list[str] = []
    values: dict[str, Feed] = {}
    for name, port in by_name.items():
        if name in read:
            values[name] = read[name]
        elif not port.optional:
            assumed += _assumptions(name, types[name], sizes)
            whole = {**dict.fromkeys(variables, 1), **sizes}
            values[name] = Feed(random_value(types[name], whole, rng, f"input {quote(name)}"), "random")
    return Feeds(values, tuple(dict.fromkeys(assumed)))


def _reject_unknown(option: str, names: Iterable[str], known: Iterable[str], noun: str) -> None:
    for name in names:
        if name not in known:
            near = suggest(name, known) or f"; the {noun}s are {listed_names(sorted(known))}"
            raise FeedError(f"{option} {quote(name)}: no {noun} has this name{near}")


def _from_archives(archives: Iterable[Path], ports: Mapping[str, ModelPort]) -> Iterator[tuple[str, Feed]]:
    for path in archives:
        for name, array in read_archive(path).items():
            if name not in ports:
                near = suggest(name, ports) or f"; its inputs are {listed_names(ports)}"
                raise FeedError(f"{path}: the model has no input {quote(name)}{near}")
            yield name, Feed(as_declared(array, present_type(ports[name].type), path), path.name)


# dimensions


def _with_shape(port: ModelPort, shapes: Mapping[str, tuple[int, ...]]) -> Type | None:
    """Return the type of an input, with the shape that `--shape` specifies."""
    shape = shapes.get(port.name)
    if shape is None:
        return port.type
    kind = port.type
    option = f"--shape {quote(port.name)}"
    if not isinstance(kind, TensorType):
        raise FeedError(f"{option}: the input is {kind}, not a tensor")
    if kind.shape is not None:
        fixed = [d if isinstance(d, int) else None for d in kind.shape]
        if len(fixed) != len(shape) or any(f not in {None, s} for f, s in zip(fixed, shape, strict=True)):
            raise FeedError(f"{option}: {list(shape)} does not fit {kind}, the declared type")
    return TensorType(kind.element, shape)


def _assumptions(name: str, kind: Type | None, sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each dimension of a random input that is 1 because nothing states it."""
    for shape in _shapes(kind):
        for axis, dim in enumerate(shape):
            if dim is None:
                yield f"axis {axis} of {quote(name)} is taken as 1; choose its size with --shape"
        for variable in sorted({s for d in shape if isinstance(d, Expr) for s in d.symbols} - sizes.keys()):
            yield f"the dimension {quote(variable)} is taken as 1; choose its size with --dim"


def _shapes(kind: Type | None) -> Iterator[tuple[Dim, ...]]:
    if isinstance(kind, TensorType) and kind.shape is not None:
        yield kind.shape
    if isinstance(kind, SequenceType):
        yield from _shapes(kind.item)


def _variables(kind: Type | None) -> set[str]:
    return {name for shape in _shapes(kind) for dim in shape if isinstance(dim, Expr) for name in dim.symbols}


def _sizes_of(value: Any, kind: Type | None) -> dict[str, int]:
    """Return the sizes of the variables that are alone in a dimension of the declared shape."""
    if not isinstance(value, np.ndarray):  # in a sequence a variable has a size for each item
        return {}
    return _matched(cast("Array", value).shape, kind)


def _matched(sizes: Iterable[int], kind: Type | None) -> dict[str, int]:
    declared = next(_shapes(kind.item if isinstance(kind, OptionalType) else kind), ())
    pairs = zip(declared, sizes, strict=False)
    return {
        str(dim): size
        for dim, size in pairs
        if isinstance(dim, Expr) and dim.symbols == frozenset((str(dim),))
    }
