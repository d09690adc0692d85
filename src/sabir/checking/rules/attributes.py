"""Attributes: a name, a type, and one value of that type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._examples import HEAD, X, Y, around, in_model
from sabir.checking._rule import Problem, rule
from sabir.checking._survey import lacks_value
from sabir.proto import AttributeProto

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import AttributeSite

_GOOD = HEAD + "g (float[N] x) => (float[N] y) { y = Softmax<axis = 0>(x) }"


def _softmax(attribute: str, *, ir_version: int = 8) -> str:
    return around(
        f'node {{ op_type: "Softmax" input: "x" output: "y" attribute {{ {attribute} }} }}',
        ir_version=ir_version,
    )


def _constant(text: str) -> str:
    return around(
        'node { op_type: "Relu" input: "x" output: "y" } node { op_type: "Constant" output: "c"'
        f' attribute {{ name: "value_string" type: STRING s: "{text}" }} }}'
    )


def _fields(site: AttributeSite) -> list[str]:
    """Return the value fields that the message has besides the one for the attribute's type."""
    residue = site.attribute.residue
    if residue is None or not residue.wire:
        return []
    return [f.name for f, _ in AttributeProto.FromString(residue.wire).ListFields()]


@rule(
    "ATTR001",
    "The properties 'name' and 'type' are required on all attributes, and 'doc_string' SHOULD be used on all"
    " attributes.",
    source="ir.txt",
    over="attribute",
    bad=around('node { op_type: "Relu" input: "x" output: "y" attribute { type: INT i: 0 } }'),
    good=_GOOD,
)
def named(site: AttributeSite) -> Iterator[Problem]:
    """An attribute has a name."""
    if not site.attribute.name:
        yield Problem("the attribute has no name", site.where, "name it, or drop the attribute")


@rule(
    "ATTR002",
    "The properties 'name' and 'type' are required on all attributes, and 'doc_string' SHOULD be used on all"
    " attributes.",
    source="ir.txt",
    over="attribute",
    since=2,
    bad=_softmax('name: "axis" i: 0'),
    good=_GOOD,
)
def typed(site: AttributeSite) -> Iterator[Problem]:
    """An attribute declares its type; before IR 2 the type was implicit."""
    attribute = site.attribute
    unsaid = attribute.residue is not None and "type" in attribute.residue.repeated
    if attribute.type == "undefined" or unsaid:
        yield Problem("the attribute declares no type", site.where, "set `type` to that of its value")


@rule(
    "ATTR003",
    "An attribute MUST have only one of the value-carrying properties.",
    source="ir.txt",
    over="attribute",
    bad=(_softmax('name: "axis" type: INT i: -1 f: 1'), _softmax('name: "axis" type: INT i: -1 ints: 1')),
    good=_GOOD,
)
def one_value(site: AttributeSite) -> Iterator[Problem]:
    """An attribute has only the value of its type."""
    more = [f for f in _fields(site) if f in _VALUES]
    if more and site.attribute.value is not None and not _is_empty(site):
        yield Problem(
            f"the attribute has a second value, in `{more[0]}`", site.where, "keep the intended one"
        )


@rule(
    "ATTR004",
    "The type of the attribute, determining which of the remaining fields is used to hold the value of the"
    " attribute.",
    source="ir.txt",
    over="attribute",
    bad=_softmax('name: "axis" type: INT floats: 1'),
    good=_GOOD,
)
def value_of_its_type(site: AttributeSite) -> Iterator[Problem]:
    """The value is in the field for the attribute's type."""
    attribute = site.attribute
    more = [f for f in _fields(site) if f in _VALUES]
    if more and not attribute.ref and (attribute.value is None or _is_empty(site)):
        message = f"the attribute has the type {quote(attribute.type)}, but its value is in `{more[0]}`"
        yield Problem(message, site.where, "correct the type or the value")


