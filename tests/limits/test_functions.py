"""Functions of functions make very many nodes of few: counted beforehand, inferred once, or refused."""

import numpy as np
import pytest

import sabir
from sabir import Builder, Limits
from sabir.base import LimitError, SabirError
from support.bounds import bounded

pytestmark = pytest.mark.usefixtures("untrusted_files")

HEAD = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'
X = {"x": [1.0, 2.0]}
FEWER = Limits(nodes=Limits().nodes // 5)


def functions(bodies, call="F0"):
    """A model that calls the first of some functions, given by what their bodies make of `a`."""
    text = "".join(
        f'<domain: "d", opset_import: ["" : 21, "d" : 1]> F{i} (a) => (b) {{ {body} }}\n'
        for i, body in enumerate(bodies)
    )
    return sabir.parse(f"{HEAD} g (float[2] x) => (float[2] y) {{ y = d.{call} (x) }}\n{text}")


def laughs(levels, width=2):
    """Functions of which each calls the next one several times."""
    twice = "".join(f"t{k + 1} = d.NEXT (t{k})  " for k in range(width))
    bodies = [
        f"t0 = Identity (a)  {twice} b = Identity (t{width})".replace("NEXT", f"F{i + 1}")
        for i in range(levels)
    ]
    return functions([*bodies, "b = Neg (a)"])


def binary(levels):
    """Functions that pass on every attribute but one, which they set to 0 and to 1: no two calls are alike."""
    names = [f"p{k}" for k in range(levels)]
    text = ""
    for i in range(levels):
        passed = [f"{n}: int = @{n}" for n in names[:i]]
        calls = [", ".join([*passed, f"p{i} = {bit}"]) for bit in (0, 1)]
        text += (
            f'<domain: "d", opset_import: ["" : 21, "d" : 1]> F{i} <{", ".join(names[:i])}> (a) => (b) {{ '
            if i
            else ('<domain: "d", opset_import: ["" : 21, "d" : 1]> F0 (a) => (b) { ')
        )
        text += f"t = d.F{i + 1} <{calls[0]}> (a)  b = d.F{i + 1} <{calls[1]}> (t) }}\n"
    passed = ", ".join(names)
    text += f'<domain: "d", opset_import: ["" : 21]> F{levels} <{passed}> (a) => (b) {{ b = Neg (a) }}\n'
    return sabir.parse(f"{HEAD} g (float[2] x) => (float[2] y) {{ y = d.F0 (x) }}\n{text}")


STAGES = {
    "evaluate": lambda model: sabir.evaluate(model, X, limits=FEWER),
    "infer": lambda model: sabir.infer(model, strict=True, limits=FEWER),
    "inline": lambda model: sabir.inline(model, limits=FEWER),
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "bomb", [lambda: laughs(40), lambda: laughs(90), lambda: laughs(20, 30), lambda: binary(30)]
)
def test_a_billion_laughs(stage, bomb):
    model = bomb()
    with bounded(memory=1 << 29):
        try:
            STAGES[stage](model)
        except LimitError as error:
            assert error.limit == "nodes"
            assert len(str(error)) < 300
        else:
            assert stage == "infer"  # calls that are alike are inferred once
            assert str(model.graph.outputs[0].type) == "float[2]"


def test_inlining_leaves_a_refused_model_as_it_was():
    model = laughs(40)
    before = sabir.dumps(model)
    with pytest.raises(LimitError):
        model = sabir.inline(model)
    assert sabir.dumps(model) == before


def test_nodes_is_named_and_can_be_raised():
    with pytest.raises(LimitError, match=r"would have 1,\d\d\d nodes; the limit is 1,000: .*nodes=\d+"):
        sabir.inline(laughs(9), limits=Limits(nodes=1000))
    with pytest.raises(LimitError, match="nodes"):
        sabir.evaluate(laughs(9), X, limits=Limits(nodes=1000))
    assert len(sabir.inline(laughs(9), limits=Limits(nodes=2000)).graph) > 1000
    assert sabir.evaluate(laughs(9), X, limits=Limits(nodes=2000))["y"].tolist() == [1, 2]


def test_a_file_of_many_nodes_is_no_bomb():
    nodes = "".join(f"a{k + 1} = Neg (a{k})  " for k in range(40))
    model = functions([f"a0 = Identity (a)  {nodes} b = Identity (a40)"])
    assert len(sabir.inline(model, limits=Limits(nodes=10)).graph) == 42


TRUE = "c = Constant <value = bool {1}> ()"
THRICE = "m = Constant <value = int64 {3}> ()"
OTHER = "else_branch = e () => (float[2] v) { v = Neg (a) }"
BODY = "body = l (int64 i, bool k, float[2] s) => (bool k2, float[2] t)"
RECURSIVE = {
    "itself": ["b = d.F0 (a)"],
    "one another": ["b = d.F1 (a)", "b = d.F2 (a)", "b = d.F0 (a)"],
    "through a branch": [f"{TRUE}  b = If (c) <then_branch = t () => (float[2] u) {{ u = d.F0 (a) }}, {OTHER}>"],
    "through the body of a loop": [f"{TRUE}  {THRICE}  b = Loop (m, c, a) <{BODY} {{ k2 = Identity (k)  t = d.F0 (s) }}>"],
}  # fmt: skip


@pytest.mark.parametrize("how", RECURSIVE)
@pytest.mark.parametrize("stage", STAGES)
def test_functions_that_call_themselves_are_refused(stage, how):
    with bounded(), pytest.raises(SabirError, match="calls itself|may call itself"):
        STAGES[stage](functions(RECURSIVE[how]))


def test_a_chain_of_functions_is_inlined_however_long_it_is():
    bodies = [*(f"b = d.F{i + 1} (a)" for i in range(3000)), "b = Neg (a)"]
    with bounded():
        assert [n.op for n in sabir.inline(functions(bodies)).graph] == ["Neg"]


@pytest.mark.parametrize("stage", ["evaluate", "infer"])
def test_a_chain_of_functions_that_is_too_long_to_follow_is_refused(stage):
    bodies = [*(f"b = d.F{i + 1} (a)" for i in range(3000)), "b = Neg (a)"]
    with bounded(), pytest.raises(SabirError, match="deeper than 100"):
        STAGES[stage](functions(bodies))


def test_functions_and_graphs_nested_past_the_stack_are_refused():
    """A hundred functions, each with a call inside of thirty branches."""

    def branches(inner, depth):
        if not depth:
            return f"b = {inner}"
        return (f"b = If (c) <then_branch = t{depth} () => (float[2] b) {{ {branches(inner, depth - 1)} }}, "
                f"else_branch = e{depth} () => (float[2] v{depth}) {{ v{depth} = Neg (a) }}>")  # fmt: skip

    true = "c = Constant <value = bool {1}> ()  "
    model = functions([*(true + branches(f"d.F{i + 1} (a)", 30) for i in range(90)), "b = Neg (a)"])
    for stage in STAGES.values():
        with bounded():
            try:
                stage(model)
            except SabirError as error:
                assert len(str(error)) <= 2000


def branches(depth):
    """Branches in branches, made by hand: a file may not nest them so deep."""
    inner = Builder(21)
    inner.output(inner.Constant(value=np.ones(2, np.float32)))
    for _ in range(depth):
        outer = Builder(21)
        other = Builder(21)
        other.output(other.Constant(value=np.ones(2, np.float32)))
        outer.output(
            outer.If(outer.Constant(value=np.array([True])), then_branch=inner.graph, else_branch=other.graph)
        )
        inner = outer
    return sabir.Model(inner.graph, inner.opsets, 10)


@pytest.mark.parametrize("stage", ["evaluate", "infer"])
def test_depth_is_named_and_can_be_raised(stage):
    run = getattr(sabir, stage)
    given = ({},) if stage == "evaluate" else ()
    with pytest.raises(LimitError, match=r"nested too deep; the limit is 32: .*depth=\d+"):
        run(branches(32), *given)
    run(branches(31), *given)
    run(branches(40), *given, limits=Limits(depth=41))


def test_depth_past_the_stack_is_refused():
    with pytest.raises(SabirError), bounded():
        sabir.evaluate(branches(400), {}, limits=Limits(depth=None))
