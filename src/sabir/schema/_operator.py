"""Operators: a name in a domain, with the history of its versions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sabir.base import SchemaError
from sabir.schema._ports import check_names, check_variadic
from sabir.schema._version import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from sabir.schema._examples import Example
    from sabir.schema._ports import Attribute, Input, Output, Status


@dataclass(frozen=True, eq=False, slots=True)
class Operator:
    """A name in a domain, and every version it has had, oldest first.

    `summary` is one sentence on what the newest computes; `random` says that it may draw random numbers.
    `body_opset` is the oldest version of the default domain in which the body is valid, for an operator of
    another domain. `lacks` has a sentence for each part of the operator that Sabir refuses.

    >>> T = Constraint('T', FLOATS)
    >>> half = Operator('Half', 'org.acme', summary='Half of `x`.')
    >>> v1 = half.first(1, inputs=[Input('x', T)], outputs=[Output('y', T)])
    >>> str(half.at(1))
    'org.acme.Half:1'
    """

    name: str
    domain: str = ""
    summary: str = ""
    random: bool = False
    body_opset: int = 1
    lacks: tuple[str, ...] = ()
    versions: list[Version] = field(default_factory=list[Version], repr=False)
    sources: list[Callable[[], Iterable[Example]]] = field(
        default_factory=list["Callable[[], Iterable[Example]]"], repr=False
    )
    checks: list[Callable[..., Iterable[str]]] = field(
        default_factory=list["Callable[..., Iterable[str]]"], repr=False
    )

    def first(
        self,
        since: int,
        *,
        inputs: Sequence[Input] = (),
        outputs: Sequence[Output],
        attributes: Sequence[Attribute] = (),
        status: Status = "stable",
        unpublished: bool = False,
    ) -> Version:
        """Declare the first version; raises SchemaError for a signature that no call can match.

        An `unpublished` version is in use in a domain of the standard, which does not have it.
        """
        ports = tuple(inputs), tuple(outputs), tuple(attributes)
        return self.record(
            Version(self, since, "First version.", *ports, status=status, unpublished=unpublished)
        )

    def record(self, version: Version) -> Version:
        """Add a version; raises SchemaError unless it comes after the last and has a valid signature."""
        if self.versions and version.since <= self.versions[-1].since:
            raise SchemaError(f"{version} must come after {self.versions[-1]}")
        for kind, ports in (("input", version.inputs), ("output", version.outputs)):
            check_names(str(version), kind, ports)
            check_variadic(str(version), kind, ports)
        check_names(str(version), "attribute", version.attributes)
        self.versions.append(version)
        return version

    def find(self, opset: int) -> Version | None:
        """Return the version in force in `opset`, or None before the first."""
        return next((v for v in reversed(self.versions) if v.since <= opset), None)

    def at(self, opset: int) -> Version:
        """Return the version in force in `opset`; raises SchemaError before the first."""
        version = self.find(opset)
        if version is None:
            raise SchemaError(
                f"{self.name} came with opset {self.versions[0].since}; the model imports {opset}"
            )
        return version

    def examples(self, function: Callable[[], Iterable[Example]]) -> Callable[[], Iterable[Example]]:
        """Attach the calls with which every behaviour in the room is tested."""
        self.sources.append(function)
        return function

    def check(self, function: Callable[..., Iterable[str]]) -> Callable[..., Iterable[str]]:
        """Attach a check: it is called like `infer`, and yields a sentence for each warning of the checker.

        It applies to every version. An invalid call is an error of `infer`; a warning is for a call that runs
        although the text of the standard differs, or although its writer cannot have meant it.
        """
        self.checks.append(function)
        return function

    def all_examples(self) -> list[Example]:
        """Return every example of the room, with lists converted to arrays."""
        return [example.resolve(self.at(example.opset)) for source in self.sources for example in source()]
