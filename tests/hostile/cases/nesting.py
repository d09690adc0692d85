"""Things inside things: graphs, types, calls of functions, recursion and blow-up."""

from __future__ import annotations

from typing import Any

from hostile.case import (
    BOOL,
    HEAD,
    case,
    field,
    graph,
    info,
    model,
    node,
    number,
    tag,
    wire_graph,
    wire_node,
)


def around(inner: bytes, *layers: tuple[bytes, bytes]) -> bytes:
    """Wrap bytes in layers of a field's tag and what stands beside it; iterative, as there may be many."""
    pieces, size = [inner], len(inner)
    for before, after in layers:
        length = tag(size + len(after))
        pieces.append(after)
        pieces.insert(0, before + length)
        size += len(before) + len(length) + len(after)
    return b"".join(pieces)


def deep_graphs(levels: int) -> bytes:
    """If nodes in If nodes; the graph inside each is its then_branch."""
    inner = field(2, b"g") + field(12, field(1, b"c"))
    for _ in range(levels):
        attribute = field(1, b"then_branch") + number(20, 5) + tag(6 << 3 | 2) + tag(len(inner)) + inner
        other = field(1, b"else_branch") + number(20, 5) + field(6, field(2, b"e"), field(12, field(1, b"c")))
        made = field(1, b"c") + field(2, b"z") + field(4, b"If")
        made += tag(5 << 3 | 2) + tag(len(attribute)) + attribute + tag(5 << 3 | 2) + tag(len(other)) + other
        inner = field(2, b"g") + tag(1 << 3 | 2) + tag(len(made)) + made + field(12, field(1, b"z"))
    boolean = field(2, field(1, number(1, BOOL), field(2)))
    inner += field(11, field(1, b"c"), boolean)
    return HEAD + tag(7 << 3 | 2) + tag(len(inner)) + inner


for levels in (5, 20, 30, 31, 32, 33, 34, 100, 1000):
    case(f"graphs: {levels} deep", lambda n=levels: deep_graphs(n), "refused" if levels > 33 else "any")
case("graphs: 5 deep and right", lambda: deep_graphs(4))


def deep_type(levels: int, fieldnumber: int) -> bytes:
    """Sequences (4) or optionals (9) of one another."""
    inner = field(1, number(1, 1))
    for _ in range(levels):
        held = tag(1 << 3 | 2) + tag(len(inner)) + inner
        inner = tag(fieldnumber << 3 | 2) + tag(len(held)) + held
    return inner


def deep_map(levels: int) -> bytes:
    """Maps of maps."""
    inner = field(1, number(1, 1))
    for _ in range(levels):
        held = number(1, 7) + tag(2 << 3 | 2) + tag(len(inner)) + inner
        inner = tag(5 << 3 | 2) + tag(len(held)) + held
    return inner


for levels in (2, 20, 40, 47, 64, 65, 99, 200, 2000):
    outcome = "refused" if levels > 65 else "any"
    case(
        f"types: {levels} sequences",
        lambda n=levels: wire_graph(field(11, field(1, b"x"), field(2, deep_type(n, 4)))),
        outcome,
    )
    case(
        f"types: {levels} optionals",
        lambda n=levels: wire_graph(field(13, field(1, b"x"), field(2, deep_type(n, 9)))),
        outcome,
    )
    case(
        f"types: {levels} maps",
        lambda n=levels: wire_graph(field(12, field(1, b"x"), field(2, deep_map(n)))),
        outcome,
    )
    case(
        f"types: {levels} sequences in an attribute",
        lambda n=levels: wire_graph(
            wire_node(
                "Optional", [], ["y"], field(5, field(1, b"type"), number(20, 13), field(14, deep_type(n, 4)))
            )
        ),
        outcome,
    )
    case(
        f"types: {levels} sequences in an attribute's list",
        lambda n=levels: wire_graph(
            wire_node(
                "Optional",
                [],
                ["y"],
                field(5, field(1, b"types"), number(20, 14), field(15, deep_type(n, 4)) * 2),
            )
        ),
        outcome,
    )


