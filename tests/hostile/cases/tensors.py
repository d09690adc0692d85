"""Tensors and types: shapes that cannot be, data that does not fit, contents out of range."""

from __future__ import annotations

from typing import Any

from hostile.case import (
    FLOAT,
    INT64,
    MANY,
    case,
    field,
    graph,
    info,
    model,
    node,
    number,
    relu,
    tag,
    tensor,
    wire_graph,
)

BFLOAT16, FLOAT16, FLOAT8, INT4, UINT4, FLOAT4, UINT2, FLOAT6 = 16, 10, 17, 22, 21, 23, 25, 27
MAX, MIN = 2**63 - 1, -(2**63)


def initializer(held: Any) -> bytes:
    """A model that gives out an initializer."""
    made = relu()
    held.name = "w"
    made.initializer.append(held)
    node(made, "Identity", ["w"], ["z"])
    made.output.add(name="z").type.tensor_type.elem_type = held.data_type
    made.output[-1].type.tensor_type.shape.SetInParent()
    for dim in held.dims[:64]:
        made.output[-1].type.tensor_type.shape.dim.add(dim_value=dim)
    opset = 25 if held.data_type == UINT2 else 21
    return model(made, ir=13 if opset == 25 else 10, opset=opset).SerializeToString()


def attribute(held: Any) -> bytes:
    """A model that gives out a Constant."""
    made = graph()
    info(made.output, "y", [])
    node(made, "Constant", [], ["y"]).attribute.add(name="value", type=4).t.CopyFrom(held)
    return model(made).SerializeToString()


BAD: dict[str, dict[str, Any]] = {
    "raw too short": {"raw_data": b"\0" * 7},
    "raw too long": {"raw_data": b"\0" * 9},
    "raw empty": {"raw_data": b""},
    "raw much too long": {"raw_data": b"\0" * 100_000},
    "typed too short": {"float_data": [1.0]},
    "typed too long": {"float_data": [1.0] * 3},
    "no data": {},
    "data of another type": {"int64_data": [1, 2]},
    "raw and typed data": {"raw_data": b"\0" * 8, "float_data": [1.0, 2.0]},
    "negative dimension": {"dims": [-2], "float_data": [1.0, 2.0]},
    "two negative dimensions": {"dims": [-1, -2], "float_data": [1.0, 2.0]},
    "dimension INT64_MIN": {"dims": [MIN], "float_data": [1.0]},
    "dimension 2^62 and no data": {"dims": [2**62]},
    "dimension 2^62 and a little data": {"dims": [2**62], "float_data": [1.0]},
    "product of dimensions is 2^64": {"dims": [2**32, 2**32], "raw_data": b""},
    "product of dimensions is 2^64 + 2": {"dims": [2**63 - 1, 2, 2], "float_data": [1.0, 2.0]},
    "product is 0 with a huge dimension": {"dims": [0, 2**62, 2**62], "raw_data": b"\0"},
    "10000 huge dimensions": {"dims": [2**62] * MANY, "float_data": [1.0]},
    "10000 negative dimensions": {"dims": [-7] * MANY, "float_data": [1.0]},
    "type 0": {"kind": 0, "raw_data": b"\0" * 8},
    "type 99": {"kind": 99, "raw_data": b"\0" * 8},
    "type 999": {"kind": 999, "raw_data": b"\0" * 8},
    "type -1": {"kind": -1, "raw_data": b"\0" * 8},
    "type 2^31 - 1": {"kind": 2**31 - 1, "raw_data": b"\0" * 8},
    "int8 of 70000": {"kind": 3, "int32_data": [70_000, 1]},
    "int8 of -129": {"kind": 3, "int32_data": [-129, 1]},
    "uint8 of -1": {"kind": 2, "int32_data": [-1, 1]},
    "uint16 of 65536": {"kind": 4, "int32_data": [65_536, 1]},
    "uint32 of 2^32": {"kind": 12, "uint64_data": [2**32, 1]},
    "bool of 7": {"kind": 9, "int32_data": [7, 1]},
    "bool of -1": {"kind": 9, "int32_data": [-1, 1]},
    "float16 code 65536": {"kind": FLOAT16, "int32_data": [65_536, 1]},
    "bfloat16 code -1": {"kind": BFLOAT16, "int32_data": [-1, 1]},
    "float8 code 256": {"kind": FLOAT8, "int32_data": [256, 1]},
    "int4: half a byte is missing": {"kind": INT4, "dims": [3], "raw_data": b"\x21"},
    "int4: 16 bytes for 3": {"kind": INT4, "dims": [3], "raw_data": b"\x21" * 16},
    "int4: a typed entry of 256": {"kind": INT4, "int32_data": [256]},
    "int4: an entry for each": {"kind": INT4, "int32_data": [1, 2]},
    "uint2: too many bytes": {"kind": UINT2, "dims": [5], "raw_data": b"\x21" * 3},
    "float6: too few bytes": {"kind": FLOAT6, "dims": [4], "raw_data": b"\x21" * 2},
    "float4: too many bytes": {"kind": FLOAT4, "dims": [1], "raw_data": b"\x21" * 2},
    "complex64: half of it": {"kind": 14, "float_data": [1.0, 2.0]},
    "complex128: odd count": {"kind": 15, "double_data": [1.0, 2.0, 3.0]},
    "external: no location": {"data_location": 1},
    "external: and raw data": {"data_location": 1, "raw_data": b"\0" * 8},
    "bool bytes of 2 and 255": {"kind": 9, "raw_data": b"\x02\xff"},
    "location 7": {"data_location": 0, "raw_data": b"\0" * 7},
}
for name, given in BAD.items():
    told = {"kind": FLOAT, "dims": [2], **given}

    def held(told: dict[str, Any] = told) -> Any:
        """Make the tensor, which some cases make large."""
        return tensor(**told)

    case(f"tensor: {name}", lambda h=held: initializer(h()), "refused")
    case(f"attribute tensor: {name}", lambda h=held: attribute(h()), "refused")

