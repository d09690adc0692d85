"""What a type checker makes of the methods of a builder; `make types` checks this file, nothing runs it.

A line with a suppression is an error that the stub must find: one that it does not find is an error too.
"""

# pyright: reportUnnecessaryTypeIgnoreComment=error
from typing import assert_type

import numpy as np

import sabir
from sabir.ir import Graph, Operand, Value

b = sabir.Builder(21, opsets={"ai.onnx.ml": 4})
x = b.input("x", "float", ["N", 4])

# inputs by position: values and constants; attributes by name
assert_type(b.Softmax(x, axis=1), Value)
assert_type(b.Add(x, 1.0), Value)
assert_type(b.Reshape(x, [1, -1]), Value)
assert_type(b.Clip(x, 0, 6), Value)
assert_type(b.Clip(x, None, np.float32(6)), Value)
assert_type(b.Concat(x, x, [[1.0]], axis=0, name="all"), Value)
assert_type(b.Cast(x, to=np.float16), Value)
assert_type(b.Cast(x, to="float16"), Value)

# as many outputs as the operator has, or as the call asks for
assert_type(b.TopK(x, [2]), tuple[Value, Value])
assert_type(b.MaxPool(x, kernel_shape=[2, 2]), Value)
assert_type(b.MaxPool(x, kernel_shape=(2, 2), outputs=2), tuple[Value, Value])
assert_type(b.Split(x, num_outputs=2, outputs=2), tuple[Value, Value])
first, second = b.Split(x, [1, 3], axis=1, outputs=2)

# an attribute that became an input: both ways of the call
assert_type(b.Unsqueeze(x, [0]), Value)
assert_type(b.Unsqueeze(x, axes=[0]), Value)

# subgraphs and functions
assert_type(b.If(b.Not(True), then_branch=lambda g: g.Neg(x), else_branch=lambda g: x), Value)
assert_type(b.subgraph(lambda g: [x, g.Neg(x)]), Graph)


@b.function
def scaled(g: sabir.Builder, y: Value, *, alpha: float = 0.5) -> Operand:
    return g.LeakyRelu(y, alpha=alpha) * 2.0


# operators on values
assert_type(-(x + 1.0) * 2 @ x, Value)
assert_type(1 / x**2, Value)
assert_type(x < 3, Value)
assert_type(x[0, 1:, None, ..., [1, 2]], Value)
assert_type(x == second, bool)  # identity

# other domains
assert_type(b.ml.Normalizer(x, norm="L2"), Value)
b.domain("org.acme").SoftClip(x, limit=1)
assert_type(b.op("Ramp", x, domain="example", top=2.0), Value)

# what is wrong
b.Softmaxx(x)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - no such operator
b.Softmax(x, axes=1)  # pyright: ignore[reportCallIssue] - no such attribute
b.Softmax(x, axis="one")  # pyright: ignore[reportArgumentType] - an attribute of another type
b.Softmax(x, 1)  # pyright: ignore[reportCallIssue] - too many inputs
b.Softmax()  # pyright: ignore[reportCallIssue] - too few inputs
b.Softmax(x, outputs=2)  # pyright: ignore[reportCallIssue] - it has one output
b.Add(x, None)  # pyright: ignore[reportArgumentType] - an input that is not optional
b.Concat(x)  # pyright: ignore[reportCallIssue] - a required attribute
b.ml.Softmax(x)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - of another domain
