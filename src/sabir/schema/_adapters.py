"""The adapter between versions that differ in no meaning: the same call, in the other version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from sabir.base import SabirError, counted
from sabir.ir import Attribute
from sabir.schema._admission import admits
from sabir.schema._ports import port_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.schema._ports import Attribute as FormalAttribute
    from sabir.schema._version import Version


class Unconvertible(SabirError):
    """A call that has no equivalent in the target version; the message says why."""


def same_call(older: Version, newer: Version) -> Callable[..., Any]:
    """Return the adapter, both ways, between two versions that agree where both are defined.

    Its target is the version that the builder's opset has. It raises Unconvertible where the call uses what
    the older version lacks: an attribute with another value than its default, a value of an attribute, an
    input, an output, a type.
    """

    def adapter(b: Any, /, *inputs: Any, call: Any, **attributes: Any) -> Any:
        downward = b.opsets[newer.operator.domain] < newer.since
        source, target = (newer, older) if downward else (older, newer)
        formal = source.formal.attributes
        stated = {k: Attribute(k, formal[k].type, v) for k, v in attributes.items() if v is not None}
        kept = kept_attributes(source, target, stated)
        if downward:
            signatures = [getattr(getattr(v, "type", None), "signature", None) for v in inputs]
            check_ports(target, signatures, len(call.outputs))
        return b.op(
            target.operator.name, *inputs, outputs=len(call.outputs), domain=target.operator.domain, **kept
        )

    adapter.derived = True  # pyright: ignore[reportFunctionMemberAccess] - a written adapter may replace it
    return adapter


def is_derived(adapter: Callable[..., Any]) -> bool:
    """Return whether an adapter is one of `same_call`: the call itself is valid in the other version.

    >>> from sabir.opsets import STANDARD
    >>> is_derived(STANDARD.find_version('', 'Relu', 13).behaviours['upgrade'])
    True
    """
    return getattr(adapter, "derived", False)


def kept_attributes(
    source: Version, target: Version, attributes: Mapping[str, Attribute]
) -> dict[str, Attribute]:
    """Return the attributes that a call of `source` keeps as the same call of `target`.

    An attribute that the target does not have is left out where it is legacy or has its default. Raises
    Unconvertible for another one, and for a value that the target does not admit.
    """
    known, formal = target.formal.attributes, source.formal.attributes
    kept: dict[str, Attribute] = {}
    for name, attribute in attributes.items():
        if name in known:
            kept[name] = attribute
        elif name not in formal:
            raise Unconvertible(f"{source} has no attribute {name!r}")
        elif not formal[name].legacy and not is_default(attribute, formal[name]):
            raise Unconvertible(f"{target} has no attribute {name!r}")
    for _, message in target.formal.faults(kept):
        raise Unconvertible(message)
    return kept


def is_default(attribute: Attribute, formal: FormalAttribute) -> bool:
    """Return whether an attribute states the default of its declaration, or what that implies."""
    if attribute.ref:
        return False
    value: Any = attribute.value
    if formal.implied is not None and isinstance(value, tuple):
        return all(item == formal.implied for item in cast("tuple[object, ...]", value))
    return bool(value == formal.default)


def check_ports(target: Version, signatures: Sequence[str | None], outputs: int) -> None:
    """Raise Unconvertible where a version takes no such operands, or has fewer outputs.

    `signatures` are the types of the operands as type strings, None where one is not known.
    """
    if len(signatures) > len(target.inputs) and not (target.inputs and target.inputs[-1].variadic):
        raise Unconvertible(f"{target} takes {counted(len(target.inputs), 'input')}")
    if outputs > len(target.outputs) and not target.outputs[-1].variadic:
        raise Unconvertible(f"{target} has {counted(len(target.outputs), 'output')}")
    for place, signature in enumerate(signatures):
        port = port_at(target.inputs, place)
        if signature is not None and not admits(port, signature):
            raise Unconvertible(f"{target} does not admit {signature} for {port.name!r}")
