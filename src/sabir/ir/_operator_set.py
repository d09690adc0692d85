"""Operator sets as documents: the operators of one domain in one version, and functions that define them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from sabir.base import counted, hinted, hints, legible
from sabir.ir._clone import clone_function
from sabir.ir._finding import named
from sabir.ir._imports import canonical_domain
from sabir.ir._releases import NEWEST_IR

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from sabir.base import Limits
    from sabir.ir._graph import Graph
    from sabir.ir._model import Function
    from sabir.ir._residue import Residue

MAGIC = "ONNXOPSET"
"""The first field of each document of an operator set."""

OperatorStatus = Literal["stable", "experimental"]


@hints(
    op_type=hinted("name"),
    since_version=hinted("since"),
    doc_string=hinted("doc"),
)
@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """One operator that an operator set lists, with the version of the set that introduced it.

    The meaning of a `stable` entry never changes; that of an `experimental` one may.

    >>> OperatorEntry('FastConv', 3)
    OperatorEntry(name='FastConv', since=3, status='stable', doc='', residue=None)
    """

    name: str
    since: int = 1
    status: OperatorStatus = "stable"
    doc: str = ""
    residue: Residue | None = None


class OperatorSetFiles(Protocol):
    """The functions of `serial` that read and write operator sets; `sabir` sets them."""

    def load(self, source: Any, **options: Any) -> OperatorSet:
        """Return the operator set in a file."""
        ...

    def loads(self, data: Any, **options: Any) -> OperatorSet:
        """Return the operator set in bytes or a string."""
        ...

    def save(self, operator_set: OperatorSet, path: Any, **options: Any) -> None:
        """Write an operator set to a file."""
        ...

    def dumps(self, operator_set: OperatorSet, **options: Any) -> bytes:
        """Return an operator set as bytes."""
        ...


@hints(
    opset_version=hinted("version"),
    operator=hinted("operators"),
    doc_string=hinted("doc"),
    ir_version_prerelease=hinted("ir_prerelease"),
    ir_build_metadata=hinted("ir_build"),
    SerializeToString="operator_set.dumps() returns the bytes of an operator set",
)
@dataclass(eq=False, slots=True, repr=False)
class OperatorSet:
    """The operators of one domain in one version, as a document of the standard (`OperatorSetProto`).

    `operators` has an entry for each operator, `functions` the bodies of those that are defined by other
    operators: an entry and the functions of its name describe one operator. `ir_prerelease` and `ir_build`
    are the pre-release part and the build metadata of the IR version.

    >>> operator_set = OperatorSet('com.acme', 3, [OperatorEntry('FastConv', 3)])
    >>> operator_set
    <OperatorSet com.acme:3: 1 operator, 0 functions>
    >>> sabir.OperatorSet.loads(operator_set.dumps()).entry('FastConv').since
    3
    """

    files: ClassVar[OperatorSetFiles | None] = None  # `sabir` sets it

    domain: str = ""
    version: int = 1
    operators: list[OperatorEntry] = field(default_factory=list[OperatorEntry])
    functions: list[Function] = field(default_factory=list["Function"])
    ir_version: int = NEWEST_IR
    ir_prerelease: str = ""
    ir_build: str = ""
    doc: str = ""
    residue: Residue | None = None

    @property
    def label(self) -> str:
        """The domain and the version, as messages name them: `com.acme:3`."""
        return f"{canonical_domain(self.domain) or 'ai.onnx'}:{self.version}"

    def entry(self, name: str) -> OperatorEntry:
        """Return the entry of an operator; raises NotFoundError, a KeyError, unless one has the name."""
        return named(name, self.operators, "operator", repr(self))

    def function(self, name: str) -> Function:
        """Return the function of a name; raises NotFoundError, a KeyError, unless exactly one has it."""
        return named(name, self.functions, "function", repr(self))

    def graphs(self) -> Iterator[Graph]:
        """The bodies of the functions."""
        for function in self.functions:
            yield function.graph

    def clone(self) -> OperatorSet:
        """Return a copy that shares no graph, node or value with this operator set."""
        functions = [clone_function(function) for function in self.functions]
        return replace(self, operators=list(self.operators), functions=functions)

    __copy__ = clone

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str] | bytes | Any,
        *,
        format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
        limits: Limits | None = None,
    ) -> OperatorSet:
        """Return the operator set in a file: its path, its bytes, or an open file.

        `format` is "protobuf", "textproto" or "json"; by default the extension of the path decides, and
        without one the content. Raises FileError, WireError, ParseError and LimitError as `sabir.load` does;
        WireError for a model and for a wrong magic.
        """
        return _files().load(source, format=format, limits=limits)

    @classmethod
    def loads(
        cls,
        data: bytes | bytearray | memoryview | str,
        *,
        format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
        limits: Limits | None = None,
    ) -> OperatorSet:
        """Return the operator set in bytes, or in a string of a text format; raises as `load` does."""
        return _files().loads(data, format=format, limits=limits)

    def save(
        self,
        path: str | os.PathLike[str] | Any,
        *,
        format: str | None = None,  # ruff: ignore[builtin-argument-shadowing]  the word for it
        limits: Limits | None = None,
    ) -> None:
        """Write the operator set to a file or an open binary file, whose extension names the format.

        Raises FileError where the file cannot be written, WireError for what the format cannot contain.
        """
        _files().save(self, path, format=format, limits=limits)

    def dumps(
        self,
        *,
        format: str = "protobuf",  # ruff: ignore[builtin-argument-shadowing]  the word for it
        limits: Limits | None = None,
    ) -> bytes:
        """Return the operator set as bytes; raises WireError for what the format cannot contain."""
        return _files().dumps(self, format=format, limits=limits)

    def __repr__(self) -> str:
        counts = [counted(len(self.operators), "operator"), counted(len(self.functions), "function")]
        return legible(f"<OperatorSet {self.label}: {', '.join(counts)}>")


def _files() -> OperatorSetFiles:
    if OperatorSet.files is None:
        raise RuntimeError("import sabir, and not sabir.ir alone, to read and write operator sets")
    return OperatorSet.files