@rule(
    "ATTR005",
    "An attribute MUST have only one of the value-carrying properties.",
    source="ir.txt",
    over="attribute",
    bad=in_model(
        f'graph {{ name: "g" {X} {Y} node {{ op_type: "f" domain: "d" input: "x" output: "y" }} }}'
        ' opset_import { domain: "d" version: 1 } functions { name: "f" domain: "d" input: "a" output: "b"'
        ' attribute_proto { name: "k" type: INT i: 0 } opset_import { version: 17 } node { op_type: "Softmax"'
        ' input: "a" output: "b" attribute { name: "axis" type: INT i: 0 ref_attr_name: "k" } } }',
        ir_version=10,
    ),
    good='<ir_version: 10, opset_import: ["" : 17, "d" : 1]>\n'
    "g (float[N] x) => (float[N] y) { y = d.f<k = 0>(x) }\n"
    '<domain: "d", opset_import: ["" : 17]>\nf <k> (a) => (b) { b = Softmax<axis: int = @k>(a) }',
)
def reference_or_value(site: AttributeSite) -> Iterator[Problem]:
    """An attribute reference has no value."""
    attribute = site.attribute
    if attribute.ref and (attribute.value is not None or any(f in _VALUES for f in _fields(site))):
        yield Problem("the attribute has both a value and a reference", site.where, "keep one of them")


@rule(
    "ATTR006",
    "The properties 'name' and 'type' are required on all attributes, and 'doc_string' SHOULD be used on all"
    " attributes.",
    source="ir.txt",
    over="attribute",
    severity="warning",
    group="style",
    bad=_GOOD,
    good=_softmax('name: "axis" type: INT i: 0 doc_string: "the batch"'),
)
def documented(site: AttributeSite) -> Iterator[Problem]:
    """An attribute has a doc string."""
    if not site.attribute.doc:
        yield Problem("the attribute has no doc string", site.where, "describe its purpose")


@rule(
    "ATTR007",
    "All strings are encoded using UTF-8.",
    source="ir.txt",
    over="attribute",
    severity="warning",
    note="custom operators store arbitrary bytes in string attributes",
    bad=_constant(r"\377"),
    good=_constant("text"),
)
def text_is_utf8(site: AttributeSite) -> Iterator[Problem]:
    """The text of an attribute is UTF-8."""
    value = site.attribute.value
    if isinstance(value, bytes) or (
        site.attribute.type == "strings" and any(isinstance(s, bytes) for s in value or ())
    ):
        yield Problem("the attribute's text is not UTF-8", site.where, "keep bytes in a tensor of uint8")


@rule(
    "ATTR008",
    "The type of the attribute, determining which of the remaining fields is used to hold the value of the"
    " attribute.",
    source="ir.txt",
    over="attribute",
    bad=(
        around(
            'node { op_type: "Relu" input: "x" output: "y" } node { op_type: "Constant" output: "c"'
            ' attribute { name: "value" type: TENSOR } }'
        ),
        in_model(
            f'graph {{ name: "g" {X} {Y} node {{ op_type: "f" domain: "d" input: "x" output: "y" }} }}'
            ' opset_import { domain: "d" version: 1 } functions { name: "f" domain: "d" input: "a"'
            ' output: "b" attribute_proto { name: "k" type: TYPE_PROTO } opset_import { version: 17 }'
            ' node { op_type: "Relu" input: "a" output: "b" } }',
            ir_version=10,
        ),
    ),
    good=_softmax('name: "axis" type: INT'),
)
def has_a_value(site: AttributeSite) -> Iterator[Problem]:
    """An attribute of type tensor, graph or type has a value; an absent number or text means 0 or empty."""
    if lacks_value(site.attribute) and not any(f in _VALUES for f in _fields(site)):
        message = f"the attribute has the type {quote(site.attribute.type)}, but no value"
        yield Problem(message, site.where, "set a value, or drop the attribute")


_VALUES = frozenset({
    "f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs", "sparse_tensor",
    "sparse_tensors", "tp", "type_protos",
})  # fmt: skip


def _is_empty(site: AttributeSite) -> bool:
    """Whether the value equals the default of an absent field."""
    attribute = site.attribute
    return lacks_value(attribute) or (
        attribute.value in {0, "", ()} and not isinstance(attribute.value, bytes)
    )
