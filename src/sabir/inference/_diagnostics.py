"""What inference reports: the cause of each problem, a message and the location."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import InferenceError, UnsupportedError, legible
from sabir.inference._causes import Cause
from sabir.schema import newer_opset

if TYPE_CHECKING:
    from sabir.base import Location, Severity
    from sabir.schema import Scope


class Diagnostic(NamedTuple):
    """One problem that inference found. The checker reports it under the rule that its cause belongs to.

    >>> from sabir.base import Location
    >>> Diagnostic(Cause.DOMAIN, 'an unknown domain', Location()).severity
    'warning'
    """

    cause: Cause
    message: str
    location: Location
    hint: str = ""

    @property
    def severity(self) -> Severity:
        """A warning where a node cannot be judged, or where a declaration holds for some sizes only."""
        return self.cause.severity


class Reporter:
    """Collects diagnostics, each once; with `strict` the first error is raised instead."""

    def __init__(self, *, strict: bool) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._strict = strict
        self._seen: set[Diagnostic] = set()  # a subgraph may be inferred more than once
        self._raised: InferenceError | None = None

    def error(self, error: Exception, where: Location, cause: Cause) -> None:
        """Report an error; raises InferenceError for it where inference is strict and it is no warning."""
        if self._strict and cause.severity == "error":
            self._raised = InferenceError(f"{where}: {error}")
            raise self._raised from error
        self.add(Diagnostic(cause, legible(str(error)), where))

    def add(self, diagnostic: Diagnostic | None) -> None:
        """Report a diagnostic, if there is one."""
        if diagnostic is not None and diagnostic not in self._seen:
            self._seen.add(diagnostic)
            self.diagnostics.append(diagnostic)

    def newer_opsets(self, scope: Scope, where: Location) -> None:
        """Report versions that are newer than any known one; inference uses the newest known one instead."""
        for domain, versions in scope.newer().items():
            at = where.at("opset_import", name=domain or "ai.onnx")
            self.error(UnsupportedError(newer_opset(domain, *versions)), at, Cause.OPSET)

    def has_raised(self, error: Exception) -> bool:
        """Return whether `error` was raised here for a subgraph, and so states its location already."""
        return error is self._raised
