"""Choices of families: attention, Winograd's algorithm, windows, bands, stages of recurrences, single kernels."""

from pathlib import Path

import pytest

from sabir.compilation.backends.cpu.attention.scores import scores_of
from sabir.compilation.backends.cpu.bands.chains import BandedRows, chains_of
from sabir.compilation.backends.cpu.bands.entries import banded_chains, schedule_bands
from sabir.compilation.backends.cpu.elementwise.nesting import nesting_of
from sabir.compilation.backends.cpu.families import families
from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.backends.cpu.products.entries import contract_of, is_by_winograd, product_nesting
from sabir.compilation.backends.cpu.products.grouping import place_operands
from sabir.compilation.backends.cpu.recurrence.stages import leaves_of, sources_of, stages_of
from sabir.compilation.backends.cpu.singles.entries import single_of
from sabir.compilation.backends.cpu.texts import source_of, text_of
from sabir.compilation.backends.cpu.windows.entries import _cost, _places, windows_nesting
from sabir.compilation.fusion.groups import Group
from sabir.compilation.fusion.views import Copy
from sabir.loops import Contract, Number, StepState
from support.golden import Golden, read
from support.middle import HEADER, Middle

GOLDEN = Path(__file__).parent / "golden"
ATTENTION = """g (float[B,4,N,32] q, float[B,4,32,M] k, float[B,4,M,32] v) => (float[B,4,N,32] y{more}) {{
  s = MatMul (q, k)
  p = Softmax <axis = {axis}> (s)
  y = MatMul (p, v)
  {line}
}}"""


def of_golden(name, **sizes):
    """A golden model, with its sizes or others."""
    golden = read(GOLDEN / f"{name}.txt")
    return Middle.of(golden.model(), **(golden.sizes | sizes))


def with_constants(text, constants, **sizes):
    return Middle.of(Golden(HEADER + text, sizes, {"constants": constants}, {}).model(), **sizes)


# ---------------------------------------------------------------- attention


def attention(axis=-1, more="", line=""):
    return Middle(ATTENTION.format(axis=axis, more=more, line=line), B=2, N=40, M=50)


def test_scores_that_nothing_else_reads_are_never_in_memory():
    middle = attention()
    assert middle.groups() == ["attention: contract"]
    group = middle.group("y")
    assert group.scores.members[0] is middle["s"]
    assert middle["p"] not in middle.grouping.stored


@pytest.mark.parametrize(
    "options",
    [
        {"axis": 2},  # a Softmax along the queries
        {"more": ", float[B,4,N,M] p"},  # the probabilities are a result
        {"more": ", float[B,4,N,M] z", "line": "z = Exp (s)"},  # the scores are read again
    ],
)
def test_scores_that_are_needed_in_memory(options):
    middle = attention(**options)
    assert middle.group("y").kind == "product"
    assert not isinstance(scores_of(middle.grouping, middle["y"]), Group)


# ---------------------------------------------------------------- products


def test_a_transposed_operand_of_a_product():
    middle = Middle(
        "g (float[4,6] a, float[4,5] b) => (float[6,5] y) { t = Transpose (a) y = MatMul (t, b) }"
    )
    product = middle["y"]
    place_operands(middle.grouping, product)
    a, b = middle.grouping.operands[product]
    assert not isinstance(a, Copy)  # its rows are read with gaps
    assert b is product.b


def test_the_loops_of_a_product_have_its_operands_last():
    middle = Middle(
        "g (float[N,6] a, float[6,5] b, float[5] c) => (float[N,5] y) { h = MatMul (a, b) y = Add (h, c) }",
        N=3,
    )
    nesting = product_nesting(middle.builder, middle.group("h"))
    assert [p.strides for p in nesting.places[-2:]] == [(6, 0), (0, 0)]
    assert contract_of(middle["h"]) is middle["h"]
    with pytest.raises(TypeError, match="the group begins with a product"):
        contract_of(middle["y"])


CONV = "g (float[1,{c},{s},{s}] x, float[{f},{c},3,3] w) => (float[1,{f},{s},{s}] y) {{ y = Conv <pads = [1, 1, 1, 1]{more}> (x, w) }}"


@pytest.mark.parametrize(
    ("sizes", "constant", "winograd"),
    [
        ({}, True, True),
        ({"c": 31}, True, False),  # few channels
        ({"f": 31}, True, False),  # few filters
        ({"s": 11}, True, True),  # 36 tiles
        ({"s": 10}, True, False),  # 25 tiles
        ({}, False, True),  # filters that vary are transformed in each run
        ({"s": 11}, False, False),  # a check of the filters costs too much beside few windows
    ],
)
def test_which_convolutions_winograd_computes(sizes, constant, winograd):
    text = CONV.format(**({"c": 32, "f": 32, "s": 56, "more": ""} | sizes))
    middle = with_constants(text, "w" if constant else "")
    group = next(g for g in middle.grouping.groups if any(isinstance(x, Contract) for x in g.members))
    assert is_by_winograd(middle.builder, group) is winograd


