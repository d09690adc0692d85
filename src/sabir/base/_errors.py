"""One small family of errors: each says what is wrong, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.base._findings import Finding

_LONGEST_QUOTE = 200
_MOST_SHOWN = 20
# what array code raises on values it was not made for; a caller that knows the place makes a SabirError of it
ACCIDENTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


class SabirError(Exception):
    """The base of every error that Sabir raises on purpose."""


class FileError(SabirError):
    """A file that cannot be read or written: missing, a directory, not permitted."""


class WireError(SabirError):
    """Bytes that are no ONNX model: truncated, of another format, or against the wire format."""


class ParseError(SabirError):
    """Text that breaks the ONNX text syntax; carries where."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0, source: str = "") -> None:
        self.message, self.line, self.column, self.source = message, line, column, source
        super().__init__(self._text())

    def _text(self) -> str:
        if not self.line:
            return self.message
        shown, caret = _window(self.source, self.column)
        return f"line {self.line}, column {self.column}: {self.message}\n  {shown}\n  {caret}"


class SchemaError(SabirError):
    """A call that breaks an operator's signature: unknown operator, arity, attributes."""


class InferenceError(SabirError):
    """Types or shapes that contradict one another."""


class EvaluationError(SabirError):
    """A node that could not be computed on the values it was given."""


class FeedError(SabirError):
    """Feeds that do not match what a model declares as its inputs."""


class ExternalDataError(SabirError):
    """Tensor data kept outside the model file that is missing, too short, or out of bounds."""


class UnsupportedError(SabirError):
    """A valid request that this version of Sabir cannot serve; names what is missing."""


class CheckError(SabirError):
    """A model that breaks the rules; `findings` lists every break."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        count = len(self.findings)
        shown = [f"  {f}" for f in self.findings[:_MOST_SHOWN]]
        if count > _MOST_SHOWN:
            shown.append(f"  ... and {count - _MOST_SHOWN} more, in `findings`")
        super().__init__("\n".join([f"{count} problem{'s' if count != 1 else ''} in the model:", *shown]))


def quote(text: object) -> str:
    """Return `text` as it may stand in a message: escaped, and cut when long."""
    shown = repr(text if isinstance(text, (str, bytes)) else str(text))
    return shown if len(shown) <= _LONGEST_QUOTE else f"{shown[:_LONGEST_QUOTE]}…"


def suggest(name: str, known: Iterable[str]) -> str:
    """Return `; is it 'that'?` for the known name nearest to a mistaken one, or nothing."""
    import difflib  # ruff: ignore[import-outside-top-level]  a millisecond that only a mistake needs

    by_folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, 1)
    return f"; is it {by_folded[close[0]]!r}?" if close else ""


def _window(source: str, column: int, width: int = 100) -> tuple[str, str]:
    """Return the part of a line around `column` (1-based), and a caret under it."""
    start = max(0, column - 1 - width // 2) if len(source) > width else 0
    shown = "".join(c if c.isprintable() else " " for c in source[start : start + width])
    return shown, " " * (column - 1 - start) + "^"
