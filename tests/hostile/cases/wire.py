"""The wire format broken: varints, tags, lengths, groups, wrong wire types, unknown fields."""

from __future__ import annotations

import hashlib

from hostile.case import (
    BOOL,
    FLOAT,
    HEAD,
    MANY,
    case,
    field,
    graph,
    group,
    info,
    model,
    node,
    number,
    relu,
    tag,
    tensor,
    wire_graph,
    wire_node,
)


def whole() -> bytes:
    """A sound model that has a bit of everything."""
    main = relu()
    main.initializer.append(tensor("w", FLOAT, [2, 3], float_data=[1.0] * 6))
    info(main.input, "c", kind=BOOL)
    inner = node(main, "If", ["c"], ["z"])
    for name in ("then_branch", "else_branch"):
        branch = inner.attribute.add(name=name, type=5)
        branch.g.name = name
        info(branch.g.output, f"{name}_z", [2, 3])
        node(branch.g, "Identity", ["w"], [f"{name}_z"])
    info(main.output, "z", [2, 3])
    made = model(main)
    called = made.functions.add(name="f", domain="d", input=["a"], output=["b"])
    called.opset_import.add(domain="", version=21)
    called.node.add(op_type="Relu", input=["a"], output=["b"])
    made.metadata_props.add(key="k", value="v")
    return made.SerializeToString()


def noise(seed: int, size: int) -> bytes:
    """Bytes that mean nothing, always the same."""
    return hashlib.shake_128(bytes([seed])).digest(size)


def put(*parts: bytes) -> bytes:
    """The sound model with these bytes after it."""
    return model().SerializeToString() + b"".join(parts)


