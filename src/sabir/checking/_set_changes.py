"""The differences between two operator sets of one domain, and what the standard says about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sabir.ir import canonical_domain
from sabir.serial import to_proto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Function, OperatorEntry, OperatorSet

ChangeKind = Literal["added", "removed", "changed"]
Fault = Literal["version", "stable", "since"]
_MOST_NAMED = 5  # operators in a message
# what documents a function, and does not change what it computes
_DOCUMENTATION = ("doc_string", "metadata_props")


class OperatorChange(NamedTuple):
    """An operator that one of two operator sets lacks, or that differs between them.

    `what` says what differs: `since_version`, `status`, `function`. `fault` is what is wrong with the change,
    if anything is, and `problem` is a sentence about it.

    >>> from sabir.ir import OperatorEntry
    >>> OperatorChange('added', None, OperatorEntry('FastConv', 3)).name
    'FastConv'
    """

    kind: ChangeKind
    old: OperatorEntry | None
    new: OperatorEntry | None
    what: tuple[str, ...] = ()
    fault: Fault | None = None
    problem: str = ""

    @property
    def name(self) -> str:
        """The name of the operator."""
        entry = self.new or self.old
        return entry.name if entry else ""


class SetChanges(NamedTuple):
    """The differences between two operator sets; `problem` says why the newer needs another version.

    >>> from sabir.ir import OperatorEntry, OperatorSet
    >>> old = OperatorSet('com.acme', 1, [OperatorEntry('A', 1)])
    >>> new = OperatorSet('com.acme', 2, [OperatorEntry('A', 1), OperatorEntry('B', 2)])
    >>> [(change.kind, change.name) for change in set_changes(old, new).changes]
    [('added', 'B')]
    """

    changes: list[OperatorChange]
    problem: str = ""

    @property
    def are_valid(self) -> bool:
        """Whether the versions agree with the differences."""
        return not self.problem and not any(change.fault for change in self.changes)


def set_changes(old: OperatorSet, new: OperatorSet) -> SetChanges:
    """Return the differences from one operator set to a later one of the same domain.

    Functions are compared by their messages without documentation: another name of a value counts as a
    change. A function that is new for an entry defines it and changes nothing.

    >>> from sabir.ir import OperatorEntry, OperatorSet
    >>> old = OperatorSet('com.acme', 1, [OperatorEntry('A', 1)])
    >>> set_changes(old, OperatorSet('com.acme', 1)).problem
    "two documents of com.acme:1 differ in the operator 'A'; its version must be above 1"
    """
    changes = list(_changes(old, new))
    problem = ""
    if changes and new.version <= old.version:
        names = ", ".join(repr(change.name) for change in changes[:_MOST_NAMED])
        names = f"{names} and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else names
        plural = "s" if len(changes) > 1 else ""
        pair = f"{new.label} differs from {old.label}"
        if new.label == old.label:
            pair = f"two documents of {new.label} differ"
        problem = f"{pair} in the operator{plural} {names}; its version must be above {old.version}"
        changes = [change._replace(fault=None, problem="") for change in changes]
    return SetChanges(changes, problem)


def _changes(old: OperatorSet, new: OperatorSet) -> Iterator[OperatorChange]:
    before = {entry.name: entry for entry in old.operators}
    after = {entry.name: entry for entry in new.operators}
    bodies, new_bodies = _bodies(old), _bodies(new)
    for name, entry in before.items():
        if name not in after:
            yield OperatorChange("removed", entry, None)
    for name, entry in after.items():
        previous = before.get(name)
        if previous is None:
            yield _added(entry, old, new)
            continue
        what = [field for field, differs in (
            ("since_version", previous.since != entry.since),
            ("status", previous.status != entry.status),
            ("function", _differ(bodies.get(name), new_bodies.get(name))),
        ) if differs]  # fmt: skip
        if what:
            yield _changed(previous, entry, tuple(what), old, new)


def _added(entry: OperatorEntry, old: OperatorSet, new: OperatorSet) -> OperatorChange:
    if entry.since > old.version:
        return OperatorChange("added", None, entry)
    problem = f"{_label(entry, new)} is not in {old.label}, though its since_version says that it was"
    return OperatorChange("added", None, entry, (), "since", problem)


def _changed(
    previous: OperatorEntry, entry: OperatorEntry, what: tuple[str, ...], old: OperatorSet, new: OperatorSet
) -> OperatorChange:
    label = _label(entry, new)
    if "since_version" in what:
        if entry.since > old.version:
            return OperatorChange("changed", previous, entry, what)
        problem = (
            f"{label} had the since_version {previous.since} in {old.label}; a new one is above {old.version}"
        )
        return OperatorChange("changed", previous, entry, what, "since", problem)
    if previous.status == "stable":
        differs = " and ".join("its function" if part == "function" else f"its {part}" for part in what)
        problem = f"{label} is STABLE in {old.label}, and {differs} differs in {new.label}"
        return OperatorChange("changed", previous, entry, what, "stable", problem)
    return OperatorChange("changed", previous, entry, what)


def _label(entry: OperatorEntry, owner: OperatorSet) -> str:
    return f"{canonical_domain(owner.domain) or 'ai.onnx'}.{entry.name}:{entry.since}"


def _bodies(operator_set: OperatorSet) -> dict[str, dict[str, bytes]]:
    """Return the functions of each operator by their overloads, as messages without documentation."""
    found: dict[str, dict[str, bytes]] = {}
    for function in operator_set.functions:
        found.setdefault(function.name, {})[function.overload] = _content(function)
    return found


def _differ(before: dict[str, bytes] | None, after: dict[str, bytes] | None) -> bool:
    if before is None or after is None:
        return False  # what an entry without a function means is not known
    return any(after.get(overload) != content for overload, content in before.items())


def _content(function: Function) -> bytes:
    message = to_proto(function)
    pending = [message]
    while pending:
        one: Any = pending.pop()
        if one.DESCRIPTOR.name == "NodeProto":
            one.ClearField("name")
        for field, value in one.ListFields():
            if field.name in _DOCUMENTATION:
                one.ClearField(field.name)
            elif field.message_type is not None:
                pending.extend([value] if hasattr(value, "DESCRIPTOR") else value)
    return message.SerializeToString()
