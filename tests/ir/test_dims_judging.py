"""Whether sizes may be as a call needs them, for all runs and for the sizes of one."""

import pytest

from sabir.ir import above_one, judging, known_equal, may_be_at_most, may_be_equal, symbol

N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize(
    ("a", "b", "equal", "at_most"),
    [
        (2, 2, True, True),
        (2, 3, False, True),
        (3, 2, False, False),
        (N, N, True, True),
        (N, M, True, True),
        (N, 3, True, True),
        (N + 1, N, False, False),
        (N, N + 1, False, True),
        (2 * N, 3, False, True),
        (None, 3, True, True),
        (N, None, True, True),
    ],
)
def test_without_a_judge_only_what_is_certain_is_refused(a, b, equal, at_most):
    assert may_be_equal(a, b) is equal
    assert may_be_at_most(a, b) is at_most


def test_a_judge_decides_what_is_not_certain():
    asked = []

    def judge(op, a, b):
        asked.append((op, a, b))
        return False

    with judging(judge):
        assert not may_be_equal(N, M)
        assert not may_be_at_most(N, 3)
        assert may_be_equal(N, N)
        assert not may_be_equal(N, N + 1)
        assert may_be_at_most(N, N + 1)
        assert may_be_equal(N, None)
        assert may_be_at_most(None, 2)
    assert asked == [("equal", N, M), ("max", 3, N)]
    assert may_be_equal(N, M)


def test_a_size_above_one_is_not_equal_to_one_or_less():
    assert known_equal(N, 1) is None
    with above_one({"n"}):
        assert known_equal(N, 1) is False
        assert known_equal(0, N) is False
        assert known_equal(N, 2) is None
        assert known_equal(M, 1) is None
