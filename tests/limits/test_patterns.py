"""Regular expressions: a pattern takes bounded memory, and its matching is counted as work."""

import numpy as np
import pytest

import sabir
from sabir import Builder, Limits
from sabir.base import EvaluationError, LimitError
from support.bounds import bounded

pytestmark = pytest.mark.usefixtures("untrusted_files")

AMBIGUOUS = "(a|b)*a(a|b){%d}c"  # its automaton has 2^n states, so that RE2 walks the program at each byte
COIN = "".join("ab"[b & 1] for b in np.random.default_rng(7).bytes(20_000))


def matched(pattern, texts, **limits):
    b = Builder(20)
    b.output(b.RegexFullMatch(b.input("x", "string", ["N"]), pattern=pattern), "y")
    feeds = {"x": np.array(texts, object)}
    return sabir.evaluate(b.model(), feeds, limits=Limits.untrusted()._replace(**limits))["y"].tolist()


@pytest.mark.parametrize("inner", ["a", "a|b", "a*"])
def test_groups_in_groups_take_little_memory(inner):
    pattern = "(" * 20_000 + inner + ")" * 20_000
    with bounded(seconds=2, memory=64 << 20):
        assert matched(pattern, ["a", "aa", "c"])[::2] == [True, False]


def test_groups_beside_groups_take_little_memory():
    with bounded(seconds=3, memory=64 << 20):
        assert matched("(a)" * 13_000, ["a" * 13_000, "a"]) == [True, False]


def test_one_slow_text_is_refused():
    with bounded(seconds=1), pytest.raises(LimitError, match=r"RegexFullMatch.*work=") as caught:
        matched("|".join(f"{c}{AMBIGUOUS % 900}" for c in "abcdefghij" * 4), [COIN], seconds=2)
    assert caught.value.limit == "work"


def test_many_texts_are_counted_together():
    b = Builder(20)
    text = b.Constant(value=np.array([COIN], object))
    b.output(b.RegexFullMatch(b.Expand(text, b.Constant(value_ints=[10_000])), pattern=AMBIGUOUS % 900), "y")
    with bounded(seconds=6), pytest.raises(LimitError, match=r"RegexFullMatch.*work="):
        sabir.evaluate(b.model(), {}, limits=Limits(memory=None, work=1 << 29))


def test_time_is_looked_at_between_texts():
    with bounded(seconds=2), pytest.raises(LimitError, match="the time is up"):
        matched(AMBIGUOUS % 900, [COIN] * 100, seconds=0.5, work=None)


@pytest.mark.parametrize("pattern", [r"\pL{900}\pN", r"(\pL{100}){9}"])
def test_a_pattern_that_is_too_large_says_so(pattern):
    message = f"a pattern of {len(pattern)} characters takes more than the 8 MiB"
    with bounded(seconds=2, memory=64 << 20), pytest.raises(EvaluationError, match=message):
        matched(pattern, ["a"])


def test_a_pattern_that_counts_in_counts_is_refused():
    with bounded(seconds=2, memory=64 << 20), pytest.raises(EvaluationError, match="invalid repetition size"):
        matched("(((a{30}){30}){30}){30}", ["a"])


def test_many_patterns_keep_no_memory():
    with bounded(seconds=8, memory=256 << 20):
        for k in range(40):
            assert matched(f"(a|b)*a(a|b){{18}}c{{{k + 1}}}", [COIN]) == [False]


def test_an_ordinary_pattern_on_many_texts_is_never_refused():
    texts = [f"www.{k}.example.com" for k in range(50_000)]
    assert all(matched(r"www\.[\w.-]+\.\bcom\b", texts))


def test_a_text_that_is_no_utf_8_is_an_error():
    with pytest.raises(EvaluationError, match="RegexFullMatch"):
        matched("a", ["\udcff"])