# the standard bounds no rank, numpy does
for rank in (65, MANY):
    told = {"kind": FLOAT, "dims": [1] * rank, "float_data": [1.0]}
    case(f"tensor: {rank} dimensions", lambda t=told: initializer(tensor(**t)))
    case(f"attribute tensor: {rank} dimensions", lambda t=told: attribute(tensor(**t)))

GOOD: dict[str, dict[str, Any]] = {
    "a scalar": {"dims": [], "float_data": [1.0]},
    "no elements": {"dims": [0], "raw_data": b""},
    "no elements and no data": {"dims": [0]},
    "no elements in 2^62 rows": {"dims": [2**62, 0]},
    "64 dimensions": {"dims": [1] * 64, "float_data": [1.0]},
    "NaN with a payload": {"raw_data": b"\x01\x00\xa0\x7f\xff\xff\xff\xff"},
    "int4 with stray bits": {"kind": INT4, "dims": [3], "raw_data": b"\x21\xff"},
    "uint4 with stray bits": {"kind": UINT4, "dims": [1], "raw_data": b"\xf1"},
    "uint2 with stray bits": {"kind": UINT2, "dims": [1], "raw_data": b"\xff"},
    "float16 of all ones": {"kind": FLOAT16, "raw_data": b"\xff" * 4},
}
for name, given in GOOD.items():
    told = {"kind": FLOAT, "dims": [2], **given}
    case(
        f"tensor: {name}",
        lambda t=told: initializer(tensor(**t)),
        "sound" if given.get("dims") != [2**62, 0] else "any",
    )

ENTRIES: dict[str, list[tuple[str, str]]] = {
    "no entries": [],
    "an absolute path": [("location", "/etc/passwd")],
    "a path to above": [("location", "../../../../../etc/passwd")],
    "a hidden path to above": [("location", "a/../../b")],
    "a path with backslashes": [("location", "..\\..\\secret")],
    "a drive": [("location", "C:\\secret")],
    "a share": [("location", "//host/share/file")],
    "a device": [("location", "/dev/zero")],
    "standard input": [("location", "/dev/stdin")],
    "memory": [("location", "/proc/self/mem")],
    "a pointer": [("location", "*/_ORT_MEM_ADDR_/*"), ("offset", "140000000000000"), ("length", "8")],
    "a NUL": [("location", "data\0.bin")],
    "an empty location": [("location", "")],
    "a dot": [("location", ".")],
    "a URL": [("location", "file:///etc/passwd")],
    "a location of 10000 letters": [("location", "a" * MANY)],
    "a negative offset": [("location", "data.bin"), ("offset", "-1")],
    "an offset of 2^63": [("location", "data.bin"), ("offset", str(2**63))],
    "an offset in Arabic digits": [("location", "data.bin"), ("offset", "\u0661\u0662")],
    "an offset with underscores": [("location", "data.bin"), ("offset", "1_0")],
    "an offset of 10000 digits": [("location", "data.bin"), ("offset", "9" * MANY)],
    "a length of petabytes": [("location", "data.bin"), ("length", str(2**50))],
    "a length of -1": [("location", "data.bin"), ("length", "-1")],
    "a length that is no number": [("location", "data.bin"), ("length", "many")],
    "a location twice": [("location", "data.bin"), ("location", "/etc/passwd")],
    "strange keys": [("location", "data.bin"), ("__class__", "x"), ("basepath", "/etc")],
    "10000 keys": [("location", "data.bin"), *[(f"k{i}", "v") for i in range(MANY)]],
}