def functions(*bodies: tuple[str, list[str]], start: str, domain: str = "d") -> bytes:
    """A model whose functions each call others: name and what it calls, one after another."""
    made = model(graph(), domains={domain: 1})
    info(made.graph.input, "x", [2])
    info(made.graph.output, "y", [2])
    node(made.graph, start, domain=domain)
    for name, calls in bodies:
        function = made.functions.add(name=name, domain=domain, input=["a"], output=["b"])
        function.opset_import.add(domain="", version=21)
        function.opset_import.add(domain=domain, version=1)
        previous = "a"
        for place, call in enumerate(calls):
            output = "b" if place == len(calls) - 1 else f"v{place}"
            node(
                function,
                call.removeprefix("!"),
                [previous],
                [output],
                domain="" if call.startswith("!") else domain,
            )
            previous = output
    return made.SerializeToString()


def laughs(levels: int, width: int = 2) -> bytes:
    """Each function calls the next several times."""
    inner = [(f"f{i}", [f"f{i + 1}"] * width) for i in range(levels)]
    return functions(*inner, (f"f{levels}", ["!Relu"]), start="f0")


def chain(levels: int) -> bytes:
    """Each function calls the next."""
    return laughs(levels, 1)


case("functions: a call of one", lambda: chain(0), "sound")
for levels in (10, 30):
    case(f"functions: a chain of {levels}", lambda n=levels: chain(n), "sound")
for levels in (100, 1000, 3000, 20_000):
    case(f"functions: a chain of {levels}", lambda n=levels: chain(n), slow=levels > 1000)
for levels in (10, 11, 14, 30, 60, 1000):
    case(f"functions: two calls a level, {levels} levels", lambda n=levels: laughs(n), slow=levels == 14)
case("functions: ten calls a level, 10 levels", lambda: laughs(10, 10))
case("functions: 500 calls a level, 3 levels", lambda: laughs(3, 500))
case(
    "functions: 500 that nothing calls",
    lambda: functions(*[(f"f{i}", ["!Relu"]) for i in range(500)], start="f0"),
)
case("functions: one that calls itself", lambda: functions(("f", ["f"]), start="f"), "refused")
case("functions: one that calls itself twice", lambda: functions(("f", ["f", "f"]), start="f"), "refused")
case(
    "functions: one that calls itself, uncalled",
    lambda: functions(("f", ["f"]), ("g", ["!Relu"]), start="g"),
    "refused",
)
case(
    "functions: two that call each other", lambda: functions(("f", ["g"]), ("g", ["f"]), start="f"), "refused"
)
case(
    "functions: a circle of 1000",
    lambda: functions(*[(f"f{i}", [f"f{(i + 1) % 1000}"]) for i in range(1000)], start="f0"),
    "refused",
)
case(
    "functions: one in the standard domain that calls itself",
    lambda: functions(("Relu", ["Relu"]), start="Relu", domain=""),
    "refused",
)
case("functions: one twice", lambda: functions(("f", ["!Relu"]), ("f", ["!Neg"]), start="f"), "refused")
case("functions: no nodes", lambda: functions(("f", []), start="f"), "refused")


def through_if(call: str) -> bytes:
    """A function whose If calls a function in its branches."""
    made = model(graph(), domains={"d": 1})
    info(made.graph.input, "x", [])
    info(made.graph.output, "y", [])
    node(made.graph, "f", domain="d")
    function = made.functions.add(name="f", domain="d", input=["a"], output=["b"])
    function.opset_import.add(domain="", version=21)
    function.opset_import.add(domain="d", version=1)
    node(function, "Cast", ["a"], ["c"]).attribute.add(name="to", type=2, i=BOOL)
    inner = node(function, "If", ["c"], ["b"])
    for name in ("then_branch", "else_branch"):
        held = inner.attribute.add(name=name, type=5)
        held.g.name = name
        info(held.g.output, "r")
        node(held.g, call, ["a"], ["r"], domain="d")
    return made.SerializeToString()


case("functions: one that calls itself in an If", lambda: through_if("f"), "refused")
case("functions: one that calls a stranger in an If", lambda: through_if("zzz"), "refused")


