"""The types that a builder accepts for the inputs and attributes of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sabir.elements import ElementType
from sabir.ir._attributes import Attribute
from sabir.ir._graph import Graph
from sabir.ir._tensors import Constant
from sabir.ir._types import Type
from sabir.ir._value import Value

if TYPE_CHECKING:
    from sabir.ir._builder import Builder

# a constant: numbers or texts, nested lists of them, an array, or a tensor
ConstantLike: TypeAlias = (
    bool | int | float | complex | str | bytes | Sequence[Any] | np.ndarray[Any, Any] | np.generic | Constant
)
Operand: TypeAlias = Value | ConstantLike  # what an input of a node may be; None leaves an optional one out

# the values of attributes; an `Attribute` may refer to the attribute of the function around the node
IntLike: TypeAlias = int | np.integer[Any] | np.bool_ | Attribute
FloatLike: TypeAlias = float | np.floating[Any] | np.integer[Any] | Attribute
StringLike: TypeAlias = str | bytes | Attribute
# an element type: its number, name, dtype or `ElementType`
ElementLike: TypeAlias = int | str | np.dtype[Any] | type[Any] | ElementType | Attribute
IntsLike: TypeAlias = Sequence[int | np.integer[Any]] | np.ndarray[Any, Any] | Attribute
FloatsLike: TypeAlias = Sequence[float | np.floating[Any]] | np.ndarray[Any, Any] | Attribute
StringsLike: TypeAlias = Sequence[str | bytes] | Attribute
TensorLike: TypeAlias = ConstantLike | Attribute
TensorsLike: TypeAlias = Sequence[ConstantLike] | Attribute
SparseTensorLike: TypeAlias = Constant | Attribute
SparseTensorsLike: TypeAlias = Sequence[Constant] | Attribute
TypeLike: TypeAlias = Type | Attribute
TypesLike: TypeAlias = Sequence[Type] | Attribute
# a graph, or a function that builds it: it takes the builder of the subgraph and returns its outputs
Subgraph: TypeAlias = Graph | Callable[["Builder"], Operand | Sequence[Operand] | None]
GraphLike: TypeAlias = Subgraph | Attribute
GraphsLike: TypeAlias = Sequence[Subgraph] | Attribute

__all__ = [
    "Attribute", "Constant", "ConstantLike", "ElementLike", "FloatLike", "FloatsLike", "Graph", "GraphLike",
    "GraphsLike", "IntLike", "IntsLike", "Operand", "SparseTensorLike", "SparseTensorsLike", "StringLike",
    "StringsLike", "Subgraph", "TensorLike", "TensorsLike", "Type", "TypeLike", "TypesLike", "Value",
]  # fmt: skip
