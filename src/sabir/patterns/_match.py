"""What a pattern matched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.ir import TensorType
from sabir.rewriting import constant_of
from sabir.schema import Unconvertible, Version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Array, Node, Tensor, Value
    from sabir.rewriting import Rewriter
    from sabir.schema import Scope


class Bindings(NamedTuple):
    """What the names of a pattern stand for in a model."""

    values: Mapping[str, Value]
    rests: Mapping[str, Sequence[Value | None]]
    nodes: Mapping[str, Node]
    attributes: Mapping[str, Any]


class Match:
    """The part of a model that a pattern matches: values, constants and nodes by the names of the pattern.

    A rule passes it to its conditions and to the function that builds its replacement.

    >>> rule = sabir.RewriteRule('r', 's = Softmax (x)', 'x', [lambda m: m.attributes('s')['axis'] == 0])
    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Softmax (x) }''')
    >>> sabir.rewrite(model, rule, explain=True).refusals[0].reason
    'the condition <lambda> does not hold'
    """

    def __init__(self, root: Node, bindings: Bindings, rewriter: Rewriter) -> None:
        """Take the node of the pattern's last output, and what was bound."""
        self.root, self.nodes = root, bindings.nodes
        self._bindings, self._rewriter = bindings, rewriter

    def __getitem__(self, name: str) -> Value:
        """Return the value of a name; raises KeyError for an operand that is left out."""
        return self._bindings.values[name]

    def has(self, name: str) -> bool:
        """Return whether a value has this name: an operand that may be left out may be missing."""
        return name in self._bindings.values

    def rest(self, name: str) -> Sequence[Value | None]:
        """Return the operands that `*name` stands for."""
        return self._bindings.rests[name]

    def stands_for(self, value: Value) -> bool:
        """Return whether a value is one that the pattern matched, and that was there before."""
        return value in self._bindings.values.values()

    def constant(self, name: str) -> Array:
        """Return the data of the constant `$name`; raises Unconvertible for a value that is none."""
        data = self.data(name)
        if data is None:
            raise Unconvertible(f"{name} is no constant")
        return data.array()

    def data(self, name: str) -> Tensor | None:
        """Return the constant that a value is, None where it is none, or left out."""
        value = self._bindings.values.get(name)
        return None if value is None else constant_of(value)

    def attribute(self, name: str) -> Any:
        """Return the value of an attribute that the pattern named, `axis: int = @name`; None without one."""
        return self._bindings.attributes[name]

    def attributes(self, name: str = "") -> Mapping[str, Any]:
        """Return the attributes of the node of a name, with defaults; those of the root without one."""
        return attributes_of(self.nodes[name] if name else self.root, self._rewriter)

    def type(self, name: str) -> TensorType | None:
        """Return the inferred type of the value of a name; None where it is no tensor or not known."""
        return self.type_of(self._bindings.values[name])

    def result_type(self, name: str = "") -> TensorType | None:
        """Return the inferred type of the first output of the node of a name, or of the root."""
        output = (self.nodes[name] if name else self.root).outputs[0]
        return None if output is None else self.type_of(output)

    def rank(self, name: str) -> int | None:
        """Return the rank of the value of a name, None where it is not known."""
        found = self.type(name)
        return None if found is None or found.shape is None else len(found.shape)

    @property
    def scope(self) -> Scope:
        """The scope of the graph in which the match is."""
        graph = self.root.graph
        return self._rewriter.scope if graph is None else self._rewriter.scope_of(graph)

    def type_of(self, value: Value) -> TensorType | None:
        """Return the inferred type of a value, a new one too; None where it is no tensor or not known."""
        found = self._rewriter.inference.type_of(value)
        return found if isinstance(found, TensorType) else None


def attributes_of(node: Node, rewriter: Rewriter) -> Mapping[str, Any]:
    """Return the values of a node's attributes, with defaults where its operator is known.

    Raises Unconvertible where the call of a function decides a value.
    """
    scope = rewriter.scope if node.graph is None else rewriter.scope_of(node.graph)
    if scope.is_open(node):
        raise Unconvertible("an attribute comes from the call of a function")
    given = scope.arguments(node.attributes)
    values = {name: attribute.value for name, attribute in given.items()}
    callee = rewriter.callee(node)
    if isinstance(callee, Version):
        formals = callee.formal.attributes
        return {name: values[name] if name in given else formal.default for name, formal in formals.items()}
    return values
