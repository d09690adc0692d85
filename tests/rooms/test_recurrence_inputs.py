"""LSTM, GRU and RNN: inputs that do not agree, lengths of sequences, and the bound of activations."""

import itertools

import numpy as np
import pytest

import sabir
from sabir.base import CheckError
from sabir.ir import Builder, symbol

NAMES = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
TIME, BATCH, WIDTH, HIDDEN = 3, 2, 5, 4
EVERY = pytest.mark.parametrize("op", GATES)


def some(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def inputs(op, direction="forward", layout=0, **changes):
    """All that a layer takes; a change is an array, or None to leave an input out."""
    ways, gates = (2 if direction == "bidirectional" else 1), GATES[op]
    state = (BATCH, ways, HIDDEN) if layout else (ways, BATCH, HIDDEN)
    given = {
        "X": some(BATCH, TIME, WIDTH) if layout else some(TIME, BATCH, WIDTH),
        "W": some(ways, gates * HIDDEN, WIDTH),
        "R": some(ways, gates * HIDDEN, HIDDEN),
        "B": some(ways, 2 * gates * HIDDEN),
        "sequence_lens": np.array([3, 1], np.int32),
        "initial_h": some(*state),
    }
    if op == "LSTM":
        given |= {"initial_c": some(*state), "P": some(ways, 3 * HIDDEN)}
    return {name: array for name, array in (given | changes).items() if array is not None}


def model(op, given, constants=(), shapes=None, **attributes):
    b = Builder(14, check=False)
    values = [
        None
        if name not in given
        else b.initializer(name, given[name])
        if name in constants
        else b.input(name, given[name].dtype, (shapes or {}).get(name, given[name].shape))
        for name in NAMES[: 8 if op == "LSTM" else 6]
    ]
    made = b.op(op, *values, outputs=3 if op == "LSTM" else 2, **attributes)
    for value, name in zip(made, ("Y", "Y_h", "Y_c"), strict=False):
        b.output(value, name)
    return b.model()


def run(op, given, **attributes):
    return list(sabir.evaluate(model(op, given, **attributes), given).values())


def refused(op, given, told, **attributes):
    """Whether the checker and a run both refuse a call; the run gets shapes that it does not know before."""
    whole = model(op, given, constants=("sequence_lens",), **attributes)
    with pytest.raises(CheckError, match=told):
        sabir.check(whole, select=["TYPE", "ATTR"])
    unknown = {name: [None] * array.ndim for name, array in given.items()}
    with pytest.raises(sabir.SabirError, match=told):
        sabir.evaluate(model(op, given, shapes=unknown, **attributes), given)


@EVERY
@pytest.mark.parametrize("lens", [[3, 4], [-1, 2]])
@pytest.mark.parametrize("layout", [0, 1])
def test_a_length_outside_the_sequence(op, lens, layout):
    given = inputs(op, layout=layout, sequence_lens=np.array(lens, np.int32))
    refused(op, given, r"`sequence_lens`\[[01]\] is (4|-1), and must be 0 to 3", layout=layout)


@EVERY
@pytest.mark.parametrize("lens", [[3], [3, 3, 3], [[3, 2]], 3, []])
def test_as_many_lengths_as_sequences(op, lens):
    given = inputs(op, sequence_lens=np.array(lens, np.int32))
    refused(op, given, r"`sequence_lens` must have the shape \[2\] \(batch_size\)")


@EVERY
@pytest.mark.parametrize("lens", [[0, 0], [0, 3], [3, 3]])
def test_lengths_at_the_ends_of_the_range(op, lens):
    given = inputs(op, sequence_lens=np.array(lens, np.int32))
    y, last, *_ = run(op, given)
    for row, length in enumerate(lens):
        assert not y[length:, :, row].any()
        np.testing.assert_array_equal(
            last[:, row], y[length - 1, :, row] if length else given["initial_h"][:, row]
        )


def test_a_length_below_0_of_a_sequence_of_unknown_length():
    given = inputs("GRU", sequence_lens=np.array([1, -2], np.int32))
    unknown = {"X": [None, BATCH, WIDTH]}
    with pytest.raises(CheckError, match="is -2, and must be 0 to seq_length"):
        sabir.check(model("GRU", given, constants=("sequence_lens",), shapes=unknown), select=["TYPE"])
    longer = inputs(
        "GRU", sequence_lens=np.array([1, 9], np.int32)
    )  # whether it is too long, a run will show
    sabir.check(model("GRU", longer, constants=("sequence_lens",), shapes=unknown), select=["TYPE"])


WRONG = {
    "X": [some(TIME, BATCH), some(TIME, BATCH, WIDTH, 1), some(TIME, BATCH, WIDTH + 1)],
    "R": [some(1, HIDDEN, HIDDEN + 1), some(1, HIDDEN), some(2, 4 * HIDDEN, HIDDEN)],
    "B": [some(1, 2), some(2, 8 * HIDDEN), some(8 * HIDDEN)],
    "initial_h": [some(1, 1, HIDDEN), some(1, BATCH, 1), some(2, BATCH, HIDDEN), some(BATCH, HIDDEN)],
    "initial_c": [some(1, 1, HIDDEN), some(1, BATCH, 1), some(2, BATCH, HIDDEN), some(BATCH, HIDDEN)],
    "P": [some(1, HIDDEN), some(2, 3 * HIDDEN), some(3 * HIDDEN)],
}
CASES = [
    (op, name, wrong)
    for op, name in itertools.product(GATES, WRONG)
    if op == "LSTM" or name not in {"initial_c", "P"}
    for wrong in WRONG[name]
]


@pytest.mark.parametrize(("op", "name", "wrong"), CASES)
def test_inputs_that_do_not_agree(op, name, wrong):
    refused(op, inputs(op, **{name: wrong}), "must have the shape|rows, and must have")


@EVERY
def test_as_many_directions_as_weights(op):
    refused(op, inputs(op, W=some(2, GATES[op] * HIDDEN, WIDTH)), r"`W` must have the shape \[1,")
    refused(op, inputs(op), r"`R` must have the shape \[2,", direction="bidirectional")
    refused(op, inputs(op, "bidirectional"), r"`R` must have the shape \[1,", direction="reverse")


@EVERY
def test_the_hidden_size_is_that_of_the_weights(op):
    refused(op, inputs(op), rf"`R` must have the shape \[1,{3 * GATES[op]},3\]", hidden_size=3)
    run(op, inputs(op), hidden_size=HIDDEN)


@EVERY
def test_activations_are_checked_before_a_run(op):
    functions = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
    refused(op, inputs(op), "is 'Foo', and must be Relu", activations=["Foo"] * functions)
    if op != "RNN":
        refused(op, inputs(op), "`activations` of a forward layer must be", activations=["Tanh"])


@EVERY
def test_layout_1_is_layout_0_turned(op):
    rows, columns = inputs(op, "bidirectional"), inputs(op, "bidirectional", layout=1)
    for name in ("X", "initial_h", "initial_c"):
        if name in rows:
            columns[name] = rows[name].swapaxes(0, 1)
    y, *states = run(op, rows, direction="bidirectional")
    turned, *turned_states = run(op, columns, direction="bidirectional", layout=1)
    np.testing.assert_array_equal(turned, y.transpose(2, 0, 1, 3))
    for state, other in zip(states, turned_states, strict=True):
        np.testing.assert_array_equal(other, state.swapaxes(0, 1))


@EVERY
def test_a_clip_of_0_is_no_clip(op):
    plain, zero = run(op, inputs(op)), run(op, inputs(op), clip=0.0)
    for one, other in zip(plain, zero, strict=True):
        np.testing.assert_array_equal(one, other)
    assert np.any(run(op, inputs(op), clip=0.1)[0] != plain[0])


@EVERY
@pytest.mark.parametrize("clip", [-1.0, float("nan")])
def test_a_clip_that_bounds_nothing(op, clip):
    refused(op, inputs(op), "`clip` is (-1.0|nan), and must be above 0, or 0 for no clip", clip=clip)


@EVERY
def test_sizes_follow_from_any_input(op):
    gates = GATES[op]
    given = inputs(op, B=None, sequence_lens=None, initial_c=None, P=None)
    shapes = {
        "X": ["S", None, "I"],
        "W": [1, None, "I"],
        "R": [None, gates * HIDDEN, None],
        "initial_h": [1, "N", None],
    }
    b = model(op, given, shapes=shapes)
    assert str(b.graph.outputs[0].type) == "float[S,1,N,4]"
    shapes["R"] = [None, None, "H"]
    b = model(op, given, shapes=shapes)
    assert b.graph.outputs[1].type.shape == (1, symbol("N"), symbol("H"))
