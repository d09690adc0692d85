"""Very many very small things: time and memory must grow with the file, not with its square."""

from __future__ import annotations

from typing import Any

from hostile.case import (
    HEAD,
    MANY,
    case,
    field,
    graph,
    info,
    model,
    node,
    number,
    wire_graph,
    wire_node,
)

X = field(1, b"x")
SOME = 500
MASSES: dict[str, bytes] = {
    "empty nodes": field(1),
    "Relus of nothing": field(1, field(4, b"Relu")),
    "Relus of x": wire_node("Relu", ["x"], ["y"]),
    "Constants": wire_node(
        "Constant", [], ["y"], field(5, field(1, b"value_int"), number(20, 2), number(3, 1))
    ),
    "value_infos of one name": field(13, X),
    "value_infos without a name": field(13),
    "inputs of one name": field(11, X),
    "outputs of one name": field(12, X),
    "empty inputs": field(11),
    "empty outputs": field(12),
    "initializers of one name": field(5, field(8, b"w")),
    "empty initializers": field(5),
    "floats of no shape": field(5, number(2, 1), field(4, b"\0" * 4), field(8, b"w")),
    "sparse initializers": field(15),
    "annotations": field(14, X),
    "metadata of a graph": field(16, field(1, b"k"), field(2, b"v")),
    "nodes with a type in them": wire_node(
        "Optional", [], ["y"], field(5, field(1, b"type"), number(20, 13), field(14, field(1, number(1, 1))))
    ),
    "Ifs of two empty graphs": wire_node(
        "If",
        ["x"],
        ["y"],
        *(field(5, field(1, b), number(20, 5), field(6)) for b in (b"then_branch", b"else_branch")),
    ),
}
TOP: dict[str, bytes] = {
    "opset imports": field(8),
    "opset imports of one domain": field(8, field(1, b"d"), number(2, 1)),
    "functions": field(25),
    "functions of one name": field(25, field(1, b"f"), field(4, b"a"), field(5, b"a")),
    "training": field(20),
    "metadata": field(14),
    "metadata of one key": field(14, field(1, b"k"), field(2, b"v")),
    "configurations": field(26),
}
IN_A_NODE: dict[str, bytes] = {
    "inputs": field(1, b"x"), "empty inputs": field(1), "outputs of one name": field(2, b"y"), "empty outputs": field(2),
    "attributes": field(5), "attributes of one name": field(5, field(1, b"a"), number(20, 2), number(3, 1)),
    "metadata": field(9), "devices": field(10),
}  # fmt: skip

for count, slow in ((SOME, False), (40 * MANY, True)):
    for name, part in MASSES.items():
        case(f"{count} {name}", lambda p=part, n=count: wire_graph(p * n), slow=slow)
    for name, part in TOP.items():
        case(f"{count} {name} of the model", lambda p=part, n=count: HEAD + part_of_model(p * n), slow=slow)
    for name, part in IN_A_NODE.items():
        case(
            f"{count} {name} of a node",
            lambda p=part, n=count: wire_graph(field(1, field(4, b"Sum"), p * n)),
            slow=slow,
        )


def part_of_model(part: bytes) -> bytes:
    """The bytes beside a small graph."""
    return part + field(7, field(2, b"g"), wire_node("Relu", ["x"], ["y"]))


def made(change: Any) -> bytes:
    """A model whose graph is filled in by a function."""
    held = graph()
    change(held)
    return model(held).SerializeToString()


def chain(count: int) -> bytes:
    """Nodes in a row."""

    def fill(held: Any) -> None:
        info(held.input, "v0", ["N"])
        info(held.output, f"v{count}", ["N"])
        for i in range(count):
            node(held, "Neg", [f"v{i}"], [f"v{i + 1}"])

    return made(fill)


def fan(count: int) -> bytes:
    """One value that very many nodes read, and all of them are outputs."""

    def fill(held: Any) -> None:
        info(held.input, "x", ["N"])
        for i in range(count):
            node(held, "Neg", ["x"], [f"v{i}"])
            info(held.output, f"v{i}", ["N"])

    return made(fill)


def clashes(count: int) -> bytes:
    """Very many values whose names become one another's when they are made unique."""

    def fill(held: Any) -> None:
        info(held.input, "x", ["N"])
        for i in range(count):
            node(held, "Neg", ["x"], ["v"])
            node(held, "Neg", ["x"], [f"v_{i}"])

    return made(fill)


def doubling(count: int) -> bytes:
    """Each node adds the one before to itself."""

    def fill(held: Any) -> None:
        info(held.input, "v0", ["N"])
        info(held.output, f"v{count}", ["N"])
        for i in range(count):
            node(held, "Add", [f"v{i}"] * 2, [f"v{i + 1}"])

    return made(fill)


def captured(count: int) -> bytes:
    """Very many small branches, each reading an outer value."""

    def fill(held: Any) -> None:
        info(held.input, "x", [])
        info(held.input, "c", kind=9)
        for i in range(count):
            inner = node(held, "If", ["c"], [f"v{i}"])
            for name in ("then_branch", "else_branch"):
                branch = inner.attribute.add(name=name, type=5)
                branch.g.name = name
                node(branch.g, "Neg", ["x"], ["r"])
                info(branch.g.output, "r")

    return made(fill)


for name, build, count in (
    ("nodes in a row", chain, SOME), ("readers of one value", fan, SOME), ("clashing names", clashes, SOME),
    ("doublings", doubling, SOME), ("branches that read outer values", captured, 250),
):  # fmt: skip
    case(f"{count} {name}", lambda b=build, n=count: b(n))
case(
    "an operator with 10000 inputs that are all one",
    lambda: made(lambda g: (info(g.input, "x", [2]), info(g.output, "y", [2]), node(g, "Sum", ["x"] * MANY))),
    "sound",
)
case(
    "an operator with 10000 outputs",
    lambda: made(
        lambda g: (info(g.input, "x", [2]), node(g, "Split", ["x"], [f"y{i}" for i in range(MANY)]))
    ),
)