case("a sound model", whole, "sound")
for twelfth in range(1, 12):
    case(f"cut at {twelfth}/12", lambda k=twelfth: (data := whole())[: len(data) * k // 12])
for less in (1, 2, 3):
    case(f"cut {less} bytes before its end", lambda k=less: whole()[:-k])

LONG = b"\xff" * 10
case("varint of 11 bytes", lambda: number(1, 10) + b"\x08" + LONG + b"\x01", "refused")
case("varint of 10 bytes that overflows", lambda: b"\x08" + b"\xff" * 9 + b"\x7f" + HEAD[2:])
case("varint of 10000 bytes", lambda: b"\x08" + b"\xff" * MANY, "refused")
case(
    "varint with needless bytes",
    lambda: b"\x08\x8a\x80\x80\x80\x00" + model().SerializeToString()[2:],
    "sound",
)
case("varint without an end", lambda: put(b"\x08\x80"), "refused")
case("tag without an end", lambda: put(b"\xff"), "refused")
case("tag of 10 bytes", lambda: put(LONG), "refused")
case("length of 11 bytes", lambda: put(b"\x3a", LONG, b"\x01"), "refused")
case("field number 0", lambda: put(b"\x02\x00"), "refused")
case("field number 2^29 - 1", lambda: put(number(2**29 - 1, 1)))
case("field number beyond 2^29", lambda: put(tag(2**29 << 3), b"\x01"), "refused")
for kind in (4, 6, 7):
    case(f"wire type {kind} at the top", lambda k=kind: put(tag(1 << 3 | k), b"\0" * 8), "refused")
    case(
        f"wire type {kind} in a node",
        lambda k=kind: wire_graph(field(1, tag(1 << 3 | k), b"\0" * 8)),
        "refused",
    )

WRONG = {
    "ir_version as text": (field(1, b"abc"), number(1, 10)),
    "ir_version as fixed64": (tag(1 << 3 | 1) + b"\1" * 8, number(1, 10)),
    "graph as a number": (number(7, 5), b""),
    "graph as fixed32": (tag(7 << 3 | 5) + b"\1" * 4, b""),
    "opset_import as a number": (number(8, 21), b""),
    "functions as a number": (number(25, 1), b""),
}
for name, (bad, good) in WRONG.items():
    case(f"wrong wire type: {name}", lambda b=bad, g=good: g + b + model().SerializeToString()[len(g) :])
INNER = {
    "node name as a number": field(1, number(3, 5)),
    "node input as a number": field(1, number(1, 5)),
    "op_type as fixed64": field(1, tag(4 << 3 | 1), b"\1" * 8),
    "attribute as a number": field(1, number(5, 7)),
    "dims as three bytes of fixed32": field(5, tag(1 << 3 | 5), b"\1" * 3),
    "packed dims cut short": field(5, field(1, b"\x80"), number(2, 1), field(8, b"w")),
    "packed float_data of 3 bytes": field(5, number(1, 1), number(2, 1), field(4, b"\0" * 3), field(8, b"w")),
    "packed double_data of 9 bytes": field(5, number(1, 1), number(2, 11), field(10, b"\0" * 9)),
    "raw_data as a number": field(5, number(1, 1), number(2, 1), number(9, 5), field(8, b"w")),
    "float_data as varints": field(5, number(1, 1), number(2, 1), number(4, 5), field(8, b"w")),
    "data_type as text": field(5, field(2, b"float"), field(8, b"w")),
    "attribute f as a number": wire_node("Relu", ["x"], ["y"], field(5, field(1, b"a"), number(2, 7))),
    "attribute type as text": wire_node("Relu", ["x"], ["y"], field(5, field(1, b"a"), field(20, b"INT"))),
    "attribute g as a number": wire_node("Relu", ["x"], ["y"], field(5, field(1, b"a"), number(6, 7))),
    "value type as a number": field(11, field(1, b"x"), number(2, 1)),
    "tensor_type as text": field(11, field(1, b"x"), field(2, field(1, b"\xff\xff"))),
    "shape as a number": field(11, field(1, b"x"), field(2, field(1, number(1, 1), number(2, 3)))),
    "dim as text": field(11, field(1, b"x"), field(2, field(1, number(1, 1), field(2, field(1, b"NNN"))))),
}
for name, bad in INNER.items():
    case(f"wrong wire type: {name}", lambda b=bad: wire_graph(b))

for name, length in {
    "2^31": 2**31, "2^32": 2**32, "2^63": 2**63, "2^64 - 1": 2**64 - 1, "-1 of 32 bits": 2**32 - 1
}.items():  # fmt: skip
    size = tag(length)
    case(f"length {name}: graph", lambda s=size: HEAD + b"\x3a" + s + b"abc", "refused")
    case(f"length {name}: node", lambda s=size: wire_graph(b"\x0a" + s + b"abc"), "refused")
    case(f"length {name}: name", lambda s=size: wire_graph(field(1, b"\x1a" + s + b"abc")), "refused")
    case(f"length {name}: raw_data", lambda s=size: wire_graph(field(5, b"\x4a" + s + b"abc")), "refused")
    case(f"length {name}: packed dims", lambda s=size: wire_graph(field(5, b"\x0a" + s + b"abc")), "refused")
    case(f"length {name}: unknown field", lambda s=size: put(b"\xca\x3e" + s + b"abc"), "refused")
case(
    "a node one byte longer than its graph", lambda: HEAD + field(7, b"\x0a\x05\x22\x04Relu"[:-1]), "refused"
)
case(
    "large raw_data longer than its graph",
    lambda: HEAD + field(7, b"\x2a\xff\xff\x7f\x4a\xf0\xff\x7f" + b"\0" * MANY),
    "refused",
)
case("length 0: graph", lambda: HEAD + field(7), "refused")
case(
    "length 0: every field of a graph",
    lambda: HEAD + field(7, *(field(n) for n in (1, 2, 5, 10, 11, 12, 13, 14, 15, 16))),
)
case(
    "length 0: every field of a node",
    lambda: wire_graph(field(1, *(field(n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)))),
)
case(
    "length 0: every field of a tensor",
    lambda: wire_graph(field(5, *(field(n) for n in (3, 6, 8, 9, 12, 13, 16)))),
)
case(
    "length 0: every field of the model",
    lambda: b"".join(field(n) for n in (2, 3, 4, 6, 7, 8, 14, 20, 25, 26)),
)
case(
    "length 0: every field of a function",
    lambda: put(field(25, *(field(n) for n in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)))),
)

case("group: unknown, with a field", lambda: put(group(100, number(1, 5))))
case("group: opened and never closed", lambda: put(tag(100 << 3 | 3)), "refused")
case("group: closed and never opened", lambda: put(tag(100 << 3 | 4)), "refused")
case("group: closed as another one", lambda: put(tag(100 << 3 | 3), tag(101 << 3 | 4)), "refused")
case(
    "group: closed outside its message",
    lambda: HEAD + field(7, tag(100 << 3 | 3)) + tag(100 << 3 | 4),
    "refused",
)
case("group: where the graph should be", lambda: HEAD + group(7, field(2, b"g")))
case("group: where a node should be", lambda: wire_graph(group(1, field(4, b"Relu"))))
case(
    "group: with a length beyond itself",
    lambda: put(tag(100 << 3 | 3), b"\x0a\x7f", tag(100 << 3 | 4)),
    "refused",
)
for deep in (50, 99, 101, 4_000, MANY):
    opened, closed = tag(100 << 3 | 3) * deep, tag(100 << 3 | 4) * deep
    case(f"group: {deep} deep", lambda o=opened, c=closed: put(o, c), "refused" if deep > 100 else "any")
    case(f"group: {deep} deep and never closed", lambda o=opened: put(o), "refused")
    case(
        f"group: {deep} deep in a tensor",
        lambda o=opened, c=closed: wire_graph(field(5, field(8, b"w"), o, c)),
    )
case("group: 10000 beside one another", lambda: put(group(100) * MANY))

case("unknown fields: 10000 at the top", lambda: put(number(1000, 1) * MANY))
case(
    "unknown fields: 10000 in a node",
    lambda: wire_graph(wire_node("Relu", ["x"], ["y"], number(1000, 1) * MANY)),
)
case("unknown fields: one in each of 2000 nodes", lambda: wire_graph(field(1, number(1000, 1)) * (MANY // 5)))
case("unknown fields: one that holds 5 MB", lambda: put(field(1000, b"a" * 5_000_000)))
case(
    "unknown fields: in every kind of message",
    lambda: put(*(field(n, number(999, 7)) for n in (7, 8, 14, 20, 25, 26))),
)
case(
    "unknown fields: of every wire type",
    lambda: put(number(99, 1), tag(99 << 3 | 1) + b"\1" * 8, field(99, b"a"), tag(99 << 3 | 5) + b"\1" * 4),
)

case("twice: two graphs", lambda: put(field(7, field(2, b"h"), wire_node("Neg", ["y"], ["z"]))))
case("twice: 10000 graphs", lambda: put(field(7, field(2, b"h")) * MANY))
case("twice: ir_version", lambda: put(number(1, 3) * 1000 + number(1, 10)), "sound")
case(
    "twice: raw_data",
    lambda: wire_graph(
        field(5, number(1, 1), number(2, 1), field(8, b"w"), field(9, b"\0" * 8), field(9, b"\0" * 4))
    ),
)
case(
    "twice: large raw_data",
    lambda: wire_graph(
        field(
            5,
            number(1, 20_000),
            number(2, 1),
            field(8, b"w"),
            field(9, b"\1" * 80_000),
            field(9, b"\0" * 80_000),
        )
    ),
)
case(
    "twice: a value of two types",
    lambda: wire_graph(
        field(
            11, field(1, b"x"), field(2, field(1, number(1, 1)), field(4, field(1, field(1, number(1, 1)))))
        )
    ),
)
case(
    "twice: a dimension of two kinds",
    lambda: wire_graph(
        field(
            11,
            field(1, b"x"),
            field(2, field(1, number(1, 1), field(2, field(1, number(1, 5), field(2, b"N"))))),
        )
    ),
)

case("nothing but zeros", lambda: b"\0" * 1024, "refused")
case("nothing but ones", lambda: b"\xff" * 1024, "refused")
case("one byte", lambda: b"\x08", "refused")
case("no bytes", lambda: b"", "refused")
case("nothing but an IR version", lambda: number(1, 10), "refused")
case("nothing but a function", lambda: number(1, 10) + field(25, field(1, b"f")), "refused")
case("nothing but an empty graph", lambda: field(7), "refused")
for seed in range(8):
    case(f"noise {seed}", lambda s=seed: noise(s, 3000), "refused")
    case(f"noise {seed} as a graph", lambda s=seed: HEAD + field(7, noise(s, 300)))
    case(
        f"noise {seed} as a tensor's data",
        lambda s=seed: wire_graph(
            field(5, number(1, 75), number(2, 1), field(8, b"w"), field(9, noise(s, 300)))
        ),
    )
case("a graph that is a whole model", lambda: HEAD + field(7, model().SerializeToString()))
case(
    "a model in itself as raw_data",
    lambda: wire_graph(field(5, number(1, 5), number(2, 2), field(8, b"w"), field(9, whole()))),
)
case("training with no graphs", lambda: put(field(20)))
case(
    "training whose bindings name nothing",
    lambda: put(field(20, field(3, field(1, b"a"), field(2, b"b")), field(4))),
)


def odd_device() -> bytes:
    """A device configuration that names what is not there."""
    made = model(graph())
    info(made.graph.output, "y")
    one = node(made.graph, "Relu", ["y"], ["y"])
    held = one.device_configurations.add(configuration_id="none", pipeline_stage=-(2**31))
    held.sharding_spec.add(tensor_name="zzz", device=[-(2**63), 2**63 - 1]).sharded_dim.add(
        axis=-(2**63)
    ).simple_sharding.add(dim_value=-1, num_shards=0)
    return made.SerializeToString()


case("device configurations of nothing", odd_device)
