"""The model objects: immutable types, tensors and attributes, and mutable graphs of linked nodes."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.ir._attributes import ATTRIBUTE_TYPES, Attribute, Attributes, AttributeType
from sabir.ir._builder import Builder
from sabir.ir._clone import clone_function, clone_graph, clone_node
from sabir.ir._devices import DeviceConfiguration, NodeDevice, ShardedAxis, Sharding
from sabir.ir._dims import (
    Dim,
    Expr,
    above_one,
    add,
    ceil_div,
    dim_max,
    dim_min,
    exact_quotient,
    floor_div,
    is_capped,
    is_nonnegative,
    is_one,
    known_equal,
    lower_bound,
    mod,
    mul,
    parse_dim,
    product,
    read_dim,
    sub,
    symbol,
    total,
    trunc_div,
    upper_bound,
)
from sabir.ir._dims_choices import choose_extremes
from sabir.ir._dims_judging import judging, may_be_at_most, may_be_equal
from sabir.ir._features import (
    CONSTANTS,
    CONTAINERS,
    DEVICES,
    NEWEST_IN_GRAPHS,
    OPTIONALS,
    SPARSE,
    TRAINING,
    VALUE_INFO,
    Feature,
    elements_of_type,
    features_of_function,
    features_of_graph,
    features_of_node,
    features_of_tensor,
    features_of_type,
    features_of_value,
    first_ir_of_element,
    parts_of_type,
)
from sabir.ir._fresh import FreshNames
from sabir.ir._graph import Annotation, Graph
from sabir.ir._imports import binding_places, bound_opsets, canonical_domain, find_opset
from sabir.ir._initializers import Initializers
from sabir.ir._links import Use
from sabir.ir._listing import Listed
from sabir.ir._model import Function, FunctionKey, Model, TrainingInfo, check_is_model
from sabir.ir._model_version import ModelVersion, VersionPart
from sabir.ir._named import ValueOrName, name_of, names_of
from sabir.ir._names import NameScope
from sabir.ir._node import Node
from sabir.ir._operator_set import MAGIC, OperatorEntry, OperatorSet, OperatorStatus
from sabir.ir._releases import (
    NEWEST_IR,
    OLDEST_IR_OF_IMPORTS,
    Release,
    first_ir_of,
    first_release_with,
    least_ir_of_imports,
    minimum_ir,
    newest_opset,
    newest_opset_of_ir,
    opsets_of_ir,
    release,
    releases,
    require_released,
    unknown_ir,
)
from sabir.ir._residue import Residue
from sabir.ir._tensors import (
    MAX_RANK,
    Array,
    ArrayTensor,
    Buffer,
    Constant,
    ExternalTensor,
    SparseTensor,
    Tensor,
    WireTensor,
)
from sabir.ir._types import (
    UNDEFINED,
    ElementKey,
    Item,
    Known,
    MapType,
    OpaqueType,
    OptionalType,
    SequenceType,
    Shape,
    SparseTensorType,
    TensorType,
    Type,
    TypeNote,
    tensor_type,
    unknown_element,
)
from sabir.ir._unused_imports import drop_imports, unused_imports
from sabir.ir._used_features import features_above, first_release, least_ir, used_features
from sabir.ir._value import Value

if TYPE_CHECKING:
    from sabir.ir._coercion import coerced
    from sabir.ir._constants import Literal, converted, literal
    from sabir.ir._declarations import read_outputs, read_value_info
    from sabir.ir._digests import contents_digest
    from sabir.ir._functions import FunctionCallee, LocalFunction
    from sabir.ir._hooks import Site
    from sabir.ir._labels import Labels
    from sabir.ir._operands import Operand, Subgraph
    from sabir.ir._places import Place, places, walk
    from sabir.ir._resolve import resolve
    from sabir.ir._retyping import (
        attribute_with_dims,
        change_dims,
        dim_variables,
        layout_with_dims,
        with_dims,
    )
    from sabir.ir._verify import verify
    from sabir.ir._walk import TensorPlace, all_tensors, drop_constants, stored_bytes

# what only builders need: imported with the first node that does
_LATER = {
    "coerced": "_coercion", "contents_digest": "_digests",
    "Literal": "_constants", "converted": "_constants", "literal": "_constants",
    "Labels": "_labels", "Place": "_places", "places": "_places", "walk": "_places", "resolve": "_resolve",
    "verify": "_verify", "TensorPlace": "_walk", "all_tensors": "_walk", "drop_constants": "_walk",
    "stored_bytes": "_walk",
    "attribute_with_dims": "_retyping", "change_dims": "_retyping", "dim_variables": "_retyping",
    "layout_with_dims": "_retyping", "with_dims": "_retyping",
    "read_outputs": "_declarations", "read_value_info": "_declarations",
    "FunctionCallee": "_functions", "LocalFunction": "_functions", "Site": "_hooks",
    "Operand": "_operands", "Subgraph": "_operands",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)

__all__ = [
    "ATTRIBUTE_TYPES",
    "CONSTANTS",
    "CONTAINERS",
    "DEVICES",
    "MAGIC",
    "MAX_RANK",
    "NEWEST_IN_GRAPHS",
    "NEWEST_IR",
    "OLDEST_IR_OF_IMPORTS",
    "OPTIONALS",
    "SPARSE",
    "TRAINING",
    "UNDEFINED",
    "VALUE_INFO",
    "Annotation",
    "Array",
    "ArrayTensor",
    "Attribute",
    "AttributeType",
    "Attributes",
    "Buffer",
    "Builder",
    "Constant",
    "DeviceConfiguration",
    "Dim",
    "ElementKey",
    "Expr",
    "ExternalTensor",
    "Feature",
    "FreshNames",
    "Function",
    "FunctionCallee",
    "FunctionKey",
    "Graph",
    "Initializers",
    "Item",
    "Known",
    "Labels",
    "Listed",
    "Literal",
    "LocalFunction",
    "MapType",
    "Model",
    "ModelVersion",
    "NameScope",
    "Node",
    "NodeDevice",
    "OpaqueType",
    "Operand",
    "OperatorEntry",
    "OperatorSet",
    "OperatorStatus",
    "OptionalType",
    "Place",
    "Release",
    "Residue",
    "SequenceType",
    "Shape",
    "ShardedAxis",
    "Sharding",
    "Site",
    "SparseTensor",
    "SparseTensorType",
    "Subgraph",
    "Tensor",
    "TensorPlace",
    "TensorType",
    "TrainingInfo",
    "Type",
    "TypeNote",
    "Use",
    "Value",
    "ValueOrName",
    "VersionPart",
    "WireTensor",
    "above_one",
    "add",
    "all_tensors",
    "attribute_with_dims",
    "binding_places",
    "bound_opsets",
    "canonical_domain",
    "ceil_div",
    "change_dims",
    "check_is_model",
    "choose_extremes",
    "clone_function",
    "clone_graph",
    "clone_node",
    "coerced",
    "contents_digest",
    "converted",
    "dim_max",
    "dim_min",
    "dim_variables",
    "drop_constants",
    "drop_imports",
    "elements_of_type",
    "exact_quotient",
    "features_above",
    "features_of_function",
    "features_of_graph",
    "features_of_node",
    "features_of_tensor",
    "features_of_type",
    "features_of_value",
    "find_opset",
    "first_ir_of",
    "first_ir_of_element",
    "first_release",
    "first_release_with",
    "floor_div",
    "is_capped",
    "is_nonnegative",
    "is_one",
    "judging",
    "known_equal",
    "layout_with_dims",
    "least_ir",
    "least_ir_of_imports",
    "literal",
    "lower_bound",
    "may_be_at_most",
    "may_be_equal",
    "minimum_ir",
    "mod",
    "mul",
    "name_of",
    "names_of",
    "newest_opset",
    "newest_opset_of_ir",
    "opsets_of_ir",
    "parse_dim",
    "parts_of_type",
    "places",
    "product",
    "read_dim",
    "read_outputs",
    "read_value_info",
    "release",
    "releases",
    "require_released",
    "resolve",
    "stored_bytes",
    "sub",
    "symbol",
    "tensor_type",
    "total",
    "trunc_div",
    "unknown_element",
    "unknown_ir",
    "unused_imports",
    "upper_bound",
    "used_features",
    "verify",
    "walk",
    "with_dims",
]
