"""What `sabir run` feeds a model: values from files, and random ones of the declared types."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import ACCIDENTS, ExternalDataError, FeedError, FileError, UnsupportedError, WireError, quote
from sabir.ir import Expr, OptionalType, SequenceType, TensorType
from sabir.serial import load_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from sabir.elements import ElementType
    from sabir.evaluation import ModelPort
    from sabir.ir import Array, Dim, Type

MOST_BYTES = 1 << 31  # of one random input; a model that declares more wants its dimensions looked at
_INTEGERS = 10  # random integers stay below, so that they serve as indices and lengths
_ITEMS = 2  # in a random sequence


class Feed(NamedTuple):
    """What one input is fed, and where it is from: a file's name, or `random`."""

    value: Any
    origin: str


def gather(
    ports: Sequence[ModelPort], files: Mapping[str, Path], dims: Mapping[str, int], seed: int
) -> dict[str, Feed]:
    """Return a feed for each input that has no default: from its file, else random.

    A dimension variable has the size that `dims` or the shape of a file gives it, else 1. Raises FeedError
    or FileError, each naming the input or the file.
    """
    by_name = {port.name: port for port in ports}
    _reject_unknown("--input", files, by_name, "the inputs are")
    known = {name for port in ports for name in _variables(port.type)}
    _reject_unknown("--dim", dims, known, "the dimension variables of the inputs are")
    read = {name: Feed(_read(path, by_name[name].type), path.name) for name, path in files.items()}
    sizes = dict.fromkeys(known, 1)
    for name, feed in read.items():
        sizes.update(_bound(feed.value, by_name[name].type))
    sizes.update(dims)
    rng = np.random.default_rng(seed)
    drawn = (p for p in ports if p.name not in read and not p.optional)
    random = {p.name: Feed(_random(p.type, sizes, rng, f"input {quote(p.name)}"), "random") for p in drawn}
    return {p.name: feed for p in ports if (feed := read.get(p.name) or random.get(p.name))}


def _reject_unknown(option: str, given: Iterable[str], known: Iterable[str], which: str) -> None:
    for name in given:
        if name not in known:
            listed = ", ".join(map(quote, sorted(known))) or "none"
            raise FeedError(f"{option} {quote(name)}: the model has none of that name; {which} {listed}")


# dimensions


def _shapes(kind: Type | None) -> Iterator[tuple[Dim, ...]]:
    if isinstance(kind, TensorType) and kind.shape is not None:
        yield kind.shape
    if isinstance(kind, SequenceType):
        yield from _shapes(kind.item)


def _variables(kind: Type | None) -> set[str]:
    return {name for shape in _shapes(kind) for dim in shape if isinstance(dim, Expr) for name in dim.symbols}


def _bound(value: Any, kind: Type | None) -> dict[str, int]:
    """Return the sizes that an array gives the variables that stand alone in its declared shape."""
    if not isinstance(value, np.ndarray):  # in a sequence a variable has a size for each item
        return {}
    shape = next(_shapes(_item(kind)), ())
    pairs = zip(shape, cast("Array", value).shape, strict=False)
    return {str(dim): size for dim, size in pairs if isinstance(dim, Expr) and _is_variable(dim)}


def _item(kind: Type | None) -> Type | None:
    """Return the type of a value that is there, where it may be missing."""
    return kind.item if isinstance(kind, OptionalType) else kind


def _is_variable(dim: Expr) -> bool:
    return dim.symbols == frozenset((str(dim),))


def _sized(dim: Dim, sizes: Mapping[str, int], where: str) -> int:
    if not isinstance(dim, Expr):
        return 1 if dim is None else dim
    try:
        size = dim.substitute(sizes)
    except ArithmeticError:
        size = "no number"
    if not isinstance(size, int) or size < 0:
        given = ", ".join(f"{name} = {sizes[name]}" for name in sorted(dim.symbols))
        raise FeedError(f"{where}: the dimension {dim} is {size} where {given}; change it with --dim")
    return size


# files


def _read(path: Path, kind: Type | None) -> Any:
    if path.suffix == ".npy":
        return _as_declared(_read_npy(path), _item(kind), path)
    if path.suffix == ".pb":
        try:
            return load_value(path, kind)
        except (WireError, ExternalDataError, UnsupportedError) as error:
            told = f"no value of type {kind}" if kind is not None else "no tensor"
            raise FeedError(f"{path}: this holds {told} that can be read: {error}") from error
    raise FeedError(
        f"{path}: inputs are read from .npy files, and from .pb files (a TensorProto or the like)"
    )


def _read_npy(path: Path) -> Array:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror or 'this is not a .npy file'}") from error
    except (*ACCIDENTS, EOFError, SyntaxError) as error:
        raise FeedError(f"{path}: this is not a .npy file of plain numbers or texts: {error}") from error
    if not isinstance(array, np.ndarray):
        raise FeedError(f"{path}: this is an archive of arrays, not a .npy file")
    return cast("Array", array)


def _as_declared(array: Array, kind: Type | None, path: Path) -> Array:
    """Return an array in the declared element type where that is one which the .npy format lacks.

    Raises FeedError for integers that the declared type does not have.
    """
    wanted = kind.element.dtype if isinstance(kind, TensorType) else array.dtype
    if wanted.kind == "O" and array.dtype.kind == "U":
        return array.astype(wanted)
    if wanted.isbuiltin == 1 or array.dtype == wanted:
        return array
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)
    converted = array.astype(wanted)
    if (
        isinstance(kind, TensorType)
        and kind.element.is_integer
        and (converted.astype(array.dtype) != array).any()
    ):
        raise FeedError(f"{path}: it holds numbers that are no {kind.element}, as the input declares")
    return converted


# random values


def _random(kind: Type | None, sizes: Mapping[str, int], rng: np.random.Generator, where: str) -> Any:
    if isinstance(kind, SequenceType):
        return [_random(kind.item, sizes, rng, where) for _ in range(_ITEMS)]
    if isinstance(kind, OptionalType):
        return None
    if not isinstance(kind, TensorType) or kind.shape is None or not kind.element.number:
        shown = "no type" if kind is None else str(kind)
        raise FeedError(f"{where} declares {shown}, too little for a random value; give one with --input")
    shape = tuple(_sized(dim, sizes, where) for dim in kind.shape)
    if math.prod(shape) * max(1, kind.element.dtype.itemsize) > MOST_BYTES:
        advice = "give a value with --input, or smaller sizes with --dim"
        raise FeedError(f"{where}: a random value of shape {list(shape)} would be too large; {advice}")
    return drawn(kind.element, shape, rng)


def drawn(kind: ElementType, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return a random array: normal floats, integers from 0 to 9 as far as they go, texts of one letter."""
    match kind.kind:
        case "float":
            values = rng.standard_normal(shape)
            return np.asarray(values if kind.is_signed else np.abs(values)).astype(kind.dtype)
        case "complex":
            return np.asarray(rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(kind.dtype)
        case "integer":
            above = min(_INTEGERS, 1 << (kind.bits - kind.is_signed))
            return np.asarray(rng.integers(0, above, shape)).astype(kind.dtype)
        case "bool":
            return np.asarray(rng.integers(0, 2, shape)).astype(kind.dtype)
        case "string":
            return np.asarray(rng.choice(list("abcdefghij"), shape)).astype(kind.dtype)
