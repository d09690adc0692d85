"""Metadata of models as options, and the keys that the standard defines."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.cli._usage import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

AUTHOR = "model_author"
# the values that each key may have; () for any text. Keys and values of images are case-insensitive
_STANDARD: dict[str, tuple[str, ...]] = {
    AUTHOR: (),
    "model_license": (),
    "Image.BitmapPixelFormat": ("Gray8", "Rgb8", "Bgr8", "Rgba8", "Bgra8"),
    "Image.ColorSpaceGamma": ("Linear", "SRGB"),
    "Image.NominalPixelRange": (
        "NominalRange_0_255", "Normalized_0_1", "Normalized_1_1", "NominalRange_16_235",
    ),
}  # fmt: skip
_ALIKE = 0.85  # `model_licence` is a mistake, `model_name` another key


def metadata_of(
    pairs: Sequence[str], authors: Sequence[str], removed: Sequence[str]
) -> dict[str, str | None]:
    """Return the wanted values by key, None for a key to remove; refuses an empty key and one twice."""
    entries: list[tuple[str, str | None]] = [_pair(text) for text in pairs]
    if authors:
        entries.append((AUTHOR, _authors(authors)))
    entries += [(key, None) for key in removed]
    wanted: dict[str, str | None] = {}
    for key, value in entries:
        if not key:
            refuse("a metadata key must not be empty")
        if key in wanted:
            refuse(f"the metadata key {quote(key)} is set or removed twice; name each key once")
        wanted[key] = value
    return wanted


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        refuse(f"--set {text}: write --set KEY=VALUE")
    return key, value


def _authors(names: Sequence[str]) -> str:
    """Return the authors as the standard writes them, a list separated by commas."""
    if not all(name.strip() for name in names):
        refuse(f"--author needs a name; --unset {AUTHOR} removes the authors")
    return ", ".join(name.strip() for name in names)


def doubts(metadata: Mapping[str, str], keys: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each of the keys of metadata that resembles a standard key or lacks its value."""
    by_folded = {key.casefold(): key for key in _STANDARD}
    for key in keys:
        standard = by_folded.get(key.casefold())
        if standard is None:
            near = difflib.get_close_matches(key.casefold(), by_folded, 1, _ALIKE)
            if near:
                yield f"{quote(key)} is not a key of the standard; is it {quote(by_folded[near[0]])}?"
            continue
        values, value = _STANDARD[standard], metadata[key]
        if values and value.casefold() not in {v.casefold() for v in values}:
            yield f"{quote(value)} is not a value of {standard}; those are {', '.join(values)}"
