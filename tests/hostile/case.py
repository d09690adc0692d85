"""What a hostile case is, and small words to build one with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sabir.proto import GraphProto, ModelProto, TensorProto
from sabir.proto._wire import encode_bytes, encode_number, encode_varint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Outcome = Literal["any", "refused", "sound"]
Format = Literal["protobuf", "onnxtxt", "json", "textproto"]

MANY = 10_000
"""How many of a thing are many: where time grows with the square, this many take half a minute."""

FLOAT, INT32, INT64, STRING, BOOL = 1, 6, 7, 8, 9


class Case(NamedTuple):
    """One hostile file. `outcome` says what must come of it.

    `refused`: reading it raises, or the check finds an error; `sound`: it is read, no error is found, and it
    runs; `any`: whatever, as long as it ends in an answer or a SabirError.
    """

    name: str
    make: Callable[[], bytes]
    outcome: Outcome = "any"
    form: Format = "protobuf"
    slow: bool = False


CASES: dict[str, Case] = {}


def case(
    name: str,
    make: Callable[[], bytes],
    outcome: Outcome = "any",
    *,
    form: Format = "protobuf",
    slow: bool = False,
) -> None:
    """Add a case to the corpus; a slow one is left to the command line."""
    if name in CASES:
        raise ValueError(f"two cases are named {name!r}")
    CASES[name] = Case(name, make, outcome, form, slow)


# wire format

tag = encode_varint


def field(number: int, *parts: bytes) -> bytes:
    """A length-delimited field."""
    return encode_bytes(number, b"".join(parts))


def number(field: int, value: int) -> bytes:
    """A varint field; a negative value as protobuf writes it."""
    return encode_number(field, value % 2**64)


def group(field: int, *parts: bytes) -> bytes:
    """A group, which protobuf once had and still reads."""
    return tag(field << 3 | 3) + b"".join(parts) + tag(field << 3 | 4)


HEAD = number(1, 10) + field(8, field(1, b""), number(2, 21))


def wire_graph(*parts: bytes) -> bytes:
    """A model whose graph is these bytes."""
    return HEAD + field(7, field(2, b"g"), *parts)


def wire_node(op: str, inputs: Iterable[str] = (), outputs: Iterable[str] = (), *parts: bytes) -> bytes:
    """A node of a graph."""
    named = b"".join(field(1, x.encode()) for x in inputs) + b"".join(field(2, x.encode()) for x in outputs)
    return field(1, named, field(4, op.encode()), *parts)


# messages


def model(graph: Any = None, *, ir: int = 10, opset: int = 21, domains: dict[str, int] | None = None) -> Any:
    """A ModelProto that holds a graph."""
    made = ModelProto(ir_version=ir)
    for domain, version in {"": opset, **(domains or {})}.items():
        made.opset_import.add(domain=domain, version=version)
    made.graph.CopyFrom(graph if graph is not None else relu())
    return made


def graph(name: str = "g") -> Any:
    """A graph with nothing in it."""
    return GraphProto(name=name)


def info(holder: Any, name: str, dims: Iterable[int | str] = (), kind: int = FLOAT) -> Any:
    """Describe one more value of a repeated field."""
    made = holder.add(name=name)
    made.type.tensor_type.elem_type = kind
    made.type.tensor_type.shape.SetInParent()
    for dim in dims:
        one = made.type.tensor_type.shape.dim.add()
        if isinstance(dim, int):
            one.dim_value = dim
        else:
            one.dim_param = dim
    return made


def node(
    holder: Any, op: str, inputs: Iterable[str] = ("x",), outputs: Iterable[str] = ("y",), **more: Any
) -> Any:
    """Add a node to a graph or a function."""
    return holder.node.add(op_type=op, input=inputs, output=outputs, **more)


def relu() -> Any:
    """The smallest sound graph: y = Relu(x)."""
    made = graph()
    info(made.input, "x", ["N"])
    info(made.output, "y", ["N"])
    node(made, "Relu")
    return made


def tensor(name: str = "w", kind: int = FLOAT, dims: Iterable[int] = (2,), **data: Any) -> Any:
    """A TensorProto."""
    return TensorProto(name=name, data_type=kind, dims=dims, **data)
