"""The options about the inputs of a run, which several commands have: files, sizes, shapes, the seed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from sabir.base import FeedError, listed_names, quote
from sabir.cli._feeds import FeedOptions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from sabir.serial import Normalization

_MOST_DIGITS = 18  # any number of so many digits fits int64
_ARCHIVE = ".npz"
_FORMS = {"--dim": "SIZE", "--shape": "2,6", "--input": "FILE"}

InputsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "-i",
        metavar="NAME=FILE",
        help="Feed an input from a .npy, .npz or .pb file or a picture; FILE.npz alone feeds every "
        "input that it names. May be repeated.",
    ),
]
DimsOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dim",
        "-d",
        metavar="NAME=SIZE",
        help="Size of a dimension variable; 1 by default. May be repeated.",
    ),
]
ShapesOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--shape", metavar="NAME=2,6", help="Shape of a random input. May be repeated."),
]
SeedOption: TypeAlias = Annotated[
    int, typer.Option("--seed", min=0, metavar="S", help="Seed of the random inputs.")
]
ThreadsOption: TypeAlias = Annotated[
    int | None, typer.Option("--threads", min=1, metavar="T", help="Use at most T threads.")
]
EngineOption: TypeAlias = Annotated[
    Literal["auto", "compiled", "reference"],
    typer.Option("--engine", help="What runs the model: native code, or the interpreter on numpy."),
]
PrecisionOption: TypeAlias = Annotated[
    Literal["exact", "fast"],
    typer.Option("--precision", help="With fast, kernels may round a few times more where they are faster."),
]


def feed_options(
    names: Collection[str],
    inputs: Iterable[str] | None,
    dims: Iterable[str] | None,
    shapes: Iterable[str] | None,
    seed: int = 0,
    normalization: Normalization | None = None,
) -> FeedOptions:
    """Return the options for a model with inputs of these `names`; raises FeedError for an invalid option."""
    named, archives = _sources(inputs, names)
    found = FeedOptions(
        files=named,
        archives=archives,
        dims={n: _size("--dim", n, size) for n, size in _by_name("--dim", _pairs("--dim", dims, ())).items()},
        shapes={n: _shape(n, text) for n, text in _by_name("--shape", _pairs("--shape", shapes, ())).items()},
        seed=seed,
    )
    return found if normalization is None else found._replace(normalization=normalization)


def numbers_of(option: str, text: str | None) -> tuple[float, ...]:
    """Return the numbers of an option, none where it is absent; raises FeedError."""
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise FeedError(f"{option} {quote(text)}: write numbers separated by commas") from None


def _sources(options: Iterable[str] | None, names: Collection[str]) -> tuple[dict[str, Path], list[Path]]:
    """Return the files by input name, and the archives that feed all inputs that they name."""
    words = list(options or ())
    archives = [Path(word) for word in words if "=" not in word and word.endswith(_ARCHIVE)]
    rest = [word for word in words if "=" in word or not word.endswith(_ARCHIVE)]
    named = _by_name("--input", _pairs("--input", rest, names))
    return {name: Path(file) for name, file in named.items()}, archives


def _by_name(option: str, pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the pairs as a dictionary; raises FeedError for a name that comes twice."""
    found: dict[str, str] = {}
    for name, text in pairs:
        if name in found:
            message = f"has two values, {quote(found[name])} and {quote(text)}; pass one of them"
            raise FeedError(f"{option}: {quote(name)} {message}")
        found[name] = text
    return found


def _pairs(option: str, words: Iterable[str] | None, names: Collection[str]) -> Iterable[tuple[str, str]]:
    """Yield the two sides of each `NAME=TEXT`; a name may contain a `=` if it is one of `names`."""
    for pair in words or ():
        splits = [(pair[:at], pair[at + 1 :]) for at, c in enumerate(pair) if c == "="]
        if not splits or not splits[0][0]:
            hint = f"; the inputs are {listed_names(names)}" if option == "--input" else ""
            raise FeedError(f"{option} {quote(pair)}: write it as NAME={_FORMS[option]}{hint}")
        # a dimension variable may contain a `=` too; a size does not
        fallback = splits[0] if option == "--input" else splits[-1]
        yield next((split for split in reversed(splits) if split[0] in names), fallback)


def _size(option: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > _MOST_DIGITS:
        raise FeedError(f"{option} {quote(name)}: the size must be a number, 0 or more; got {quote(text)}")
    return int(text)


def _shape(name: str, text: str) -> tuple[int, ...]:
    """Read `2,6` as a shape; an empty text is the shape of a scalar."""
    return tuple(_size("--shape", name, part.strip()) for part in text.split(",")) if text else ()
