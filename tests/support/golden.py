"""Golden listings: files with a model in the text syntax, and what the compiler lists of it at some levels.

A file begins with a sentence, and with lines `name: value` where the defaults do not do: the `sizes` of symbols,
the inputs that are `constants`, drawn at random, and the `target`. `SABIR_WRITE_GOLDEN=1` writes the listings
anew: read the diff.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import sabir

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEP = "==> "


class Golden(NamedTuple):
    """The model of a file, its sizes by symbol, its other options, and its listings by level."""

    text: str
    sizes: dict[str, int]
    options: dict[str, str]
    listings: dict[str, str]

    def model(self) -> sabir.Model:
        """The model, with constants in place of the inputs that are named so."""
        model = sabir.parse(self.text)
        rng = np.random.default_rng(7)
        for name in self.options.get("constants", "").split():
            value = model.graph.value(name)
            model.graph.inputs.remove(value)
            model.graph.set_initializer(value, self.drawn(value, rng))
        return model

    def feeds(self, model: sabir.Model) -> dict[str, np.ndarray]:
        """Random feeds of a model."""
        rng = np.random.default_rng(5)
        return {value.name: self.drawn(value, rng) for value in model.graph.inputs}

    def drawn(self, value: sabir.Value, rng: np.random.Generator) -> np.ndarray:
        """A random tensor of the declared type; integers are indices of any axis."""
        shape: Any = [self.sizes.get(str(d), d) for d in value.type.shape]
        dtype = value.type.element.dtype
        if dtype.kind in "iu":
            return rng.integers(0, 2, tuple(shape)).astype(dtype)
        return rng.standard_normal(tuple(shape)).astype(dtype)


def read(path: Path) -> Golden:
    """Return the contents of a file."""
    head, *sections = path.read_text(encoding="utf-8").split(STEP)
    about, _, text = head.partition("\n\n")
    options = dict(line.split(": ", 1) for line in about.split("\n")[1:])
    sizes = dict(item.split("=") for item in options.pop("sizes", "").split())
    listings = dict(section.split("\n", 1) for section in sections)
    return Golden(
        text, {k: int(v) for k, v in sizes.items()}, options, {k: v.strip() for k, v in listings.items()}
    )


def check(path: Path, listing: Callable[[str], str]) -> None:
    """Compare the listings of a file with those that are made now, or write these."""
    expected = read(path).listings
    found = {level: listing(level) for level in expected}
    if os.environ.get("SABIR_WRITE_GOLDEN"):
        head = path.read_text(encoding="utf-8").split(STEP)[0]
        parts = "\n".join(f"{STEP}{level}\n{lines}\n" for level, lines in found.items())
        path.write_text(head + parts, encoding="utf-8")
    assert found == expected