def defaults(depth: int) -> bytes:
    """Functions that hand an attribute on by reference, each to the next."""
    made = model(graph(), domains={"d": 1})
    info(made.graph.input, "x", [2])
    info(made.graph.output, "y", [2])
    node(made.graph, "f0", domain="d").attribute.add(name="k", type=1, f=0.5)
    for i in range(depth):
        function = made.functions.add(name=f"f{i}", domain="d", input=["a"], output=["b"], attribute=["k"])
        function.opset_import.add(domain="", version=21)
        function.opset_import.add(domain="d", version=1)
        last = i == depth - 1
        call = node(function, "LeakyRelu" if last else f"f{i + 1}", ["a"], ["b"], domain="" if last else "d")
        call.attribute.add(name="alpha" if last else "k", type=1, ref_attr_name="k")
    return made.SerializeToString()


case("references: a chain of 20", lambda: defaults(20), "sound")
case("references: a chain of 1000", lambda: defaults(1000))


def reference(**attribute: Any) -> bytes:
    """A function whose node has this attribute."""
    made = model(graph(), domains={"d": 1})
    info(made.graph.input, "x", [2])
    info(made.graph.output, "y", [2])
    node(made.graph, "f", domain="d").attribute.add(name="k", type=2, i=1)
    function = made.functions.add(name="f", domain="d", input=["a"], output=["b"], attribute=["k"])
    function.opset_import.add(domain="", version=21)
    node(function, "LeakyRelu", ["a"], ["b"]).attribute.add(**attribute)
    return made.SerializeToString()


case(
    "references: to an attribute of another type", lambda: reference(name="alpha", type=1, ref_attr_name="k")
)
case("references: to nothing", lambda: reference(name="alpha", type=1, ref_attr_name="zzz"), "refused")
case("references: and a value", lambda: reference(name="alpha", type=1, ref_attr_name="k", f=0.5))
case("references: without a type", lambda: reference(name="alpha", ref_attr_name="k"))


def in_main() -> bytes:
    made = model()
    made.graph.node[0].attribute.add(name="alpha", type=1, ref_attr_name="alpha")
    return made.SerializeToString()


case("references: in the main graph", in_main, "refused")


def default_of_itself() -> bytes:
    made = model(graph(), domains={"d": 1})
    info(made.graph.input, "x", [2])
    info(made.graph.output, "y", [2])
    node(made.graph, "f", domain="d")
    function = made.functions.add(name="f", domain="d", input=["a"], output=["b"])
    function.opset_import.add(domain="", version=21)
    function.attribute_proto.add(name="k", type=1, ref_attr_name="k")
    node(function, "LeakyRelu", ["a"], ["b"]).attribute.add(name="alpha", type=1, ref_attr_name="k")
    return made.SerializeToString()


case("references: a default that refers to itself", default_of_itself)


def wide_loops(depth: int) -> bytes:
    """Endless loops in endless loops."""
    inner = graph("g0")
    node(inner, "Identity", ["t"], ["r"])
    info(inner.output, "r", kind=BOOL)
    for level in range(1, depth + 1):
        made = graph(f"g{level}")
        for name, kind in ((f"i{level}", 7), (f"c{level}", BOOL)):
            info(made.input, name, kind=kind)
        loop = node(made, "Loop", ["", "t"], [])
        body = loop.attribute.add(name="body", type=5)
        body.g.CopyFrom(inner)
        if level == 1:
            info(body.g.input, "i", kind=7)
            info(body.g.input, "c", kind=BOOL)
        node(made, "Identity", ["t"], [f"r{level}"])
        info(made.output, f"r{level}", kind=BOOL)
        inner = made
    main = inner
    del main.input[:], main.output[:]
    info(main.input, "t", kind=BOOL)
    info(main.output, f"r{depth}", kind=BOOL)
    return model(main).SerializeToString()


case("loops: one without an end", lambda: wide_loops(1))
case("loops: three without an end in one another", lambda: wide_loops(3))
case(
    "training: graphs in 1000 of them",
    lambda: model().SerializeToString() + field(20, field(1, field(2, b"g"))) * 1_000,
)
