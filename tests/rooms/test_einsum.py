"""Einsum on random equations against numpy, and on texts that are no equations."""

import numpy as np
import pytest

import sabir
from sabir.ir import Builder
from sabir.opsets.families.products import contractions

LETTERS = "abcdE"
KINDS = (np.float32, np.float64, np.int64, np.int32, np.uint8)


def term(rng, sizes, rest):
    """One operand's labels and shape; some of its dimensions are 1, to be broadcast."""
    letters = [LETTERS[i] for i in rng.integers(0, len(LETTERS), rng.integers(0, 4))]
    narrow = {c: 1 if rng.random() < 0.15 else sizes[c] for c in letters}
    shape, place = [narrow[c] for c in letters], int(rng.integers(0, len(letters) + 1))
    if rest is None or rng.random() < 0.4:
        return "".join(letters), tuple(shape)
    shape[place:place] = [1 if rng.random() < 0.2 else n for n in rest]
    return "".join([*letters[:place], "...", *letters[place:]]), tuple(shape)


def equation(rng):
    sizes = {c: int(rng.integers(1, 4)) for c in LETTERS}
    rest = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))] if rng.random() < 0.4 else None
    terms, shapes = zip(*[term(rng, sizes, rest) for _ in range(rng.integers(1, 5))], strict=True)
    text = ",".join(terms)
    if rng.random() < 0.7:
        output = sorted(set(text) - {".", ","})
        rng.shuffle(output)
        output = output[: rng.integers(0, len(output) + 1)]
        if "..." in text:
            output.insert(int(rng.integers(0, len(output) + 1)), "...")
        text += "->" + "".join(output)
    return text, shapes


@pytest.mark.parametrize("seed", range(8))
def test_random_equations(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        text, shapes = equation(rng)
        operands = [rng.integers(0, 5, s).astype(KINDS[rng.integers(len(KINDS))]) for s in shapes]
        operands = [x.astype(operands[0].dtype) for x in operands]
        parsed = contractions.Equation.parse(text)
        try:
            expected = np.einsum(text, *operands)
        except ValueError:  # a label of two sizes in one operand
            with pytest.raises((ValueError, sabir.InferenceError)):
                contractions.evaluate(parsed, operands)
            continue
        got = contractions.evaluate(parsed, operands)

        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), text
        np.testing.assert_allclose(got, expected, err_msg=text)
        assert contractions.infer(parsed, shapes) == expected.shape, text


@pytest.mark.parametrize(
    "text",
    ["é", "i1", "\n", "i.j", "..", "....", "......", "->->", "i->i->i", "-", ">", "(" * 9, "i->ii", "i->j"],
)
def test_what_is_no_equation(text):
    b = Builder(12, check=False)
    b.output(b.Einsum(b.input("x", "float", [2]), equation=text))
    model = b.model()

    with pytest.raises(sabir.SabirError, match="equation"):
        sabir.evaluate(model, {"x": np.zeros(2, np.float32)})
    with pytest.raises(sabir.InferenceError, match="equation"):
        sabir.infer(model, strict=True)


@pytest.mark.parametrize("text", ["i" * 1_000_000, "," * 100_000, "->" * 50_000, "..." * 50_000])
def test_long_texts_are_refused_at_once_and_quoted_in_part(text):
    with pytest.raises(sabir.InferenceError) as caught:
        contractions.evaluate(contractions.Equation.parse(text), [np.zeros(1)])
    assert len(str(caught.value)) < 300


def test_shapes_are_symbolic():
    b = Builder(12)
    x, y = b.input("x", "float", ["n", "h", "q", 8]), b.input("y", "float", ["n", "h", "k", 8])
    b.output(b.Einsum(x, y, equation="...qd,...kd->...qk"))
    b.output(b.Einsum(x, b.input("z", "float", None), equation="nhqd,dm->nqm"))
    first, second = (v.type for v in sabir.infer(b.model()).graph.outputs)

    assert str(first) == "float[n,h,q,k]"
    assert str(second) == "float[n,q,?]"
