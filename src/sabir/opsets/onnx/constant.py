"""Constant: a tensor in an attribute of the node."""

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import ArrayTensor, Builder, SparseTensor, Tensor, TensorType, Value
from sabir.opsets.families.shapes import contents
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOAT8,
    FLOATS,
    SMALL_TYPES,
    Attribute,
    Call,
    Constraint,
    Example,
    Operator,
    Output,
)

constant = Operator("Constant", summary="The tensor in the node's only attribute.")

T = Constraint("T", FLOATS)

v1 = constant.first(
    1,
    outputs=[
        Output("output", T, "The attribute's tensor; a sparse one in its dense form.", tolerated=CLASSIC)
    ],
    attributes=[Attribute("value", "tensor", "The output itself.", required=True)],
)
v9 = v1.widen(9, T=CLASSIC)
v11 = v9.evolve(
    11,
    "`sparse_value` may contain the tensor in sparse form instead.",
    add=[
        Attribute("sparse_value", "sparse_tensor", "The output, in sparse form."),
        Attribute("value", "tensor", "The output itself."),
    ],
)
v12 = v11.extend(
    12,
    "Numbers and strings may be plain attributes.",
    attributes=[
        Attribute("value_strings", "strings", "The elements of a 1-D string tensor."),
        Attribute("value_string", "string", "The element of a 0-D string tensor."),
        Attribute("value_floats", "floats", "The elements of a 1-D float tensor."),
        Attribute("value_float", "float", "The element of a 0-D float tensor."),
        Attribute("value_ints", "ints", "The elements of a 1-D int64 tensor."),
        Attribute("value_int", "int", "The element of a 0-D int64 tensor."),
    ],
)
v13 = v12.widen(13, T=BFLOAT16)
v25 = v13.widen_stepwise({19: FLOAT8, **SMALL_TYPES}, "T")

_MOST_FLOATS = 16  # known contents of float tensors serve scales and limits, not data
_DTYPES = {"string": np.object_, "float": np.float32, "int": np.int64}
Content = Tensor | SparseTensor | Sequence[str] | Sequence[float] | str | float | None


@v1.infer
def infer(**values: Content) -> TensorType:
    tensor = tensor_of(values)
    kind = TensorType(tensor.element, tensor.shape)
    if min(tensor.shape, default=0) < 0:
        raise InferenceError(f"the dimension {min(tensor.shape)} of its value is negative")
    most = _MOST_FLOATS if tensor.element.is_float else contents.MOST
    if tensor.element.kind in {"string", "complex"} or not (isinstance(kind.size, int) and kind.size <= most):
        return kind
    return kind.with_known(contents.of_array(tensor.array()))


@v1.evaluate
def evaluate(**values: Content) -> Array:
    return tensor_of(values).array()


def tensor_of(values: dict[str, Content]) -> Tensor | SparseTensor:
    """Return the tensor of the only attribute that is set; raises InferenceError for none or several."""
    found = [(name, value) for name, value in values.items() if value is not None]
    if len(found) != 1:
        raise InferenceError(
            f"takes exactly one of its attributes; the node has {', '.join(n for n, _ in found) or 'none'}"
        )
    name, value = found[0]
    if isinstance(value, (Tensor, SparseTensor)):
        return value
    return ArrayTensor(np.array(value, _DTYPES[name.removeprefix("value_").removesuffix("s")]))


@constant.check
def warnings(*, call: Call, **values: Content) -> Iterator[str]:
    """Exporters wrote int64 shapes before version 9 admitted them, and runtimes accept them."""
    kind = infer(**values) if call.opset == v1.since else None
    if kind is not None and kind.signature not in v1.outputs[0].allowed:
        yield f"its output is {kind.signature}, which the standard admits from version {v9.since} on"


@v11.upgrade
def same_value(b: Builder, /, *, value: Tensor) -> Value:
    return b.Constant(value=value)


@v9.downgrade
def other_types_are_initializers(b: Builder, /, *, value: Tensor) -> Value:
    """Make a constant that is no float, which a node cannot compute yet, an initializer."""
    is_float = f"tensor({value.element.name})" in FLOATS
    return b.Constant(value=value) if is_float else b.initializer("constant", value)


@v11.downgrade
def sparse_becomes_dense(b: Builder, /, *, value: Tensor | None, sparse_value: SparseTensor | None) -> Value:
    tensor = tensor_of({"value": value, "sparse_value": sparse_value})
    return b.Constant(value=tensor if isinstance(tensor, Tensor) else ArrayTensor(tensor.array()))


@v12.downgrade
def values_become_a_tensor(b: Builder, /, **values: Content) -> Value:
    tensor = tensor_of(values)
    return b.Constant(value=tensor) if isinstance(tensor, Tensor) else b.Constant(sparse_value=tensor)


@constant.examples
def examples() -> Iterator[Example]:
    x = np.array([[1.5, np.nan], [-0.0, np.inf]], np.float32)
    for opset in (1, 9, 11, 12, 13, 19, 21, 23, 24, 25):
        yield Example(opset, value=x, expect=[x])
    flat = SparseTensor(ArrayTensor(np.array([7, 8])), ArrayTensor(np.array([1, 5])), (2, 3))
    pairs = SparseTensor(ArrayTensor(np.array([7, 8])), ArrayTensor(np.array([[0, 1], [1, 2]])), (2, 3))
    for sparse in (flat, pairs):
        yield Example(11, sparse_value=sparse, expect=[[[0, 7, 0], [0, 0, 8]]])
    yield Example(12, value_int=-3, expect=[-3])
    yield Example(12, value_ints=[], expect=[np.array([], np.int64)])
    yield Example(12, value_ints=[1, 2], expect=[[1, 2]])
    yield Example(12, value_float=0.1, expect=[0.1])
    yield Example(12, value_floats=[0.1, 2], expect=[[0.1, 2]])
    yield Example(12, value_string="ä", expect=["ä"])
    yield Example(12, value_strings=["a", ""], expect=[["a", ""]])
    yield Example(21, value=np.array([-8, 7], ml_dtypes.int4), expect=[np.array([-8, 7], ml_dtypes.int4)])
    yield Example(13, value=np.arange(20, dtype=np.float32))