def test_strides_and_dilations_are_not_for_winograd():
    text = CONV.replace("{s}] y", "28] y").replace("{s},28", "28,28")
    middle = with_constants(text.format(c=32, f=32, s=56, more=", strides = [2, 2]"), "w")
    group = next(g for g in middle.grouping.groups if any(isinstance(x, Contract) for x in g.members))
    assert not is_by_winograd(middle.builder, group)


# ---------------------------------------------------------------- windows and bands


def test_the_windows_that_are_computed_at_a_time_leave_few_alone():
    assert _places([], HEURISTICS) == 1
    assert _places([28], HEURISTICS) == 7
    assert _places([5, 56], HEURISTICS) == _places([56], HEURISTICS)
    assert 1 <= _places([13], HEURISTICS) <= 8
    assert _cost(14, 7, HEURISTICS) < _cost(14, 5, HEURISTICS)


def test_the_last_place_of_windows_is_what_they_slide_over():
    middle = of_golden("windows/depthwise")
    group = next(g for g in middle.grouping.groups if g.kind == "windows")
    nesting = windows_nesting(middle.builder, group)
    assert nesting.places[-1].located.base.shape[1:] == (30, 30, 32)  # padded


def test_the_rows_of_bands():
    rows = BandedRows(112, 112, 1, 1, 3, 14)
    assert (rows.number, rows.moved, rows.kept, rows.read) == (8, 14, 2, 16)
    assert rows.is_regular
    assert not rows._replace(rows=112).is_regular  # one band
    assert not BandedRows(112, 112, 9, 1, 19, 4).is_regular  # padding of two bands
    strided = BandedRows(56, 112, 1, 2, 3, 14)
    assert (strided.moved, strided.kept, strided.read) == (28, 1, 29)


def test_an_inverted_residual_block_is_a_chain():
    middle = of_golden("bands/inverted-residual")
    chains = chains_of(middle.builder, middle.grouping.groups)
    ((last, chain),) = chains.items()
    assert [g.kind for g in chain.groups if g.kind != "nest"] == ["product", "windows", "product"]
    assert last is chain.groups[-1] is chain.second
    assert chain.rows.number > 1
    assert chain.rows.number % 4 == 2  # of 38 bands of 3 rows, the last one is short
    ((_, banded),) = banded_chains(middle.builder, middle.grouping.groups).items()
    assert banded.chain.groups == chain.groups
    left = list(schedule_bands(middle.builder, [g for g in middle.grouping.groups if g.kind != "gone"]))
    assert not set(chain.groups) & set(left)


def test_small_images_are_no_chains():
    golden = read(GOLDEN / "bands" / "inverted-residual.txt")
    small = golden._replace(text=golden.text.replace("112,112", "28,28"))
    middle = Middle.of(small.model(), N=2)
    assert chains_of(middle.builder, middle.grouping.groups) == {}


# ---------------------------------------------------------------- recurrences


def test_the_stages_of_a_recurrence():
    """A GRU multiplies the state by its gates: the second product waits for the first one."""
    middle = of_golden("recurrence/walk")
    (group,) = (g for g in middle.grouping.groups if g.kind == "recurrence")
    (body,) = group.recurrences
    first, second = stages_of(body)
    assert len(first.products) == 2
    assert len(second.products) == 1
    assert first.kept
    assert not second.kept
    assert all(sources_of(x) == (x.a,) for x in first.products)
    assert any(isinstance(x, StepState) for x in leaves_of(body))
    assert any(isinstance(x, Number) for x in leaves_of(body))


def test_an_lstm_has_one_stage():
    middle = of_golden("recurrence/steps")
    (group,) = (g for g in middle.grouping.groups if g.kind == "recurrence")
    (stage,) = stages_of(next(iter(group.recurrences)))
    assert len(stage.products) == 4


# ---------------------------------------------------------------- single kernels


@pytest.mark.parametrize(
    ("name", "more"),
    [("cumsum-rows", []), ("topk", ["count"]), ("scatter", ["check0"]), ("coupling", ["classes"])],
)
def test_arguments_of_single_kernels(name, more):
    middle = of_golden(f"singles/{name}")
    group = next(g for g in middle.grouping.groups if g.kind in {"single", "scatter"})
    single = single_of(group.members[0], nesting_of(group, middle.grouping), middle.builder)
    assert sorted(single.more) == more
    assert set(single.spec.signature.names) == {"nest", *more}


def test_what_is_no_single_kernel():
    middle = Middle("g (float[N] x) => (float[N] y) { y = Neg (x) }", N=3)
    with pytest.raises(TypeError, match="Map has no kernel of its own"):
        single_of(middle["y"], nesting_of(middle.group("y"), middle.grouping), middle.builder)


# ---------------------------------------------------------------- the registry


def test_every_kernel_has_one_writer():
    found = families()
    assert found is families()
    assert {
        "nest",
        "product",
        "attention",
        "windows",
        "trees",
        "single",
        "scatter",
        "recurrence",
    } <= found.by_name.keys()
    assert len(found.writers) == sum(len(f.kernels) for f in found.by_name.values())


def test_the_source_of_a_kernel_is_its_specification():
    spec = Middle("g (float[N] x) => (float[N] y) { y = Neg (x) }", N=3).plan().entries[0].choices[0][2]
    source = source_of(spec)
    assert source.name.endswith(repr(spec))
    assert source.text() == text_of(spec)
