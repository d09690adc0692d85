"""The edges of a graph: what a node computes, a graph takes, or an initializer defines."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

from sabir.base import hinted, hints, legible
from sabir.ir._attributes import Nested
from sabir.ir._expressions import ValueOperators
from sabir.ir._links import Readable, Use
from sabir.ir._types import SparseTensorType, TensorType, require_type

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir._dims import Dim
    from sabir.ir._graph import Graph
    from sabir.ir._node import Node
    from sabir.ir._residue import Residue
    from sabir.ir._tensors import Constant
    from sabir.ir._types import Type


@hints(
    doc_string=hinted("doc"),
    metadata_props=hinted("metadata"),
    dtype="the element type is `element`, and its numpy dtype `element.dtype`",
    elem_type=hinted("element"),
    const_value=hinted("constant"),
    producer="the node that computes the value is `node`",
    consumers="`uses` lists every place that reads the value",
    replace_all_uses_with=hinted("replace_with"),
)
class Value(Readable, ValueOperators):
    """One edge of a graph; its name is a label.

    `source` is the node that computes it, the graph that has it as an input or initializer, or None where
    nothing defines it.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> x = model.graph.inputs[0]
    >>> x.name, x.uses[0].user.op, x.node
    ('x', 'Relu', None)
    """

    __slots__ = ("_type", "doc", "metadata", "name", "residue", "source", "value_info_index")

    def __init__(self, name: str = "", type: Type | None = None) -> None:  # ruff: ignore[builtin-argument-shadowing] - the attribute's own name
        """Create a value that nothing defines yet; raises TypeError for a type that is not a type object."""
        self.name = name
        self._type = type if type is None else require_type(type)
        self.source: Node | Graph | None = None
        self.doc = ""
        self.metadata: dict[str, str] | None = None
        self.residue: Residue | None = None
        self.value_info_index: int | None = None  # its position in the file's value_info, for the next save
        self._uses: dict[tuple[Node | Graph, int], None] = {}

    @property
    def type(self) -> Type | None:
        """The declared or inferred type; assigning anything but a type object or None raises TypeError."""
        return self._type

    @type.setter  # ruff: ignore[builtin-attribute-shadowing]  the property above
    def type(self, type_: Type | None) -> None:
        self._type = type_ if type_ is None else require_type(type_)

    @property
    def shape(self) -> tuple[Dim, ...] | None:
        """The shape of a tensor: of an initializer its data's, else as far as the type says it."""
        described = self._tensor()
        return None if described is None else described.shape

    @property
    def element(self) -> ElementType | None:
        """The element type of a tensor: of an initializer its data's, else as far as the type says it."""
        described = self._tensor()
        return None if described is None else described.element

    @property
    def uses(self) -> tuple[Use, ...]:
        """Every place that reads this value."""
        return tuple(starmap(Use, self._uses))

    @property
    def is_read(self) -> bool:
        """Whether there is any place that reads this value."""
        return bool(self._uses)

    @property
    def read_count(self) -> int:
        """The number of places that read this value."""
        return len(self._uses)

    @property
    def node(self) -> Node | None:
        """The node that computes this value, or None."""
        source = self.source
        return None if isinstance(source, Nested) else source

    @property
    def home(self) -> Graph | None:
        """The graph that defines this value, or None."""
        source = self.source
        if source is None or isinstance(source, Nested):
            return source
        return source.graph

    @property
    def constant(self) -> Constant | None:
        """The data of an initializer, None for other values."""
        source = self.source
        return source.initializers.get(self) if isinstance(source, Nested) else None

    @property
    def is_input(self) -> bool:
        """Whether this value is an input of its graph."""
        source = self.source
        return isinstance(source, Nested) and self in source.inputs

    @property
    def is_output(self) -> bool:
        """Whether this value is an output of a graph."""
        return any(isinstance(user, Nested) for user, _ in self._uses)

    def replace_with(self, other: Value) -> None:
        """Make every reader of this value, graph outputs included, read `other` instead."""
        if not isinstance(other, Value):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise TypeError(f"a Value is expected, not the {type(other).__name__} {other!r}")
        for user, slot in tuple(self._uses):
            (user.outputs if isinstance(user, Nested) else user.inputs)[slot] = other

    def _tensor(self) -> TensorType | SparseTensorType | Constant | None:
        """Return what knows the shape and the element type of this value."""
        constant = None if self.is_input else self.constant
        if constant is not None:
            return constant
        return self._type if isinstance(self._type, (TensorType, SparseTensorType)) else None

    def __repr__(self) -> str:
        return legible(f"<Value {self.name or '?'}: {self.type or '?'}>")

    def __reduce__(self) -> tuple[Any, ...]:
        # without links, which the node or the graph that is copied with it restores: a chain of them is as
        # long as the graph, and a recursion along it would not end
        fields = (self.doc, self.metadata, self.residue, self.value_info_index)
        return _rebuilt, (self.name, self._type, *fields)


def _rebuilt(
    name: str,
    type_: Type | None,
    doc: str,
    metadata: dict[str, str] | None,
    residue: Residue | None,
    value_info_index: int | None,
) -> Value:
    value = Value(name)
    value.type = type_
    value.doc, value.metadata, value.residue = doc, metadata, residue
    value.value_info_index = value_info_index
    return value