def external(entries: list[tuple[str, str]], dims: list[int]) -> bytes:
    """A model whose initializer lies elsewhere."""
    held = tensor("w", FLOAT, dims, data_location=1)
    for key, value in entries:
        held.external_data.add(key=key, value=value)
    return initializer(held)


for name, entries in ENTRIES.items():
    case(f"external: {name}", lambda e=entries: external(e, [2]))
case("external: in 2^62 elements", lambda: external([("location", "data.bin")], [2**62]))
case("external: in -2 elements", lambda: external([("location", "data.bin")], [-2]), "refused")

SPARSE: dict[str, tuple[dict[str, Any], dict[str, Any], list[int]]] = {
    "an index out of range": ({}, {"int64_data": [0, 99]}, [4]),
    "an index of 2^62": ({}, {"int64_data": [0, 2**62]}, [4]),
    "a negative index": ({}, {"int64_data": [-1, 0]}, [4]),
    "unsorted indices": ({}, {"int64_data": [3, 0]}, [4]),
    "an index twice": ({}, {"int64_data": [1, 1]}, [4]),
    "fewer indices than values": ({}, {"dims": [1], "int64_data": [1]}, [4]),
    "more indices than values": ({}, {"dims": [3], "int64_data": [1, 2, 3]}, [4]),
    "indices of no rank": ({}, {"dims": [], "int64_data": [1]}, [4]),
    "indices of three axes": ({}, {"dims": [2, 1, 1], "int64_data": [0, 1]}, [4]),
    "coordinates of another rank": ({}, {"dims": [2, 3], "int64_data": [0] * 6}, [4, 4]),
    "coordinates out of range": ({}, {"dims": [2, 2], "int64_data": [0, 0, 0, 9]}, [4, 4]),
    "negative coordinates": ({}, {"dims": [2, 2], "int64_data": [0, 0, 1, -1]}, [4, 4]),
    "unsorted coordinates": ({}, {"dims": [2, 2], "int64_data": [1, 0, 0, 1]}, [4, 4]),
    "indices of int32": ({}, {"kind": 6, "int32_data": [0, 1]}, [4]),
    "indices of float": ({}, {"kind": FLOAT, "float_data": [0, 1]}, [4]),
    "values of two axes": ({"dims": [1, 2]}, {}, [4]),
    "no values at all": ({"dims": [0], "float_data": []}, {"dims": [0], "int64_data": []}, [4]),
    "no shape": ({}, {}, []),
    "a negative dimension": ({}, {}, [-4]),
    "two negative dimensions": ({}, {}, [-2, -2]),
    "a dimension of 2^40": ({}, {}, [2**40]),
    "a dimension of 2^62": ({}, {}, [2**62]),
    "dimensions whose product is 2^64": ({}, {}, [2**32, 2**32]),
    "10000 dimensions": ({}, {}, [1] * MANY),
    "10000 huge dimensions": ({}, {}, [2**62] * MANY),
    "a coordinate in 2^40 rows": ({}, {"dims": [2, 2], "int64_data": [0, 0, 0, 1]}, [2**40, 2]),
    "values cut short": ({"raw_data": b"\0", "float_data": []}, {}, [4]),
    "string values": ({"kind": 8, "float_data": [], "string_data": [b"a", b"b"]}, {}, [4]),
}
FITTING = (
    "no values at all",
    "string values",
    "a dimension of 2^40",
    "a dimension of 2^62",
    "a coordinate in 2^40 rows",
)


def sparse(values: dict[str, Any], indices: dict[str, Any], dims: list[int]) -> tuple[Any, Any, list[int]]:
    """The two tensors of a sparse one, and its shape."""
    one = tensor(**{"name": "w", "kind": FLOAT, "dims": [2], "float_data": [1.0, 2.0], **values})
    other = tensor(**{
        "name": "",
        "kind": INT64,
        "dims": [2],
        **(indices or {"int64_data": [0, 1]}),
    })
    return one, other, dims


