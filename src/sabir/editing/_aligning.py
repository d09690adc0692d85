"""Two models in the same versions of the operator sets and of the format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import ConversionError
from sabir.conversion import convert
from sabir.ir import Node, bound_opsets, canonical_domain, places

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.ir import Model
    from sabir.schema import Registry


def aligned(
    a: Model, b: Model, registry: Registry
) -> tuple[Model, Model, tuple[Mapping[str, int], Mapping[str, int]]]:
    """Return copies of two models with the same versions of operator sets and of the format."""
    imports = [_imports(a), _imports(b)]
    common = {d: max(i.get(d, 0) for i in imports) for d in {**imports[0], **imports[1]}}
    ir_version = max(a.ir_version, b.ir_version)
    copies: list[Model] = []
    converted: list[Mapping[str, int]] = []
    for model, own in zip((a, b), imports, strict=True):
        targets = {domain: common[domain] for domain, version in own.items() if version < common[domain]}
        for domain in [d for d in targets if not registry.has_domain(d)]:
            _require_own_functions(model, domain, (own[domain], common[domain]))
            del targets[domain]
        copy = convert(model, opsets=targets, registry=registry) if targets else model.clone()
        if copy.ir_version < ir_version:
            copy = convert(copy, ir_version=ir_version, registry=registry)
        copies.append(copy)
        converted.append(targets)
    first, second = copies
    first.opsets = {**first.opsets, **second.opsets, **{d: v for d, v in common.items() if v}}
    if "" in first.opsets:
        first.opsets.pop("ai.onnx", None)  # the other spelling of the same domain
    return first, second, (converted[0], converted[1])


def _imports(model: Model) -> dict[str, int]:
    """Return the imports of a model; that of the default domain also where it is implicit, but used."""
    found = bound_opsets(model.opsets)
    version = model.opset("")
    if version is not None and any(not canonical_domain(p.object.domain) for p in places(model, Node)):
        found.setdefault("", version)
    return found


def _require_own_functions(model: Model, domain: str, versions: tuple[int, int]) -> None:
    """Raise ConversionError for a call of a domain that is no function of the model: nothing converts it."""
    own = model.functions_by_key()
    for place in places(model, Node):
        node: Node = place.object
        if node.domain == domain and (canonical_domain(domain), node.op, node.overload) not in own:
            old, new = versions
            raise ConversionError(
                f"{place.location}: one model imports {domain} {old}, the other {domain} {new}, and no "
                f"operators of this domain are known that would convert the call of {node.op}; `registry=` "
                "adds your own"
            )
