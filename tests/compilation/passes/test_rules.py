"""Each pass on expressions: what it rewrites, and what it leaves as it is."""

import numpy as np

from sabir import loops
from sabir.compilation import PASSES
from sabir.compilation.backends.cpu.passes import PIPELINE
from sabir.compilation.engine.expressions import lowered
from sabir.compilation.passes import run_pipeline
from sabir.compilation.passes._channels_last import channels_last
from sabir.compilation.passes._common_products import common_products
from sabir.compilation.passes._gradients_in_order import gradients_in_order
from sabir.compilation.passes._recurrent_products import recurrent_products
from sabir.compilation.passes._repeats import MOST_REPEATS, repeats_as_views
from sabir.compilation.passes._scaled_matrices import scaled_matrices
from sabir.compilation.passes._shared_heads import shared_heads
from sabir.compilation.settings import Settings
from sabir.loops import Contract, Expand, Permute, Reshape, Stored, Take, walk
from support.middle import Middle

A, B = Stored("float", (4, 6), 1), Stored("float", (6, 3), 2)


def kinds(roots):
    return [type(x).__name__ for x in walk.postorder(roots.values())]


# ---------------------------------------------------------------- common products


def test_equal_products_are_one():
    products = [loops.contract(loops.permute(A, (0, 1)), B) for _ in range(2)]
    roots = {n: loops.apply("neg", x) for n, x in enumerate(products)}
    found = common_products(roots)
    assert found[0].operands[0] is found[1].operands[0]
    assert kinds(found).count("Contract") == 1


def test_maps_are_not_shared_by_that_pass():
    """Kernels compute equal maps where they are read."""
    roots = {n: loops.contract(loops.apply("neg", A), B) for n in range(2)}
    found = common_products(roots)
    assert kinds(found).count("Map") == 2


def test_one_product_is_left_as_it_is():
    roots = {0: loops.contract(A, B)}
    assert common_products(roots) == roots


# ---------------------------------------------------------------- recurrent products


def repeated(start=0, *, first=None, matrix=None, backwards=False):
    """A product of all states of a recurrence, from a place of its states and the first one on."""
    steps = loops.RecurrenceBuilder("float", (5, 1, 2, 6), backwards=backwards)
    initial, r = Stored("float", (1, 2, 6), 3), Stored("float", (6, 6), 4)
    state = steps.state(initial)
    after = loops.apply("tanh", loops.contract(state, steps.matrix(r)))
    (y,) = steps.results([after], [after]).outputs
    parts = [initial if first is None else first, loops.reshape(y, (5, 2, 6))]
    states = loops.join(parts[::-1] if backwards else parts, 0)
    product = loops.contract(
        loops.cut(states, (start, 0, 0), (5, 2, 6), (1, 1, 1)), r if matrix is None else matrix
    )
    return {0: product}


def test_products_of_all_states_are_outputs_of_the_recurrence():
    for roots in (repeated(), repeated(1, backwards=True)):
        found = recurrent_products(roots)
        assert kinds(found) == ["Stored", "Stored", "Recur", "Reshape"]


def test_products_of_other_states_or_matrices_are_left_as_they_are():
    other = Stored("float", (1, 2, 6), 7)
    for roots in (
        repeated(1), repeated(backwards=True), repeated(first=other), repeated(matrix=Stored("float", (6, 6), 8)),
        repeated(matrix=loops.permute(Stored("float", (6, 6), 4), (1, 0))),
    ):  # fmt: skip
        assert recurrent_products(roots) == roots


# ---------------------------------------------------------------- gradients in order


def test_transposed_products_are_copied_beside_fed_tensors_of_their_shape():
    x, dy = Stored("float", (9, 64), 1), Stored("float", (96, 9), 2)
    mean, row = Stored("float", (64, 96), 3), Stored("float", (96,), 4)
    turned = loops.permute(loops.contract(dy, x), (1, 0))
    for roots, copies in (
        ({0: loops.apply("sub", turned, mean)}, 1),
        ({0: loops.apply("add", turned, loops.apply("mul", mean, 0.9)), 1: loops.apply("neg", turned)}, 1),
        ({0: loops.apply("add", turned, row)}, 0),
        ({0: loops.apply("sub", loops.contract(dy, x), loops.permute(mean, (1, 0)))}, 0),
    ):
        assert kinds(gradients_in_order(roots)).count("Copy") == copies


# ---------------------------------------------------------------- repeats