def sparse_initializer(values: Any, indices: Any, dims: list[int]) -> bytes:
    """A model that gives out a sparse initializer."""
    made = graph()
    info(made.output, "y", [], values.data_type)
    node(made, "Identity", ["w"], ["y"])
    made.sparse_initializer.add(values=values, indices=indices, dims=dims)
    return model(made).SerializeToString()


def sparse_constant(values: Any, indices: Any, dims: list[int]) -> bytes:
    """A model that gives out a sparse Constant."""
    made = graph()
    info(made.output, "y", [], values.data_type)
    given = node(made, "Constant", [], ["y"]).attribute.add(name="sparse_value", type=11)
    given.sparse_tensor.values.CopyFrom(values)
    given.sparse_tensor.indices.CopyFrom(indices)
    given.sparse_tensor.dims.extend(dims)
    return model(made).SerializeToString()


for name, parts in SPARSE.items():
    outcome = "any" if name in FITTING else "refused"
    case(f"sparse: {name}", lambda p=parts: sparse_initializer(*sparse(*p)), outcome)
    case(f"sparse constant: {name}", lambda p=parts: sparse_constant(*sparse(*p)), outcome)
case("sparse: nothing in it", lambda: wire_graph(field(15)), "refused")
case(
    "sparse: only values",
    lambda: wire_graph(field(15, field(1, number(1, 1), number(2, 1), field(8, b"w")))),
    "refused",
)


def shaped(dims: list[int | str], kind: int = FLOAT) -> bytes:
    """Relu of an input of this type."""
    made = graph()
    info(made.input, "x", dims, kind)
    info(made.output, "y", dims, kind)
    node(made, "Relu")
    return model(made).SerializeToString()


for name, dims in {
    "-1": [-1], "INT64_MIN": [MIN], "2^62": [2**62], "2^63 - 1": [MAX], "2^32 twice": [2**32, 2**32],
    "65 axes": [1] * 65, "10000 axes": [1] * MANY, "10000 huge axes": [2**62] * MANY,
    "5000 names": [f"n{i}" for i in range(MANY // 2)], "0": [0], "0 and 2^62": [0, 2**62],
}.items():  # fmt: skip
    case(f"type: dimension {name}", lambda d=dims: shaped(d))
for kind in (0, 24, 99, -1, 2**31 - 1):
    case(f"type: element {kind}", lambda k=kind: shaped(["N"], k), "any" if kind == 24 else "refused")


def typed(*parts: bytes) -> bytes:
    """An input of a type given as bytes."""
    return wire_graph(
        field(11, field(1, b"x"), field(2, *parts)), field(12, field(1, b"x"), field(2, *parts))
    )


F32 = field(1, number(1, 1))
case("type: nothing", typed, "refused")
case("type: a sequence of nothing", lambda: typed(field(4)), "refused")
case("type: an optional of nothing", lambda: typed(field(9)), "refused")
case("type: a map of nothing", lambda: typed(field(5)), "refused")
case("type: a map from floats", lambda: typed(field(5, number(1, 1), field(2, F32))), "refused")
case("type: a map from 99", lambda: typed(field(5, number(1, 99), field(2, F32))), "refused")
case("type: an optional of an optional", lambda: typed(field(9, field(1, field(9, field(1, F32))))))
case("type: a sparse tensor", lambda: typed(field(8, number(1, 1), field(2))))
case("type: a sparse tensor of nothing", lambda: typed(field(8)), "refused")
case("type: opaque", lambda: typed(field(7)))
case("type: a tensor of nothing", lambda: typed(field(1)), "refused")
case("type: a tensor without a shape", lambda: typed(F32), "refused")
case("type: unknown", lambda: typed(field(50, F32)), "refused")
case("type: with an endless denotation", lambda: typed(F32, field(6, b"D" * 1_000_000)))
case(
    "tensor: 1000000 segments",
    lambda: wire_graph(
        field(
            5,
            number(1, 1),
            number(2, 1),
            field(3, number(1, -1), number(2, 2**62)),
            field(4, b"\0" * 4),
            field(8, b"w"),
        )
    ),
)
case(
    "tensor: data in 10000 pieces",
    lambda: wire_graph(
        field(5, number(1, MANY), number(2, 1), (tag(4 << 3 | 5) + b"\0" * 4) * MANY, field(8, b"w"))
    ),
)
