"""Which initializers of a model are trained, and by which rule of a group."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from sabir.base import NotFoundError, UnsupportedError, quote
from sabir.differentiation import dequantizes
from sabir.ir import Tensor, TensorType, canonical_domain
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


def trained(
    rewriter: Rewriter, target: Value, trainable: Sequence[str], frozen: Sequence[str]
) -> list[Value]:
    """Return the initializers to train: those that a gradient of `target` reaches and the patterns choose.

    They are floating-point tensors of rank 1 or more. Raises NotFoundError for a pattern that matches none of
    the initializers, UnsupportedError where nothing is left.
    """
    graph = rewriter.model.graph
    names = [v.name for v in graph.initializers]
    for pattern in (*trainable, *frozen):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise NotFoundError(f"no initializer of the model matches the pattern {quote(pattern)}")
    reached = _reached(rewriter, target)
    found = [
        v
        for v, data in graph.initializers.items()
        if v in reached and isinstance(data, Tensor) and data.shape and data.element.is_float
        if matches(v.name, trainable) and not matches(v.name, frozen)
    ]
    if not found:
        raise UnsupportedError(
            "there is nothing to train: the patterns choose no floating-point initializer of rank 1 or more "
            f"that {quote(target.name)} depends on"
        )
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


def _reached(rewriter: Rewriter, target: Value) -> set[Value]:
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


def _passed(rewriter: Rewriter, node: Node) -> Iterable[Value]:
    """Yield the operands of a node that gradients pass to, and what its subgraphs capture."""
    scope = rewriter.scope
    version = scope.registry.find_version(node.domain, node.op, scope.opset(canonical_domain(node.domain)))
    ports = version.inputs if version is not None else ()
    for index, value in enumerate(node.inputs):
        port = ports[min(index, len(ports) - 1)] if ports else None
        if value is not None and (port is None or port.differentiable is not False):
            yield value
    for graph in node.graphs:
        yield from graph.captures()


def _is_float(rewriter: Rewriter, value: Value) -> bool:
    kind = rewriter.inference.type_of(value)
    return not isinstance(kind, TensorType) or not kind.element.number or kind.element.is_float


__all__ = ["Group", "check_groups", "group_of", "matches", "trained"]
