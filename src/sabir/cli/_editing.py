"""What the commands share that edit whole models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import FeedError, quote
from sabir.cli._models import STREAM
from sabir.cli._usage import refuse

if TYPE_CHECKING:
    from pathlib import Path

RENAMED_SHOWN = 10


def pair(word: str, form: str, example: str) -> tuple[str, str]:
    """Return the two parts of an argument of the form `A=B`; raises FeedError for another one."""
    first, separated, second = word.rpartition("=")
    if not separated or not first or not second:
        raise FeedError(f"{quote(word)}: write {form}, such as {example}")
    return first, second


def require_file(output: Path, *, as_json: bool) -> None:
    """Refuse to write both a model and a report to standard output."""
    if as_json and output == STREAM:
        refuse("-o - writes the model to standard output, where --json writes the report; name a file")
