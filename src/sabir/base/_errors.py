"""One small family of errors: each says what is wrong, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from sabir.base._findings import Finding

_Error = TypeVar("_Error", bound="SabirError")

_LONGEST_QUOTE = 200
_MOST_SHOWN = 20
_LONGEST_MESSAGE = 2000
_LARGEST = 1 << 62  # of a bound that is worth proposing
# what array code raises on values it was not made for; a caller that knows the place makes a SabirError of it
ACCIDENTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


class SabirError(Exception):
    """The base of every error that Sabir raises on purpose."""

    _has_lines: ClassVar[bool] = False  # no text of a model may fake a line of a message

    def __str__(self) -> str:
        return legible(super().__str__(), lines=self._has_lines)

    def within(self, place: str) -> Self:
        """Return the same error with the place named in front: a file, a node."""
        return _remake(type(self), (f"{place}: {self}",), self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:  # an error with a constructor of its own crosses processes too
        return _remake, (type(self), self.args, self.__dict__)


class SabirWarning(UserWarning):
    """What a run goes on after, though the model or its file should be mended."""


class FileError(SabirError):
    """A file that cannot be read or written: missing, a directory, not permitted."""


class WireError(SabirError):
    """Bytes that are no ONNX model: truncated, of another format, or against the wire format."""


class TextError(WireError):
    """Text in a message, a name or documentation, that is not UTF-8."""


class ParseError(SabirError):
    """Text that breaks the ONNX text syntax; carries where."""

    _has_lines = True

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


class AttributeValueError(SchemaError):
    """An attribute whose value the operator version does not admit; `attribute` names it."""

    def __init__(self, attribute: str, message: str) -> None:
        self.attribute = attribute
        super().__init__(message)


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


class Excess(NamedTuple):
    """A field of `sabir.Limits` that is exceeded: the bound in force, and a value that suffices."""

    limit: str
    most: float
    enough: float | None

    @property
    def shown(self) -> str:
        """The field with the value that suffices; an ellipsis where nothing tells it."""
        if self.enough is None:
            return f"{self.limit}=..."
        return f"{self.limit}={None if self.enough > _LARGEST else int(self.enough)}"


class LimitError(SabirError):
    """A job that would cost more than it may.

    `exceeded` lists every field of `sabir.Limits` that the step exceeds; `limit` is the name of the first.
    """

    def __init__(self, needed: str, *exceeded: Excess) -> None:
        self.exceeded, self.limit = exceeded, exceeded[0].limit
        fields = ", ".join(e.shown for e in exceeded)
        if len(exceeded) == 1:
            told = f"the limit is {exceeded[0].most:,}: raise it"
        else:
            told = f"the limits are {', '.join(f'{e.most:,} ({e.limit})' for e in exceeded)}: raise them"
        super().__init__(f"{needed}; {told} with `sabir.Limits({fields})`")


class CheckError(SabirError):
    """A model that breaks the rules; `findings` lists every break."""

    _has_lines = True

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        count = len(self.findings)
        shown = [f"  {f}" for f in self.findings[:_MOST_SHOWN]]
        if count > _MOST_SHOWN:
            shown.append(f"  ... and {count - _MOST_SHOWN} more, in `findings`")
        super().__init__("\n".join([f"{count} problem{'s' if count != 1 else ''} in the model:", *shown]))


def _remake(cls: type[_Error], args: tuple[Any, ...], state: dict[str, Any]) -> _Error:
    made = cls.__new__(cls)
    made.args = args
    made.__dict__.update(state)
    return made


def quote(text: object) -> str:
    """Return `text` as it may stand in a message: escaped, and cut when long."""
    shown = repr(text if isinstance(text, (str, bytes)) else str(text))
    return shown if len(shown) <= _LONGEST_QUOTE else f"{shown[:_LONGEST_QUOTE]}…"


def legible(text: str, *, lines: bool = False) -> str:
    """Return a message as it may reach a terminal or a log: what does not print is escaped, the middle cut.

    With `lines` it may have several of them.
    """
    if len(text) > _LONGEST_MESSAGE:
        half = _LONGEST_MESSAGE // 2 - 1  # what is wrong stands at the end, where at the beginning
        text = f"{text[:half]}…{text[-half:]}"
    if text.isprintable():
        return text
    shown = "".join(c if c.isprintable() or (lines and c == "\n") else ascii(c)[1:-1] for c in text)
    return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[: _LONGEST_MESSAGE - 1]}…"


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
