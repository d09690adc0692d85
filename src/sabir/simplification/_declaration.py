"""What a rewrite declares: its pattern, its replacement, and the models that prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.ir import TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.inference import Inference
    from sabir.ir import Array, Node, Value
    from sabir.rewriting import DetachedBuilder
    from sabir.simplification._pattern import Pattern


class Match:
    """The part of a model that a pattern matches: values, constants and nodes by the names of the pattern."""

    def __init__(
        self,
        root: Node,
        values: Mapping[str, Value],
        constants: Mapping[str, Array],
        nodes: Mapping[str, Node],
        inference: Callable[[], Inference],
        attributes: Callable[[Node], Mapping[str, Any]],
    ) -> None:
        """Take what was matched; `attributes` returns those of a node with their defaults."""
        self.root, self.nodes = root, nodes
        self._values, self._constants = values, constants
        self._inference, self._attributes = inference, attributes

    def __getitem__(self, name: str) -> Value:
        """Return the value of a name."""
        return self._values[name]

    def has(self, name: str) -> bool:
        """Return whether the pattern has a value of this name."""
        return name in self._values

    def stands_for(self, value: Value) -> bool:
        """Return whether a value is one that the pattern matched, and that was there before."""
        return value in self._values.values()

    def constant(self, name: str) -> Array:
        """Return the data of the constant `$name`."""
        return self._constants[name]

    def attributes(self, name: str = "") -> Mapping[str, Any]:
        """Return the attributes of the node of a name, with defaults; those of the root without one."""
        return self._attributes(self.nodes[name] if name else self.root)

    def type(self, name: str) -> TensorType | None:
        """Return the inferred type of the value of a name; None where it is no tensor or not known."""
        found = self._inference().type_of(self._values[name])
        return found if isinstance(found, TensorType) else None

    def result_type(self, name: str = "") -> TensorType | None:
        """Return the inferred type of the first output of the node of a name, or of the root."""
        output = (self.nodes[name] if name else self.root).outputs[0]
        found = None if output is None else self._inference().type_of(output)
        return found if isinstance(found, TensorType) else None

    def rank(self, name: str) -> int | None:
        """Return the rank of the value of a name, None where it is not known."""
        found = self.type(name)
        return None if found is None or found.shape is None else len(found.shape)


class Rewrite(NamedTuple):
    """One rewrite: calls that match `pattern` become what `build` builds, or stay where it returns None.

    `says` is the equation. Where it is `exact`, both sides have the same bits for all inputs, NaN and
    infinities included; else they differ by rounding. Nodes inside the pattern must have no other reader,
    unless they may be `shared`. `examples` are models that it changes, `others` similar ones that it must
    leave alone; each is the text of the nodes of a graph from `x` to `y`. `since` is the opset of the default
    domain that the replacement needs, `until` the first one in which the pattern is no valid call any more.
    """

    name: str
    says: str
    pattern: Pattern
    build: Callable[[DetachedBuilder, Match], Value | None]
    exact: bool = True
    shared: bool = True
    examples: Sequence[str] = ()
    others: Sequence[str] = ()
    since: int = 1
    until: int | None = None
