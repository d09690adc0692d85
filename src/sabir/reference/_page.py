"""The page of one operator, in Markdown, written from its room."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sabir.reference._lookup import version_at
from sabir.schema import (
    CLASSIC,
    COMPLEX,
    FLOAT6,
    FLOAT8,
    FLOATS,
    INT2,
    INT4,
    INTEGERS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    optionals,
    sequences,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.schema import Attribute, Operator, Port, Version


_NAMED = (
    ("every tensor of the first release", CLASSIC),
    ("float16 to double and all integers", NUMBERS),
    ("float16, float, double", FLOATS),
    ("int8 to int64, uint8 to uint64", INTEGERS),
    ("int8 to int64", SIGNED),
    ("uint8 to uint64", UNSIGNED),
    ("complex64, complex128", COMPLEX),
    ("the four float8 types", FLOAT8),
    ("both float6 types", FLOAT6),
    ("int4, uint4", INT4),
    ("int2, uint2", INT2),
)


def page(operator: Operator, opset: int | None = None) -> str:
    """Return the page of an operator at `opset` (the newest version by default), with its history.

    Raises SchemaError where the operator does not exist at that opset.

    >>> page(find_version('Relu').operator, 6).splitlines()[0]
    '# Relu'
    """
    return page_of(operator.versions[-1] if opset is None else version_at(operator, opset))


def page_of(version: Version) -> str:
    """Return the page of an operator in one version, with its history.

    >>> page_of(find_version('Relu:6')).splitlines()[0]
    '# Relu'
    """
    return "\n".join(_lines(version.operator, version)) + "\n"


def file_name(operator: Operator) -> str:
    """Return the name of an operator's page, unique over all domains.

    >>> file_name(find_version('Relu').operator)
    'ai.onnx.Relu.md'
    """
    return f"{operator.domain or 'ai.onnx'}.{operator.name}.md"


def _lines(operator: Operator, version: Version) -> Iterator[str]:
    yield f"# {operator.name}"
    yield ""
    yield operator.summary
    yield ""
    since = f"Domain `{operator.domain or 'ai.onnx'}`, version {version.since}"
    others = [str(v.since) for v in operator.versions if v is not version]
    yield _heading(since, others)
    if version.status == "experimental":
        yield "\n**Experimental**: its syntax, meaning and presence may change without a new version."
    if version.deprecated:
        yield f"\n**Deprecated**: {version.changes}"
    yield ""
    yield "```text"
    yield signature(version)
    yield "```"
    yield from _table("Inputs", ("name", "type", "meaning"), map(_port_row, version.inputs))
    yield from _table("Outputs", ("name", "type", "meaning"), map(_port_row, version.outputs))
    kept = [a for a in version.attributes if not a.legacy]
    columns = ("name", "type", "default", "values", "meaning")
    yield from _table("Attributes", columns, (_attribute_row(version, a) for a in kept))
    rows = ((f"`{name}`", summarised(c.allowed)) for name, c in version.constraints.items())
    yield from _table("Types", ("constraint", "admits"), rows)
    yield from _behaviours(version)
    yield "\n## History\n"
    for one in operator.versions:
        yield f"- **{one.since}**{marked(one)}: {one.changes}"


def marked(version: Version) -> str:
    """Return the status of a version in brackets, or nothing for a stable version.

    >>> marked(find_version('Upsample:1')), marked(find_version('Relu'))
    (' (experimental)', '')
    """
    return "" if version.status == "stable" else f" ({version.status})"


def _heading(since: str, others: Sequence[str]) -> str:
    return f"{since} (others: {', '.join(others)})." if others else f"{since}."


def signature(version: Version) -> str:
    """Return how a call of a version is written: `Y = Conv(X, W, B?, *, group=1)`."""
    inputs = [_spelled(p) for p in version.inputs]
    attributes = [_argument(a) for a in version.attributes if not a.legacy]
    arguments = [*inputs, *(["*", *attributes] if attributes else ())]
    outputs = ", ".join(_spelled(p) for p in version.outputs)
    return f"{outputs} = {version.operator.name}({', '.join(arguments)})"


def _spelled(port: Port) -> str:
    return f"{port.name}{'...' if port.variadic else '?' if port.optional else ''}"


def _argument(attribute: Attribute) -> str:
    if attribute.required:
        return attribute.name
    return f"{attribute.name}={_default(attribute.default)}"


def _default(value: object) -> str:
    if value is None:
        return "..."
    return repr(list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value)


def _port_row(port: Port) -> tuple[str, ...]:
    kind = port.type if isinstance(port.type, str) else port.type.name
    notes = [
        note
        for note, applies in (
            ("optional", port.optional),
            (f"{port.minimum} or more", port.variadic),
            ("of any mix of types", port.heterogeneous),
        )
        if applies
    ]
    return f"`{port.name}`", f"`{kind}`", _noted(port.doc, notes)


def _noted(doc: str, notes: Sequence[str]) -> str:
    return f"{doc} ({', '.join(notes)})" if notes else doc


def _attribute_row(version: Version, attribute: Attribute) -> tuple[str, ...]:
    shown = "none" if attribute.default is None else f"`{_default(attribute.default)}`"
    default = "required" if attribute.required else shown
    values = version.formal.values.get(attribute.name)
    listed = "" if values is None else values.listed()
    return f"`{attribute.name}`", attribute.type, default, listed, attribute.doc


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    found = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    if not found:
        return
    yield f"\n## {title}\n"
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in found:
        yield f"| {' | '.join(row)} |"


def _behaviours(version: Version) -> Iterator[str]:
    """Yield the notes: absent behaviours with the reason, and whether the operator is a function."""
    notes = [
        f"- No `{name}`: {reason}"
        for name in ("infer", "evaluate", "upgrade", "downgrade", "gradient", "body")
        if version.find(name) is None and (reason := version.why_absent(name))
    ]
    if version.find("body") is not None:
        expands = "`sabir.inline(model, operators=True)` expands it"
        notes.insert(0, f"- A function, defined by other operators; {expands}.")
    if notes:
        yield "\n## Notes\n"
        yield from notes


def summarised(types: frozenset[str]) -> str:
    """Return a set of types in words, groups first; every type is in it."""
    left, words = set(types), list[str]()
    for description, group in _NAMED:
        for kind, whole in (
            ("{}", group),
            ("sequences of {}", sequences(group)),
            ("optionals of {}", optionals(group)),
        ):
            if whole <= left:
                words.append(kind.format(description))
                left -= whole
    rest = sorted(t.removeprefix("tensor(").removesuffix(")") if t.startswith("tensor(") else t for t in left)
    return "; ".join([*words, ", ".join(rest)] if rest else words)
