"""The adapter between versions that differ in no meaning: the same call, in the other version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import SabirError, counted
from sabir.ir import Attribute
from sabir.schema._admission import admits
from sabir.schema._ports import port_at

if TYPE_CHECKING:
    from collections.abc import Callable

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
        target = older if downward else newer
        known = {a.name for a in target.attributes}
        formal = {a.name: a for a in (older if not downward else newer).attributes}
        for name, value in attributes.items():
            if name not in known and not formal[name].legacy and value != formal[name].default:
                raise Unconvertible(f"{target} has no attribute {name!r}")
        if downward:
            _check_downward(target, inputs, call)
        kept = {
            k: Attribute(k, formal[k].type, v) for k, v in attributes.items() if k in known and v is not None
        }
        for _, message in target.formal.faults(kept):
            raise Unconvertible(message)
        return b.op(
            target.operator.name, *inputs, outputs=len(call.outputs), domain=target.operator.domain, **kept
        )

    adapter.derived = True  # pyright: ignore[reportFunctionMemberAccess] - a written adapter may replace it
    return adapter


def _check_downward(target: Version, inputs: tuple[Any, ...], call: Any) -> None:
    if len(inputs) > len(target.inputs) and not (target.inputs and target.inputs[-1].variadic):
        raise Unconvertible(f"{target} takes {counted(len(target.inputs), 'input')}")
    if len(call.outputs) > len(target.outputs) and not target.outputs[-1].variadic:
        raise Unconvertible(f"{target} has {len(target.outputs)} outputs")
    for place, value in enumerate(inputs):
        port = port_at(target.inputs, place)
        signature = getattr(getattr(value, "type", None), "signature", None)
        if signature is not None and not admits(port, signature):
            raise Unconvertible(f"{target} does not admit {signature} for {port.name!r}")
