"""Names: missing, twice, too late, in circles, shadowed; versions that cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostile.case import BOOL, FLOAT, case, graph, info, model, node, relu, tag, tensor

if TYPE_CHECKING:
    from collections.abc import Callable


def edited(change: Callable[[Any], object]) -> Callable[[], bytes]:
    """The small sound model, changed."""

    def make() -> bytes:
        made = model()
        change(made)
        return made.SerializeToString()

    return make


def nodes(*calls: tuple[str, list[str], list[str]], outputs: tuple[str, ...] = ("y",)) -> Callable[[], bytes]:
    """A model of these nodes on x."""

    def make() -> bytes:
        made = graph()
        info(made.input, "x", ["N"])
        for name in outputs:
            info(made.output, name, ["N"])
        for op, read, written in calls:
            node(made, op, read, written)
        return model(made).SerializeToString()

    return make


def circle(count: int) -> Callable[[], bytes]:
    """Nodes that each read what the next computes."""
    return nodes(*[("Neg", [f"v{(i + 1) % count}"], [f"v{i}"]) for i in range(count)], outputs=("v0",))


case("names: an output of two nodes", nodes(("Relu", ["x"], ["y"]), ("Neg", ["x"], ["y"])), "refused")
case("names: one node gives a name twice", nodes(("Split", ["x"], ["y", "y"])), "refused")
case("names: a node gives its own input", nodes(("Relu", ["x"], ["x"]), outputs=("x",)), "refused")
case("names: a node reads its own output", nodes(("Relu", ["y"], ["y"])), "refused")
case("names: a circle of 2", circle(2), "refused")
case("names: a circle of 1000", circle(1000), "refused")
case("names: a circle of 2000", circle(2_000), "refused")
case("names: read before it is computed", nodes(("Neg", ["a"], ["y"]), ("Relu", ["x"], ["a"])), "refused")
case(
    "names: 2000 in reverse order",
    nodes(
        *[("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(2_000)][::-1],
        ("Relu", ["x"], ["v0"]),
        outputs=("v10000",),
    ),
    "refused",
)
case("names: read and never defined", nodes(("Add", ["x", "ghost"], ["y"])), "refused")
case(
    "names: an output that nothing defines", nodes(("Relu", ["x"], ["y"]), outputs=("y", "ghost")), "refused"
)
case("names: an output twice", nodes(("Relu", ["x"], ["y"]), outputs=("y", "y")))
case("names: an output that is an input", nodes(("Relu", ["x"], ["y"]), outputs=("y", "x")))
case("names: nodes with no outputs", nodes(("Relu", ["x"], []), ("Relu", ["x"], ["y"])))
case("names: nodes with empty outputs", nodes(("Relu", ["x"], [""]), ("Relu", ["x"], ["y"])))
case("names: nodes with empty inputs", nodes(("Relu", [""], ["y"])), "refused")
case("names: no operator", nodes(("", ["x"], ["y"])), "refused")
case("names: an operator that is none", nodes(("Rleu", ["x"], ["y"])), "refused")
case("names: an operator in other letters", nodes(("\u211delu", ["x"], ["y"])), "refused")
case("names: an operator with a path", nodes(("../../onnx/relu", ["x"], ["y"])), "refused")
case("names: an operator like a module", nodes(("__init__", ["x"], ["y"])), "refused")
case("names: an operator like a method", nodes(("__class__", ["x"], ["y"])), "refused")
case("names: too many inputs", nodes(("Relu", ["x"] * 100, ["y"])), "refused")
case("names: too many outputs", nodes(("Relu", ["x"], ["y"] + [f"z{i}" for i in range(100)])), "refused")
case("names: an input twice", edited(lambda m: info(m.graph.input, "x", ["N"])), "refused")
case(
    "names: an input of another type twice", edited(lambda m: info(m.graph.input, "x", [5], BOOL)), "refused"
)
case(
    "names: an initializer twice",
    edited(lambda m: m.graph.initializer.extend([tensor(float_data=[1, 2])] * 2)),
    "refused",
)
case(
    "names: an initializer named as a node's output",
    edited(lambda m: m.graph.initializer.append(tensor("y", float_data=[1, 2]))),
    "refused",
)
case(
    "names: an initializer for an input",
    edited(lambda m: m.graph.initializer.append(tensor("x", float_data=[1, 2]))),
    "sound",
)
case(
    "names: an initializer of another type for an input",
    edited(lambda m: m.graph.initializer.append(tensor("x", 7, int64_data=[1, 2]))),
    "refused",
)
case(
    "names: an initializer without one",
    edited(lambda m: m.graph.initializer.append(tensor("", float_data=[1, 2]))),
    "refused",
)
case("names: an input without one", edited(lambda m: info(m.graph.input, "", ["N"])), "refused")
case("names: an output without one", edited(lambda m: info(m.graph.output, "", ["N"])), "refused")
case(
    "names: 1000 empty outputs", edited(lambda m: [info(m.graph.output, "") for _ in range(1000)]), "refused"
)
case(
    "names: a value_info twice",
    edited(lambda m: [info(m.graph.value_info, "v", [i]) for i in range(2)]),
    "refused",
)
case("names: a value_info against the output", edited(lambda m: info(m.graph.value_info, "y", [1, 2, 3])))
case(
    "names: metadata keys twice",
    edited(lambda m: [m.metadata_props.add(key="k", value=v) for v in "ab"]),
    "refused",
)
case("names: opsets twice", edited(lambda m: m.opset_import.add(domain="", version=3)))
case("names: opsets twice by two names", edited(lambda m: m.opset_import.add(domain="ai.onnx", version=3)))
case(
    "names: an attribute twice",
    edited(lambda m: [m.graph.node[0].attribute.add(name="a", type=2, i=i) for i in range(2)]),
    "refused",
)
case(
    "names: an attribute the operator has not",
    edited(lambda m: m.graph.node[0].attribute.add(name="a", type=2, i=1)),
    "refused",
)
case(
    "names: an attribute without one", edited(lambda m: m.graph.node[0].attribute.add(type=2, i=1)), "refused"
)
case("names: a graph without one", edited(lambda m: m.graph.ClearField("name")), "refused")
case("names: an input declared as nothing", edited(lambda m: m.graph.input.add(name="q")), "refused")
case(
    "names: an annotation of nothing",
    edited(lambda m: m.graph.quantization_annotation.add(tensor_name="zzz")),
)
case(
    "names: nodes of one name",
    edited(lambda m: [setattr(node(m.graph, "Neg", ["x"], [f"n{i}"]), "name", "same") for i in range(1000)]),
)


def shadow(*, hides: str) -> Callable[[], bytes]:
    """An If whose branch defines a name that the graph around it has."""

    def make() -> bytes:
        made = relu()
        info(made.input, "c", kind=BOOL)
        inner = node(made, "If", ["c"], ["z"])
        for name in ("then_branch", "else_branch"):
            held = inner.attribute.add(name=name, type=5)
            held.g.name = name
            info(held.g.output, "z" if hides == "z" else "r", ["N"])
            node(held.g, "Neg", ["x"], [hides])
            if hides != "z":
                node(held.g, "Neg", [hides], ["r"])
        return model(made).SerializeToString()

    return make


case("names: a branch hides an outer input", shadow(hides="x"), "refused")
case("names: a branch hides an outer value", shadow(hides="y"), "refused")
case("names: a branch hides its own node's output", shadow(hides="z"))
case(
    "names: a branch reads what comes later",
    nodes(("Neg", ["later"], ["a"]), ("Relu", ["x"], ["later"]), ("Relu", ["a"], ["y"])),
    "refused",
)

for ir in (0, -1, 1, 2, 3, 15, 2**31 - 1, 2**31, 2**62, -(2**63)):
    case(
        f"versions: IR {ir}",
        lambda v=ir: model(ir=v).SerializeToString(),
        "refused" if not 0 < ir < 15 else "any",
    )
for opset in (0, -1, 1, 2**31 - 1, 2**31, 2**62, -(2**63)):
    case(
        f"versions: opset {opset}",
        lambda v=opset: model(opset=v).SerializeToString(),
        "refused" if opset != 1 else "any",
    )
    case(f"versions: ml opset {opset}", lambda v=opset: model(domains={"ai.onnx.ml": v}).SerializeToString())
case("versions: no IR", edited(lambda m: m.ClearField("ir_version")), "refused")
case("versions: no opsets", edited(lambda m: m.ClearField("opset_import")), "refused")
case("versions: a domain that nobody knows", lambda: model(domains={"zzz": 2**62}).SerializeToString())
case("versions: a domain with a path", lambda: model(domains={"../../../etc": 1}).SerializeToString())
case("versions: model_version -2^63", edited(lambda m: setattr(m, "model_version", -(2**63))), "sound")
case(
    "versions: a call into a domain not imported",
    edited(lambda m: node(m.graph, "Foo", ["x"], ["q"], domain="zzz")),
    "refused",
)

ATTRIBUTES: dict[str, dict[str, Any]] = {
    "a float as an int": {"type": 2, "f": 1.5},
    "an int as a float": {"type": 1, "i": 1},
    "text as ints": {"type": 7, "s": b"abc"},
    "no type and no value": {},
    "no type and two values": {"f": 1.0, "i": 1},
    "all types at once": {
        "type": 1,
        "f": 1.0,
        "i": 2,
        "s": b"x",
        "floats": [1],
        "ints": [2],
        "strings": [b"y"],
    },
    "NaN": {"type": 1, "f": float("nan")},
    "infinity": {"type": 1, "f": float("inf")},
    "text of no UTF-8": {"type": 3, "s": b"\xff\xfe"},
}
for number in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14):
    ATTRIBUTES[f"type {number} and no value"] = {"type": number}
for name, given in ATTRIBUTES.items():

    def leaky(given: dict[str, Any] = given) -> bytes:
        """A LeakyRelu whose attribute is what it should not be."""
        made = graph()
        info(made.input, "x", ["N"])
        info(made.output, "y", ["N"])
        node(made, "LeakyRelu").attribute.add(name="alpha", **given)
        return model(made).SerializeToString()

    case(f"attribute: {name}", leaky)
for number in (15, 99, -1, 2**31 - 1):
    case(
        f"attribute: type {number}",
        lambda n=number: (
            made := model(),
            made.graph.node[0].attribute.add(name="alpha", type=9),
            made.SerializeToString(),
        )[-1].replace(b"\xa0\x01\x09", b"\xa0\x01" + tag(n % 2**64)),
    )


def constant(**given: Any) -> Callable[[], bytes]:
    """A Constant with this attribute."""

    def make() -> bytes:
        made = graph()
        info(made.output, "y", [])
        node(made, "Constant", [], ["y"]).attribute.add(**given)
        return model(made).SerializeToString()

    return make


case("constant: without a value", nodes(("Constant", [], ["y"])), "refused")
case("constant: a graph as its value", constant(name="value", type=5), "refused")
case("constant: a float that is none", constant(name="value_float", type=1), "any")
case("constant: 100000 ints", constant(name="value_ints", type=7, ints=[1] * 100_000))
case("constant: a text of no UTF-8", constant(name="value_string", type=3, s=b"\xff"))
case("constant: FLOAT is not a type of values", constant(name="value", type=FLOAT, f=1.0), "refused")
