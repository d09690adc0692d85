"""Groups of parameters by their names, and what a gradient reaches."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from sabir.base import NotFoundError, quote
from sabir.differentiation import dequantizes
from sabir.ir import TensorType, canonical_domain
from sabir.training._optimizers import check_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.ir import Node, Value
    from sabir.rewriting import Rewriter


@dataclass(frozen=True, slots=True)
class Group:
    """What is special about the parameters whose names match a pattern, such as `"*.bias"`.

    Their learning rate is multiplied by `scale`; `weight_decay` replaces that of the optimizer. Of several
    groups that match a name the last one applies.

    >>> Group('*.bias', weight_decay=0).scale
    1.0
    """

    pattern: str
    scale: float = 1.0
    weight_decay: float | None = None

    def __post_init__(self) -> None:
        """Raise UnsupportedError for numbers that no step can have."""
        check_number("the scale of a group", self.scale)
        if self.weight_decay is not None:
            check_number("the weight_decay of a group", self.weight_decay)


def reached_by_gradients(rewriter: Rewriter, target: Value) -> set[Value]:
    """Return the values that a gradient of the target reaches, through floating-point tensors.

    It also reaches what is quantized and dequantized.
    """
    found, pending = {target}, [target]
    while pending:
        node = pending.pop().node
        if node is None:
            continue
        for value in _passed(rewriter, node):
            if value not in found and (_is_float(rewriter, value) or dequantizes(node, value)):
                found.add(value)
                pending.append(value)
    return found


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name matches one of some patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def group_of(name: str, groups: Sequence[Group]) -> Group:
    """Return the last group whose pattern matches a name."""
    return next((g for g in reversed(groups) if fnmatchcase(name, g.pattern)), Group("*"))


def check_groups(groups: Sequence[Group], parameters: Sequence[Value]) -> None:
    """Raise NotFoundError for a group without parameters."""
    for group in groups:
        if not any(fnmatchcase(v.name, group.pattern) for v in parameters):
            raise NotFoundError(f"no parameter that is trained matches the group {quote(group.pattern)}")


def _passed(rewriter: Rewriter, node: Node) -> Iterable[Value]:
    """Yield the operands of a node that gradients pass to, and what its subgraphs capture."""
    scope = rewriter.scope
    version = scope.registry.find_version(node.domain, node.op, scope.opset(canonical_domain(node.domain)))
    ports = version.inputs if version is not None else ()
    for index, value in enumerate(node.inputs):
        port = ports[min(index, len(ports) - 1)] if ports else None
        if value is not None and (port is None or port.differentiable is not False):
            yield value
    yield from node.captures()


def _is_float(rewriter: Rewriter, value: Value) -> bool:
    kind = rewriter.inference.type_of(value)
    return not isinstance(kind, TensorType) or not kind.element.number or kind.element.is_float


__all__ = ["Group", "check_groups", "group_of", "matches", "reached_by_gradients"]
