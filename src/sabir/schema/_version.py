"""One version of an operator: its signature, and the behaviours declared for it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from sabir.base import SchemaError
from sabir.schema._adapters import same_call
from sabir.schema._binding import Binding, Signature
from sabir.schema._ports import AnyPort, Attribute, Constraint, Input, Output, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.schema._operator import Operator
    from sabir.schema._values import Values

Behaviour = Literal[
    "infer", "evaluate", "upgrade", "downgrade", "gradient", "body", "lower", "parts", "in_graph"
]
BEHAVIOURS: tuple[Behaviour, ...] = get_args(Behaviour)
# an adapter crosses one boundary; every other behaviour applies until a later version replaces it
ADAPTERS: frozenset[Behaviour] = frozenset({"upgrade", "downgrade"})

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True, eq=False, slots=True)  # ruff: ignore[too-many-public-methods]  a room's vocabulary
class Version:
    """One (operator, since_version) pair of the standard, compared by identity.

    The syntax, meaning and presence of an `experimental` version may change without a new version. An
    `unpublished` version is in use in a domain of the standard, and no text of the standard has it.

    >>> from sabir.opsets import STANDARD
    >>> relu = STANDARD.find_version('', 'Relu', 13)
    >>> relu.since, [port.name for port in relu.inputs]
    (13, ['X'])
    """

    operator: Operator
    since: int
    changes: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    attributes: tuple[Attribute, ...] = ()
    deprecated: bool = False
    status: Status = "stable"
    unpublished: bool = False
    behaviours: dict[Behaviour, Callable[..., Any]] = field(
        default_factory=dict[Behaviour, "Callable[..., Any]"], repr=False
    )
    absences: dict[Behaviour, str] = field(default_factory=dict[Behaviour, str], repr=False)
    _bindings: dict[Behaviour, Binding] = field(default_factory=dict[Behaviour, Binding], repr=False)
    _formal: list[Signature] = field(
        default_factory=list[Signature], repr=False
    )  # built at the first request

    # declaring later versions; `Operator.first` declares the first

    def widen(self, since: int, **types: frozenset[str]) -> Version:
        """Declare a version that only admits more types, by constraint name; it gets both adapters."""
        spelled = ", ".join(
            sorted(t.removeprefix("tensor(").removesuffix(")") for ts in types.values() for t in ts)
        )
        return self._derive(self.evolve(since, f"Admits {spelled}.", widen=types))

    def widen_stepwise(self, steps: Mapping[int, frozenset[str]], *names: str) -> Version:
        """Declare one version for each opset in `steps`, which admits these types too; return the newest."""
        newest = self
        for since, types in steps.items():
            newest = newest.widen(since, **dict.fromkeys(names, types))
        return newest

    def restate(self, since: int, changes: str, *, values: Mapping[str, Values] | None = None) -> Version:
        """Declare a version whose text changed and whose signature did not; it gets both adapters.

        `values` has new admitted values of attributes, by their names.
        """
        return self._derive(self.evolve(since, changes, values=values))

    def extend(
        self,
        since: int,
        changes: str,
        *,
        inputs: Sequence[Input] = (),
        outputs: Sequence[Output] = (),
        attributes: Sequence[Attribute] = (),
        values: Mapping[str, Values] | None = None,
        widen: Mapping[str, frozenset[str]] | None = None,
    ) -> Version:
        """Declare a version that adds optional parts; it gets both adapters."""
        newer = self.evolve(
            since, changes, inputs=[*self.inputs, *inputs], outputs=[*self.outputs, *outputs],
            add=attributes, values=values, widen=widen,
        )  # fmt: skip
        return self._derive(newer)

    def evolve(  # ruff: ignore[too-many-arguments]  each is a way in which versions differ
        self,
        since: int,
        changes: str,
        *,
        inputs: Sequence[Input] | None = None,
        outputs: Sequence[Output] | None = None,
        drop: Iterable[str] = (),
        add: Sequence[Attribute] = (),
        defaults: Mapping[str, Any] | None = None,
        values: Mapping[str, Values] | None = None,
        widen: Mapping[str, frozenset[str]] | None = None,
        status: Status | None = None,
    ) -> Version:
        """Declare the next version as a difference from this one.

        `drop` and `add` are removed and new attributes (an added one replaces one of the same name),
        `defaults` new defaults, `values` new admitted values of attributes, `widen` more types by constraint
        name; the status stays unless `status` changes it. A version that only drops legacy attributes gets
        both adapters; others are written in the room.
        """
        dropped = frozenset(drop)
        newer = Version(
            self.operator,
            since,
            changes,
            _widened(self.inputs if inputs is None else tuple(inputs), widen or {}),
            _widened(self.outputs if outputs is None else tuple(outputs), widen or {}),
            _changed(self.attributes, dropped, add, defaults or {}, values or {}),
            status=status or self.status,
        )
        self.operator.record(newer)
        legacy = {a.name for a in self.attributes if a.legacy}
        if dropped and dropped <= legacy and not (inputs or outputs or add or defaults):
            self._derive(newer)
        return newer

    def retire(self, since: int, changes: str) -> Version:
        """Declare the version that deprecates the operator; it keeps the signature."""
        newer = replace(
            self,
            since=since,
            changes=changes,
            deprecated=True,
            behaviours={},
            absences={},
            _bindings={},
            _formal=[],
        )
        return self.operator.record(newer)

    def _derive(self, newer: Version) -> Version:
        newer.behaviours["upgrade"] = newer.behaviours["downgrade"] = same_call(self, newer)
        return newer

    # behaviours

    def infer(self, function: F) -> F:
        """Attach the function from the types of the inputs, with known contents, to those of the outputs."""
        return self._attach("infer", function)

    def evaluate(self, function: F) -> F:
        """Attach the function that computes the operator on arrays."""
        return self._attach("evaluate", function)

    def upgrade(self, function: F) -> F:
        """Attach the adapter that rewrites a call of the previous version for this one."""
        return self._attach("upgrade", function)

    def downgrade(self, function: F) -> F:
        """Attach the adapter that rewrites a call of this version for the previous one.

        Of the first version it expresses the call in operators that the opset before had, in their versions
        of this opset, as a body does; a conversion prefers it to the body.
        """
        return self._attach("downgrade", function)

    def gradient(self, function: F) -> F:
        """Attach the gradient of a call, as a graph of other operators: see `opsets.typing.Gradient`."""
        return self._attach("gradient", function)

    def body(self, function: F) -> F:
        """Attach the operator's meaning as a graph of other operators."""
        return self._attach("body", function)

    def lower(self, function: F) -> F:
        """Attach the kernel that computes the operator."""
        return self._attach("lower", function)

    def parts(self, function: F) -> F:
        """Attach a graph for calls that have no kernel as a whole: kernels compute all but a part of it."""
        return self._attach("parts", function)

    def in_graph(self, function: F) -> F:
        """Attach what replaces a call by reading the graph around it: see `opsets.typing.Surroundings`."""
        return self._attach("in_graph", function)

    def absent(self, behaviour: Behaviour, reason: str) -> None:
        """Declare that a behaviour cannot exist from this version on, and why."""
        self.absences[behaviour] = reason

    def _attach(self, behaviour: Behaviour, function: F) -> F:
        present = self.behaviours.get(behaviour)
        if present is not None and not getattr(present, "derived", False):
            raise SchemaError(f"{self} already has a behaviour {behaviour!r}")
        self.behaviours[behaviour] = function
        return function

    # looking up

    @property
    def previous(self) -> Version | None:
        """The version before this one."""
        older = [v for v in self.operator.versions if v.since < self.since]
        return older[-1] if older else None

    @property
    def is_added(self) -> bool:
        """Whether onnxruntime adds it to the standard: in its own domain, or as an unpublished version."""
        return self.unpublished or self.operator.domain.startswith("com.microsoft")

    @property
    def removed(self) -> bool:
        """Whether the operator is removed from this version on: not only deprecated after release."""
        return self.deprecated and self.previous is not None

    @property
    def constraints(self) -> dict[str, Constraint]:
        """The type constraints that the ports share, by name."""
        return {p.type.name: p.type for p in (*self.inputs, *self.outputs) if isinstance(p.type, Constraint)}

    @property
    def formal(self) -> Signature:
        """The signature, against which calls are checked."""
        if not self._formal:
            self._formal.append(Signature(str(self), self.inputs, self.outputs, self.attributes))
        return self._formal[0]

    def find(self, name: Behaviour) -> Callable[..., Any] | None:
        """Return the behaviour in force at this version, or None."""
        version: Version | None = self
        while version is not None:
            if name in version.behaviours:
                return version.behaviours[name]
            if name in version.absences:
                return None
            version = None if name in ADAPTERS else version.previous
        return None

    def why_absent(self, name: Behaviour) -> str | None:
        """Return the declared reason why a behaviour is absent here, or None."""
        version: Version | None = self
        while version is not None and name not in version.behaviours:
            if name in version.absences:
                return version.absences[name]
            version = None if name in ADAPTERS else version.previous
        return None

    def binding(self, name: Behaviour) -> Binding:
        """Return the behaviour in force, bound to this signature; raises SchemaError where there is none."""
        found = self._bindings.get(name)
        if found is None:
            function = self.find(name)
            if function is None:
                reason = self.why_absent(name)
                raise SchemaError(f"{self} has no {name}{f': {reason}' if reason else ''}")
            found = self._bindings[name] = Binding(self.formal, function)
        return found

    def __str__(self) -> str:
        domain = f"{self.operator.domain}." if self.operator.domain else ""
        return f"{domain}{self.operator.name}:{self.since}"


def _widened(ports: Sequence[AnyPort], more: Mapping[str, frozenset[str]]) -> tuple[AnyPort, ...]:
    def wider(port: AnyPort) -> AnyPort:
        kind = port.type
        if isinstance(kind, str) or kind.name not in more:
            return port
        return replace(port, type=Constraint(kind.name, kind.allowed, more[kind.name]))

    return tuple(wider(p) for p in ports)


def _changed(
    old: Sequence[Attribute],
    dropped: frozenset[str],
    new: Sequence[Attribute],
    defaults: Mapping[str, Any],
    values: Mapping[str, Values],
) -> tuple[Attribute, ...]:
    replaced = dropped | {a.name for a in new}

    def kept(a: Attribute) -> Attribute:
        a = replace(a, default=defaults[a.name]) if a.name in defaults else a
        return replace(a, values=values[a.name]) if a.name in values else a

    return (*(kept(a) for a in old if a.name not in replaced), *new)
