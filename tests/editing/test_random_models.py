"""Edits of random graphs: each is refused with a path, or computes what the whole model computes."""

import numpy as np
import pytest

import sabir
from sabir.ir import verify

FEEDS = {"x": np.float32([1, -2, 0.5]), "z": np.float32([-1, 4, 3]), "c": np.bool_(True)}  # ruff: ignore[boolean-positional-value-in-call]  a scalar
UNARY, BINARY = ("Neg", "Abs", "Relu", "Tanh"), ("Add", "Sub", "Mul", "Max")


def drawn(seed):
    """Return a model of random nodes, some with branches that capture values, and the generator."""
    random = np.random.default_rng(seed)
    names, lines = ["x", "z", "w"], []
    for i in range(int(random.integers(4, 20))):
        one, other = random.choice(names, 2)
        match int(random.integers(5)):
            case 0:
                then = f"a{i} () => (p{i}) {{ p{i} = Neg ({one}) }}"
                otherwise = f"b{i} () => (q{i}) {{ q{i} = Abs ({other}) }}"
                call = f"If (c) <then_branch = {then}, else_branch = {otherwise}>"
            case 1 | 2:
                call = f"{random.choice(UNARY)} ({one})"
            case _:
                call = f"{random.choice(BINARY)} ({one}, {other})"
        lines.append(f"v{i} = {call}")
        names.append(f"v{i}")
    outputs = [names[-1], *random.choice(names[3:-1], 1)]
    ports = ", ".join(f"float[3] {name}" for name in dict.fromkeys(outputs))
    body = "\n".join(lines)
    text = f"g (float[3] x, float[3] z, bool c) => ({ports}) <float[3] w = {{2, 3, -1}}> {{\n{body}\n}}"
    return sabir.parse('<ir_version: 10, opset_import: ["" : 21]>\n' + text), random


def run(model, values):
    return sabir.evaluate(model, {value.name: values[value.name] for value in model.graph.inputs})


def some(random, names):
    return list(random.choice(names, int(random.integers(1, min(4, len(names) + 1))), replace=False))


@pytest.mark.parametrize("seed", range(60))
def test_edits_of_a_random_graph(seed):
    model, random = drawn(seed)
    computed = [node.output.name for node in model.graph]
    every = {**FEEDS, **run(sabir.add_outputs(model, "all"), FEEDS), "w": np.float32([2, 3, -1])}
    edits = 0
    for _ in range(6):
        cuts, wanted, nodes = (
            some(random, [*computed, *FEEDS, "w"]),
            some(random, computed),
            some(random, computed),
        )
        try:
            part = sabir.extract(model, inputs=cuts, outputs=wanted)
        except sabir.UnsupportedError as error:
            assert " <- " in str(error) or any(f" {name};" in str(error) for name in FEEDS)
        else:
            edits += 1
            verify(part)
            assert all(np.array_equal(value, every[name]) for name, value in run(part, every).items())
        try:
            first, second = sabir.split(model, at=nodes)
        except sabir.UnsupportedError as error:
            assert "would compute every output" in str(error) or " <- " in str(error)
        else:
            edits += 1
            middle = run(first, every)
            results = {**middle, **run(second, {**FEEDS, **middle})}
            assert all(np.array_equal(results[v.name], every[v.name]) for v in model.graph.outputs)
        try:
            outlined = sabir.outline(model, nodes, "F")
        except sabir.UnsupportedError as error:
            assert " <- " in str(error) or "nothing reads" in str(error)
        else:
            edits += 1
            verify(outlined)
            sabir.check(outlined)
            assert sabir.compare(model, sabir.inline(outlined)).changes == ()
            assert all(np.array_equal(v, every[name]) for name, v in run(outlined, every).items())
    assert edits
