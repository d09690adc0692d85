"""The edits of `sabir edit`: the version, the texts and the metadata of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import CheckError, SchemaError, counted, quote, suggest
from sabir.checking import findings
from sabir.cli._facts import semver_text
from sabir.ir import Graph, Model, ModelVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.base import Finding
    from sabir.ir import VersionPart

GRAPH, METADATA, SEMVER, VERSION = "graph", "metadata", "semver", "version"
_RULES = {"domain": "MODEL009", "doc": "META003", GRAPH: "GRAPH001"}
_DISTINCT_KEYS = "META001"
_MOST_DIGITS = 20  # more than any 64-bit number has


class Edits(NamedTuple):
    """The edits that were asked for: texts by field, a version or a part to bump, metadata by key.

    None as the value of a metadata key removes it.
    """

    texts: Mapping[str, str]
    metadata: Mapping[str, str | None]
    version: int | None = None
    bump: VersionPart | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was asked for."""
        return not (self.texts or self.metadata or self.bump) and self.version is None


class Change(NamedTuple):
    """One changed field, or key of the metadata, with the old and the new value; None where it has none."""

    field: str
    key: str | None
    old: str | int | None
    new: str | int | None


def read_version(text: str) -> int:
    """Return the number of a version that is written as `1.2.345` or as a simple number.

    Raises SchemaError for another text, and for a number that would be read as a semantic version.
    """
    if not (text.isascii() and text.isdigit()):
        return ModelVersion.parse(text).packed
    number = int(text[:_MOST_DIGITS])
    if not ModelVersion.is_simple(number):
        semver = ModelVersion.unpack(number)
        raise SchemaError(f"{number} is too large for a simple number: it means {semver}; write {semver}")
    return number


def apply(model: Model, edits: Edits) -> list[Change]:
    """Change a model; returns what has changed.

    Raises SchemaError for an edit that the model does not allow, and CheckError where the file has a key of
    the edited metadata twice.
    """
    before = _state(model)
    _edit_metadata(model, edits.metadata)
    for field, text in edits.texts.items():
        if field == GRAPH:
            model.graph.name = text
        else:
            setattr(model, field, text)
    if edits.version is not None:
        model.version = edits.version
    if edits.bump is not None:
        model.version = _bumped(model, edits.bump)
    after = _state(model)
    places = dict.fromkeys((*before, *after))
    changes = [Change(*place, before.get(place), after.get(place)) for place in places]
    return [change for change in changes if change.old != change.new]


def violations(model: Model, edits: Edits) -> list[Finding]:
    """Return what the checker finds in the edited fields."""
    rules = [_RULES[field] for field in edits.texts if field in _RULES]
    return _findings(model, rules) if rules else []


def _state(model: Model) -> dict[tuple[str, str | None], str | int | None]:
    """Return the fields that can be edited, in the order of the report."""
    return {
        (GRAPH, None): model.graph.name,
        ("domain", None): model.domain,
        ("producer_name", None): model.producer_name,
        ("producer_version", None): model.producer_version,
        (VERSION, None): model.version,
        (SEMVER, None): semver_text(model.version),
        ("doc", None): model.doc,
        **{(METADATA, key): value for key, value in (model.metadata or {}).items()},
    }


def _findings(model: Model, rules: Iterable[str]) -> list[Finding]:
    """Check a model that has the texts and the metadata of another one, and no nodes."""
    head = Model(
        Graph(model.graph.name),
        domain=model.domain,
        doc=model.doc,
        metadata=model.metadata,
        residue=model.residue,
    )
    return list(findings(head, select=tuple(rules), types=False))


def _edit_metadata(model: Model, wanted: Mapping[str, str | None]) -> None:
    if not wanted:
        return
    twice = [f for f in _findings(model, [_DISTINCT_KEYS]) if f.location.steps[-1].name in wanted]
    if twice:  # a new value, or a removal, would leave the second entry
        raise CheckError(twice)
    metadata = dict(model.metadata or {})
    for key, value in wanted.items():
        if value is not None:
            metadata[key] = value
        elif metadata.pop(key, None) is None:
            raise SchemaError(_missing(key, model.metadata or {}))
    model.metadata = metadata or None


def _missing(key: str, metadata: Mapping[str, str]) -> str:
    if not metadata:
        return f"the model has no metadata, so there is no key {quote(key)} to remove"
    listed = ", ".join(map(quote, metadata))
    near = suggest(key, metadata) or f"; it has {counted(len(metadata), 'key')}: {listed}"
    return f"the metadata of the model has no key {quote(key)}{near}"


def _bumped(model: Model, part: VersionPart) -> int:
    """Return the number of the next version; a patch of a simple number, which has no parts, adds one."""
    semver, number = model.semver, model.version
    if semver is not None:
        return semver.bump(part).packed
    if part != "patch":
        raise SchemaError(
            f"the version of the model is the simple number {number}, which has no {part} part; "
            "--model-version 1.0.0 begins semantic versions, --bump patch adds one to the number"
        )
    if not ModelVersion.is_simple(number + 1):
        raise SchemaError(f"the version of the model, {number}, is the largest simple number")
    return number + 1