def taken(indices, axis=1):
    table = Stored("int64", (len(indices),), array=np.array(indices))
    shape = (*A.shape[:axis], len(indices), *A.shape[axis + 1 :])
    return {0: Take("float", shape, A, table, axis)}


def test_elements_that_are_repeated_are_a_view():
    found = repeats_as_views(taken(np.arange(6).repeat(2)))
    assert kinds(found) == ["Stored", "Reshape", "Expand", "Reshape"]
    assert found[0].shape == (4, 12)
    walk.verify(found.values())


def test_other_indices_stay():
    for indices in (
        [0, 0, 1, 1, 2, 2],
        np.arange(6),
        np.arange(6).repeat(MOST_REPEATS + 1),
        np.tile(np.arange(6), 2),
    ):
        roots = taken(indices)
        assert repeats_as_views(roots) == roots


def test_rows_alone_are_taken():
    """Along another axis than the last one, whole rows are moved: a view gains nothing."""
    roots = taken(np.arange(4).repeat(2), axis=0)
    assert kinds(repeats_as_views(roots)) == kinds(roots)


# ---------------------------------------------------------------- shared heads


def heads(times):
    """A product of heads by matrices that are repeated for so many heads each."""
    q, k = Stored("float", (1, 2 * times, 3, 4), 1), Stored("float", (1, 2, 4, 5), 2)
    wide = Expand("float", (1, 2, times, 4, 5), Reshape("float", (1, 2, 1, 4, 5), k))
    return {0: loops.contract(q, Reshape("float", (1, 2 * times, 4, 5), wide))}


def test_no_matrix_is_repeated_for_heads():
    found = shared_heads(heads(3))
    (product,) = (x for x in walk.postorder(found.values()) if isinstance(x, Contract))
    assert product.shape == (1, 2, 3, 3, 5)
    assert found[0].shape == (1, 6, 3, 5)
    walk.verify(found.values())


def test_matrices_of_each_head_stay():
    roots = {0: loops.contract(Stored("float", (1, 6, 3, 4), 1), Stored("float", (1, 6, 4, 5), 2))}
    assert shared_heads(roots) == roots


# ---------------------------------------------------------------- channels last


def unrewritten(text):
    """The expressions of a model before all passes."""
    return lowered(Middle(text).prepared, {}, PIPELINE, Settings(without=frozenset(PASSES))).expressions


def test_convolutions_are_computed_with_channels_last():
    text = """g (float[1,4,9,9] x, float[8,4,3,3] w, float[8] b) => (float[1,8,5,5] y) {
      c = Conv (x, w, b)
      r = Relu (c)
      y = MaxPool <kernel_shape = [3, 3]> (r)
    }"""
    roots = unrewritten(text)
    found = channels_last(roots)
    walk.verify(found.values())
    last = found[max(roots)]
    assert isinstance(last, Permute)
    assert last.operand.shape == (1, 5, 5, 8)
    maps = [x for x in walk.postorder([last]) if isinstance(x, loops.Map)]
    assert {x.shape for x in maps if x.rank == 4} == {(1, 7, 7, 8)}
    before = [x for x in walk.postorder([roots[max(roots)]]) if isinstance(x, loops.Map)]
    assert {x.shape for x in before if x.rank == 4} == {(1, 8, 7, 7)}


def test_graphs_without_windows_stay():
    roots = {0: loops.contract(A, B), 1: loops.permute(A, (1, 0))}
    (channels,) = (each for each in PIPELINE if each.name == "channels-last")
    assert run_pipeline(roots, [channels]) == roots


# ---------------------------------------------------------------- scaled matrices


def scaled(factor, keys=B):
    """A product by keys, as a view, that are multiplied by a factor."""
    view = loops.permute(loops.reshape(keys, (3, 6)), (1, 0))
    return {0: loops.contract(A, loops.apply("mul", view, factor))}


def test_a_number_scales_the_first_operand():
    found = scaled_matrices(scaled(loops.number("float", 0.5)))[0]
    assert (found.a.op, type(found.b)) == ("mul", Permute)
    walk.verify([found])


def test_a_number_of_more_axes_does_too():
    found = scaled_matrices(scaled(Stored("float", (1, 1), 3)))[0]
    assert found.a.inputs[1].rank == 0
    walk.verify([found])


def test_factors_of_rows_and_constant_matrices_stay():
    constant = Stored("float", (6, 3), array=np.ones((6, 3), np.float32))
    for roots in (scaled(Stored("float", (1, 3), 3)), scaled(loops.number("float", 2), constant)):
        assert scaled_matrices(roots)[0].b.op == "mul"
