"""The errors that Sabir raises: each message says what is wrong, where, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from sabir.base._displayed import Displayed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

    from sabir.base._findings import Finding, Location

_Error = TypeVar("_Error", bound="SabirError")

_LONGEST_QUOTE = 200
_MOST_SHOWN = 20
_LONGEST_MESSAGE = 2000
_LARGEST = 1 << 62  # above this we propose no bound at all
# what array code raises for values that it does not support; a caller that knows the place converts it
ACCIDENTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


class SabirError(Exception):
    """The base of every error that Sabir raises on purpose.

    >>> try:
    ...     sabir.load('missing.onnx')
    ... except sabir.SabirError as error:
    ...     print(type(error).__name__)
    FileError
    """

    _has_lines: ClassVar[bool] = False  # else text of a model could imitate a line of the message

    def __str__(self) -> str:
        return legible(super().__str__(), lines=self._has_lines)

    def located(self, place: str) -> Self:
        """Return the same error with a place in front of its message: a file, a node."""
        return _remake(type(self), (f"{place}: {self}",), self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:  # a subclass may have another constructor, and is pickled too
        return _remake, (type(self), self.args, self.__dict__)


class SabirWarning(UserWarning):
    """A problem that does not stop a run, though the model or its file should be corrected.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter('ignore', sabir.SabirWarning)
    """


class FileError(SabirError):
    """A file that cannot be read or written: missing, a directory, or not permitted.

    >>> sabir.load('missing.onnx')
    Traceback (most recent call last):
        ...
    sabir.FileError: missing.onnx: there is no such file
    """


class WireError(SabirError):
    """Bytes that are not an ONNX model: truncated, in another format, or invalid in the wire format.

    >>> sabir.loads(b'no model')
    Traceback (most recent call last):
        ...
    sabir.WireError: no ONNX model: this looks like a text file
    """


class TextError(WireError):
    """Text in a message, a name or documentation, that is not UTF-8.

    >>> issubclass(TextError, sabir.WireError)
    True
    """


class ParseError(SabirError):
    """Text that is invalid in the ONNX text syntax; `line` and `column` say where.

    >>> sabir.parse('g (flaot x')
    Traceback (most recent call last):
        ...
    sabir.ParseError: line 1, column 4: unknown type 'flaot'; is it 'float'?
      g (flaot x
         ^
    """

    _has_lines = True

    def __init__(self, message: str, *, line: int = 0, column: int = 0, source: str = "") -> None:
        self.message, self.line, self.column, self.source = message, line, column, source
        super().__init__(self._text())

    def _text(self) -> str:
        if not self.line:
            return self.message
        shown, caret = _window(self.source, self.column)
        return f"line {self.line}, column {self.column}: {self.message}\n  {shown}\n  {caret}"


class NotFoundError(SabirError, KeyError):
    """A name or a location that no object of a model has, or that several have; the message lists them.

    >>> issubclass(NotFoundError, KeyError)
    True
    """

    def __str__(self) -> str:  # a KeyError would quote its message
        return legible(str(self.args[0]) if self.args else "")


class SchemaError(SabirError):
    """A call that breaks an operator's signature: unknown operator, arity, attributes.

    >>> sabir.Builder(21).op('Reluu')
    Traceback (most recent call last):
        ...
    sabir.SchemaError: ai.onnx.Reluu is not an operator that Sabir knows; is it 'Relu'?
    """


class AttributeValueError(SchemaError):
    """An attribute with a value that the operator version does not allow; `attribute` is its name.

    >>> error = AttributeValueError('axis', "attribute 'axis' is 7")
    >>> error.attribute
    'axis'
    """

    def __init__(self, attribute: str, message: str) -> None:
        self.attribute = attribute
        super().__init__(message)


class InferenceError(SabirError):
    """Types or shapes that contradict each other.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.graph.outputs[0].type = sabir.ir.tensor_type('int64')
    >>> sabir.infer(model, strict=True)
    Traceback (most recent call last):
        ...
    sabir.InferenceError: graph/node[0] 'Relu'/output[0] 'y': declared as int64[], but its elements ar...
    """


class EvaluationError(SabirError):
    """A node that cannot be computed for the values of its inputs.

    >>> b = sabir.Builder(21)
    >>> x = b.input('x', 'float', ['N'])
    >>> y = b.output(b.Gather(x, 5), 'y')
    >>> sabir.evaluate(b.model(), {'x': [1.0]})
    Traceback (most recent call last):
        ...
    sabir.EvaluationError: Gather with output 'y' on (float[1], int64): index 5 is outside [-1, 0]
    """


class CancelledError(SabirError):
    """A run was stopped by `Session.cancel`.

    The session is as before: the next run is a run like any other.

    >>> issubclass(sabir.CancelledError, sabir.SabirError)
    True
    """


class FeedError(SabirError):
    """Feeds that do not match what a model declares as its inputs.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> sabir.evaluate(model, {'X': [1.0]})
    Traceback (most recent call last):
        ...
    sabir.FeedError: the model has no input 'X'; is it 'x'?
    """


class ExternalDataError(SabirError):
    """External tensor data that is missing, too short, or out of bounds.

    >>> sabir.serial.extent_of({'location': 'w.data', 'offset': '-1'}, 4)
    Traceback (most recent call last):
        ...
    sabir.ExternalDataError: external data: `offset` must be a number of up to 19 digits, and is '-1'
    """


class UnsupportedError(SabirError):
    """A valid request that this version of Sabir does not support; the message names what is missing.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> sabir.Session(model, engine='turbo')
    Traceback (most recent call last):
        ...
    sabir.UnsupportedError: there is no engine 'turbo'; the engines are auto, compiled, reference
    """


class Excess(NamedTuple):
    """A field of `sabir.Limits` that is exceeded: the bound in force, and a value that is large enough.

    >>> Excess('nodes', 10, 20).shown
    'nodes=20'
    """

    limit: str
    most: float
    enough: float | None

    @property
    def shown(self) -> str:
        """The field with the value that is large enough; an ellipsis where it is not known."""
        if self.enough is None:
            return f"{self.limit}=..."
        return f"{self.limit}={None if self.enough > _LARGEST else int(self.enough)}"


class LimitError(SabirError):
    """A job that would cost more than it may.

    `exceeded` lists every field of `sabir.Limits` that the step exceeds; `limit` is the name of the first.

    >>> b = sabir.Builder(21)
    >>> y = b.output(b.ConstantOfShape([1 << 40]), 'y')
    >>> sabir.evaluate(b.model(), {}, limits=sabir.Limits.untrusted())
    Traceback (most recent call last):
        ...
    sabir.LimitError: ConstantOfShape with output 'y': the output would have 1,099,511,627,776 elements ...
    """

    def __init__(self, needed: str, *exceeded: Excess) -> None:
        self.exceeded, self.limit = exceeded, exceeded[0].limit
        fields = ", ".join(e.shown for e in exceeded)
        if len(exceeded) == 1:
            advice = f"the limit is {exceeded[0].most:,}: raise it"
        else:
            advice = f"the limits are {', '.join(f'{e.most:,} ({e.limit})' for e in exceeded)}: raise them"
        super().__init__(f"{needed}; {advice} with `sabir.Limits({fields})`")


class CheckError(SabirError, Displayed):
    """A model that breaks the rules; `findings` lists every finding.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.graph[0].op = 'Reluu'
    >>> try:
    ...     sabir.check(model)
    ... except sabir.CheckError as error:
    ...     print(error.findings[0].rule)
    NODE001
    """

    _has_lines = True

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        count = len(self.findings)
        shown = [f"  {f}" for f in self.findings[:_MOST_SHOWN]]
        if count > _MOST_SHOWN:
            shown.append(f"  ... and {count - _MOST_SHOWN} more, in `findings`")
        of_sets = any(
            f.location.steps[:1] and f.location.steps[0].kind == "operator_set" for f in self.findings
        )
        what = "operator sets" if of_sets else "model"
        super().__init__("\n".join([f"{counted(count, 'problem')} in the {what}:", *shown]))


class Refusal(NamedTuple):
    """A node that a conversion cannot express in the target versions, and why.

    `operator` is the version that it calls: `com.acme.FastConv:3`.
    """

    where: Location
    operator: str
    reason: str

    def __str__(self) -> str:
        named = self.reason.startswith(self.operator)
        return f"{self.where}: {self.reason if named else f'{self.operator}: {self.reason}'}"


class ConversionError(SabirError):
    """A model that cannot be expressed in the versions asked for; `refusals` lists every node in the way.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 20]>
    ... g (string[N] x) => (bool[N] y) { y = RegexFullMatch <pattern = "a"> (x) }''')
    >>> sabir.convert(model, opset=19)
    Traceback (most recent call last):
        ...
    sabir.ConversionError: 1 node has no equivalent in opset 19 of ai.onnx:
      graph/node[0] 'RegexFullMatch': RegexFullMatch:20: opset 19 has no such operator, and no older ope...
    """

    _has_lines = True

    def __init__(self, problem: str, refusals: Iterable[Refusal] = ()) -> None:
        self.refusals = tuple(refusals)
        shown = [f"  {refusal}" for refusal in self.refusals[:_MOST_SHOWN]]
        if len(self.refusals) > _MOST_SHOWN:
            shown.append(f"  ... and {len(self.refusals) - _MOST_SHOWN} more, in `refusals`")
        super().__init__("\n".join([problem, *shown]))


def _remake(cls: type[_Error], args: tuple[Any, ...], state: dict[str, Any]) -> _Error:
    error = cls.__new__(cls)
    error.args = args
    error.__dict__.update(state)
    return error


def quote(text: object) -> str:
    """Return `text` for a message: in quotes, escaped, and cut when it is long.

    >>> quote('conv1')
    "'conv1'"
    """
    shown = repr(text if isinstance(text, (str, bytes)) else str(text))
    return shown if len(shown) <= _LONGEST_QUOTE else f"{shown[:_LONGEST_QUOTE]}…"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: `1 node`, `12,345 nodes`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def legible(text: str, *, lines: bool = False) -> str:
    """Return a message that is safe for a terminal or a log: escaped where unprintable, long ones cut.

    With `lines` the message may have several lines.
    """
    if len(text) > _LONGEST_MESSAGE:
        half = _LONGEST_MESSAGE // 2 - 1  # the location is at the beginning, the problem at the end
        text = f"{text[:half]}…{text[-half:]}"
    if text.isprintable():
        return text
    shown = "".join(c if c.isprintable() or (lines and c == "\n") else ascii(c)[1:-1] for c in text)
    return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[: _LONGEST_MESSAGE - 1]}…"


def suggest(name: str, known: Iterable[str]) -> str:
    """Return `; is it 'that'?` for the known name nearest to a mistaken one, or nothing.

    >>> suggest('Reluu', ['Relu', 'Abs'])
    "; is it 'Relu'?"
    """
    import difflib  # ruff: ignore[import-outside-top-level]  a millisecond that only a mistake needs

    by_folded = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, 1)
    return f"; is it {by_folded[close[0]]!r}?" if close else ""


def listed_names(names: Iterable[str], most: int = 20) -> str:
    """Return names in quotes, separated by commas, at most so many; `none` where there are none.

    >>> listed_names(['x', 'y']), listed_names(['x', 'y', 'z'], most=1), listed_names([])
    ("'x', 'y'", "'x' and 2 more", 'none')
    """
    quoted = [quote(name) for name in names]
    more = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return f"{', '.join(quoted[:most])}{more}" if quoted else "none"


def _window(source: str, column: int, width: int = 100) -> tuple[str, str]:
    """Return the part of a line around `column` (1-based), and a caret under it."""
    start = max(0, column - 1 - width // 2) if len(source) > width else 0
    shown = "".join(c if c.isprintable() else " " for c in source[start : start + width])
    return shown, " " * (column - 1 - start) + "^"
