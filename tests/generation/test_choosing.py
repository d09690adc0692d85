"""How tokens are chosen: constraints, sampling, beam search."""

import itertools
from typing import Any

import numpy as np
import pytest

import sabir
from sabir.generation import Settings
from sabir.generation._sampling import Chooser, constrained, probabilities
from support.decoders import Language

SMALL = Language(vocabulary=5, seed=0, spread=0.8)


def prob(scores, **options):
    return probabilities(np.float32(np.log(scores)), Settings(sample=True, **options))


def test_bounds_of_sampling():
    scores = [0.5, 0.2, 0.15, 0.1, 0.05]
    np.testing.assert_allclose(prob(scores), scores, rtol=1e-5)
    np.testing.assert_allclose(prob(scores, top_k=2), [5 / 7, 2 / 7, 0, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(prob(scores, top_k=9), scores, rtol=1e-5)
    # 0.5 and 0.2 make up 0.7; more is needed for 0.75
    np.testing.assert_allclose(prob(scores, top_p=0.69), [5 / 7, 2 / 7, 0, 0, 0], rtol=1e-5)
    np.testing.assert_allclose(prob(scores, top_p=0.75), np.array([0.5, 0.2, 0.15, 0, 0]) / 0.85, rtol=1e-5)
    np.testing.assert_allclose(prob(scores, top_p=0.01), [1, 0, 0, 0, 0])
    np.testing.assert_allclose(prob(scores, min_p=0.35), [5 / 7, 2 / 7, 0, 0, 0], rtol=1e-5)
    hot = np.sqrt(scores) / np.sqrt(scores).sum()
    np.testing.assert_allclose(prob(scores, temperature=2.0), hot, rtol=1e-5)


def test_draws_have_the_probabilities():
    logits = np.float32(np.log([0.5, 0.3, 0.2]))
    chooser = Chooser(Settings(sample=True, seed=7), 0)
    counts = np.bincount([chooser.choose(logits, [], 0) for _ in range(4000)], minlength=3)
    np.testing.assert_allclose(counts / 4000, [0.5, 0.3, 0.2], atol=0.03)


def test_a_token_without_probability_is_never_drawn():
    logits = np.float32([-np.inf, 0, -np.inf, 0, -np.inf])
    chooser = Chooser(Settings(sample=True, seed=1), 0)
    assert {chooser.choose(logits, [], 0) for _ in range(200)} == {1, 3}


def test_constraints():
    scores = np.float32([2, -2, 1, 0])

    def after(history=(), new=0, **options):
        return constrained(scores, Settings(**options), list(history), new).tolist()

    never = -np.inf
    assert after([0, 1, 1], repetition_penalty=2.0) == [1, -4, 1, 0]
    assert after(suppressed=(0,), suppressed_first=(2, 99)) == [never, -2, never, 0]
    assert after(suppressed_first=(2,), new=1) == [2, -2, 1, 0]
    assert after(min_new_tokens=2, stop_ids=frozenset([0]), new=1) == [never, -2, 1, 0]
    assert after(min_new_tokens=2, stop_ids=frozenset([0]), new=2) == [2, -2, 1, 0]
    assert after([1, 2, 1], no_repeat_ngram_size=2) == [2, -2, never, 0]
    assert after([1, 2, 1], no_repeat_ngram_size=1) == [2, never, never, 0]
    assert after([1], no_repeat_ngram_size=3) == [2, -2, 1, 0]
    assert after(forced_first=3) == [never, never, never, 0]
    assert after(forced_last=3, max_new_tokens=5, new=4) == [never, never, never, 0]
    assert scores.tolist() == [2, -2, 1, 0]


def test_a_seed_repeats_the_draws_of_each_row():
    generator = sabir.TextGenerator(SMALL.decoder(), engine="reference")
    options: Any = {"max_new_tokens": 12, "temperature": 4.0, "seed": 5}
    rows = [r.ids for r in generator.generate([[1, 2], [1, 2], [3]], **options)]
    assert rows == [r.ids for r in generator.generate([[1, 2], [1, 2], [3]], **options)]
    assert rows[0] != rows[1]
    assert rows[0] == generator.generate([1, 2], **options).ids  # whatever the other rows are
    options["seed"] = 6
    assert rows[0] != generator.generate([1, 2], **options).ids


def test_one_candidate_is_the_greedy_token():
    generator = sabir.TextGenerator(SMALL.decoder(), engine="reference")
    greedy = SMALL.greedy([1, 2], 8)
    bounds: list[Any] = [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}, {"temperature": 0}]
    for options in bounds:
        assert generator.generate([1, 2], max_new_tokens=8, **options).ids == greedy


# beam search


def log_probability(prompt, ids):
    total = 0.0
    for i, token in enumerate(ids):
        logits = SMALL.logits([*prompt, *ids[:i]]).astype(np.float64)
        total += logits[token] - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    return total


def answers(length, stop):
    """Every answer of at most this length: it ends with the stop token, or has the length."""
    for ids in itertools.product(range(5), repeat=length):
        yield list(ids[: ids.index(stop) + 1]) if stop in ids else list(ids)


@pytest.mark.parametrize("penalty", [1.0, 0.0, 2.0, -1.0])
def test_a_search_with_all_beams_finds_the_best_answer(penalty):
    prompt = [1, 3]
    scores = {tuple(a): log_probability(prompt, a) / len(a) ** penalty for a in answers(3, 4)}
    best = max(scores, key=scores.__getitem__)
    generator = sabir.TextGenerator(SMALL.decoder(), stop_ids=[4], engine="reference")
    result = generator.generate(
        prompt, max_new_tokens=3, num_beams=125, length_penalty=penalty, early_stopping="never"
    )
    assert tuple(result.ids) == best
    assert result.score == pytest.approx(scores[best], abs=1e-5)
    assert result.finish_reason == ("stop" if best[-1] == 4 else "length")


def test_few_beams_by_hand():
    """A table of probabilities: the best first token leads to a worse answer."""
    table = np.float32(
        np.log([
            [0.01, 0.55, 0.43, 0.01],
            [0.25, 0.25, 0.25, 0.25],
            [0.01, 0.01, 0.01, 0.97],
            [0.97, 0.01, 0.01, 0.01],
        ])
    )
    b = sabir.Builder(21)
    b.output(
        b.Gather(b.initializer("table", table), b.input("input_ids", "int64", ["batch", "sequence"])),
        "logits",
    )
    generator = sabir.TextGenerator(b.model(), engine="reference")
    assert generator.generate([0], max_new_tokens=2).ids == [1, 0]
    result = generator.generate([0], max_new_tokens=2, num_beams=2)
    assert result.ids == [2, 3]
    assert result.score == pytest.approx(np.log(0.43 * 0.97) / 2, abs=1e-5)
    # with token 1 as the end, the first beam is complete at once, and early stopping wants as many as beams
    ended = generator.generate([0], max_new_tokens=2, num_beams=1, stop=1)
    assert ended.ids == [1]
    first = generator.generate([0], max_new_tokens=6, num_beams=2, stop=1, length_penalty=0.0)
    assert (first.ids, first.finish_reason) == ([1], "stop")


def test_one_beam_is_the_greedy_choice():
    generator = sabir.TextGenerator(SMALL.decoder(), engine="reference")
    result = generator.generate([1, 2], max_new_tokens=6, num_beams=1)
    assert (result.ids, result.score) == (SMALL.greedy([1, 2], 6), None)


def test_an_interrupted_search_keeps_its_best_beam(monkeypatch):
    generator = sabir.TextGenerator(SMALL.decoder(), engine="reference")
    runs, run = [], sabir.Session.run

    def interrupted(self, feeds, *words, **options):
        runs.append(1)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return run(self, feeds, *words, **options)

    monkeypatch.setattr(sabir.Session, "run", interrupted)
    result = generator.generate([1, 2], max_new_tokens=6, num_beams=2)
    assert (len(result.ids), result.finish_reason, result.score) == (3, "interrupted", None)


# options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, "temperature must be a positive number, or 0 for no sampling; got -1"),
        ({"temperature": float("nan")}, "temperature must be a positive number"),
        ({"temperature": "hot"}, "temperature must be a positive number, or 0 for no sampling; got 'hot'"),
        ({"top_k": -1}, "top_k must be a number of tokens, or 0 for no bound; got -1"),
        ({"top_p": 0}, "top_p must be a probability above 0; got 0"),
        ({"min_p": 1.5}, "min_p must be a probability; got 1.5"),
        ({"repetition_penalty": 0}, "repetition_penalty must be a positive number"),
        ({"max_new_tokens": 2.5}, "max_new_tokens must be a number of tokens, 0 or more; got 2.5"),
        ({"num_beams": 0}, "num_beams must be a number of beams, 1 or more; got 0"),
        ({"seed": -1}, "seed must be an integer, 0 or more; got -1"),
        ({"num_beams": 2, "temperature": 0.5}, "beam search does not sample"),
        ({"stop": [1.5]}, "stop has texts and token ids; got 1.5"),
        ({"stop": ""}, "stop has texts and token ids; got ''"),
        ({"temprature": 1}, "there is no option 'temprature'; is it 'temperature'?"),
        ({"stop": "text"}, "there is no tokenizer"),
    ],
)
def test_invalid_options_are_refused(options, message):
    generator = sabir.TextGenerator(SMALL.decoder(), engine="reference")
    with pytest.raises(sabir.UnsupportedError) as raised:
        generator.generate([1], **options)
    assert message in str(raised.value)


def test_none_is_the_default():
    assert Settings().with_options({"temperature": None, "stop": None}) == Settings()
