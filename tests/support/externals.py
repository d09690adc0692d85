"""Models with tensors in every place that can have one, and what is in their files."""

from collections.abc import Iterator
from itertools import starmap
from typing import Any

import numpy as np

import sabir
from sabir.ir import (
    ArrayTensor,
    Attribute,
    ExternalTensor,
    Function,
    Graph,
    Model,
    Node,
    SparseTensor,
    Tensor,
    TrainingInfo,
    all_tensors,
)
from sabir.proto import ModelProto, TensorProto

LENGTH = 600  # float32 elements of each tensor: more than the default threshold


def model_of(**arrays: Any) -> Model:
    """A model that concatenates its initializers."""
    b = sabir.Builder(21, check=False)
    b.output(b.Concat(*starmap(b.initializer, arrays.items()), axis=0), "y", "float", [None])
    return b.model()


def everywhere() -> Model:
    """A model with a tensor, of ever new contents, in every kind of place."""
    count = 0

    def tensor() -> Tensor:
        nonlocal count
        count += 1
        return ArrayTensor(np.full(LENGTH, count, np.float32))

    def sparse() -> SparseTensor:
        return SparseTensor(tensor(), ArrayTensor(np.arange(LENGTH)), (2 * LENGTH,))

    def body(name: str) -> Graph:
        graph = Graph(name)
        graph.add_initializer(f"{name}_w", tensor())
        node = Node("Thing", (), 1, {"value": Attribute("value", "tensor", tensor())}, domain="x", name=name)
        graph.append(node)
        graph.outputs.append(node.output)
        return graph

    model = sabir.Builder(21).model()
    model.opsets["x"] = 1
    graph = model.graph
    graph.add_initializer("dense", tensor())
    graph.add_initializer("sparse", sparse())
    attributes = {
        "one": Attribute("one", "tensor", tensor()),
        "many": Attribute("many", "tensors", (tensor(), tensor())),
        "sparse": Attribute("sparse", "sparse_tensor", sparse()),
        "sparses": Attribute("sparses", "sparse_tensors", (sparse(),)),
        "body": Attribute("body", "graph", body("inner")),
        "bodies": Attribute("bodies", "graphs", (body("first"), body("second"))),
    }
    graph.append(Node("Thing", (), 1, attributes, domain="x", name="node"))
    defaults = {
        "t": Attribute("t", "tensor", tensor()), "g": Attribute("g", "graph", body("default")), "none": None,
    }  # fmt: skip
    called = body("function")
    called.set_initializer(next(iter(called.initializers)), None)  # a function has no initializers
    model.functions.append(Function("F", "x", graph=called, attributes=defaults, opsets={"": 21}))
    model.training.append(TrainingInfo(body("start"), body("step")))
    return model


def contents(model: Model) -> list[list[float]]:
    """What every tensor of a model holds."""
    return [t.array().tolist() for t, *_ in all_tensors(model)]


def locations(model: Model) -> list[str]:
    """Where the data of every external tensor of a model lies."""
    return [t.entries["location"] for t, *_ in all_tensors(model) if isinstance(t, ExternalTensor)]


def tensor_messages(message: Any) -> Iterator[Any]:
    """Every `TensorProto` in a message, found by looking into all fields of all messages."""
    if message.DESCRIPTOR.full_name == TensorProto.DESCRIPTOR.full_name:
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in value if field.is_repeated else (value,):
                yield from tensor_messages(inner)


def message_in(path: Any) -> Any:
    """The ModelProto in a file."""
    return ModelProto.FromString(path.read_bytes())
