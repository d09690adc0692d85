"""The rules, one module a subject; importing this package declares them all."""

from sabir.check.rules import (
    attributes,
    contents,
    devices,
    external,
    functions,
    graphs,
    metadata,
    models,
    names,
    nodes,
    quantization,
    sparse,
    tensors,
    training,
    types,
    values,
)

__all__ = [
    "attributes",
    "contents",
    "devices",
    "external",
    "functions",
    "graphs",
    "metadata",
    "models",
    "names",
    "nodes",
    "quantization",
    "sparse",
    "tensors",
    "training",
    "types",
    "values",
]
