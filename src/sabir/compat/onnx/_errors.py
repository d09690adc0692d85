"""The errors of Sabir's engines as the exception classes of onnx."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from sabir.base import SabirError

if TYPE_CHECKING:
    from collections.abc import Generator


class CompatFailure(SabirError):
    """The base of the exceptions that this API raises for an error of an engine, which is their cause."""

    _has_lines = True


@contextlib.contextmanager
def raising(kind: type[CompatFailure]) -> Generator[None]:
    """Raise each SabirError of the block as a `kind` with the same message."""
    try:
        yield
    except CompatFailure:
        raise
    except SabirError as error:
        raise kind(str(error)) from error


class ValidationError(CompatFailure):
    """A message that breaks the rules of the standard, or external data that is not where it may be."""


class InferenceError(CompatFailure):
    """Types or shapes that contradict each other."""


class ConvertError(CompatFailure, RuntimeError):
    """A model that has no equivalent in the version asked for."""


class SchemaError(CompatFailure):
    """A schema that does not exist, exists already, or contradicts itself."""
