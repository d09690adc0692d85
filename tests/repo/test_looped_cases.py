"""Tests of many cases run all of them, and name each one that fails."""

import inspect

import pytest

from support import cases
from support.cases import each_of


@each_of("number, other", [pytest.param(n, n % 3, id=f"case {n}") for n in range(9)])
def check(number, other, tmp_path):
    assert other != tmp_path, f"{number} fails"


def test_the_other_arguments_are_fixtures():
    assert [*inspect.signature(check).parameters] == ["tmp_path"]
    check(tmp_path=3)


def test_all_that_fail_are_named():
    with pytest.raises(pytest.fail.Exception) as caught:
        check(tmp_path=1)
    told = str(caught.value)
    assert told.startswith("3 of 9 cases failed")
    for number in (1, 4, 7):
        assert f"  case {number}: AssertionError: {number} fails" in told
    assert "test_looped_cases.py" in told


def test_one_that_fails_alone_fails_as_itself(monkeypatch):
    monkeypatch.setattr(cases, "wanted", "case 4")
    with pytest.raises(AssertionError, match="4 fails") as caught:
        check(tmp_path=1)
    assert caught.value.__notes__ == ["in the case case 4 (`--case 'case 4'` runs it alone)"]


def test_a_name_that_no_case_has_skips(monkeypatch):
    monkeypatch.setattr(cases, "wanted", "case 10")
    with pytest.raises(pytest.skip.Exception):
        check(tmp_path=1)


def test_an_expected_error_that_does_not_come_fails_its_case_alone():
    @each_of("number", [1, 2])
    def raises(number):
        with pytest.raises(ZeroDivisionError):
            divmod(1, number - 1)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        raises()


def test_groups_are_tests():
    @each_of("number", range(6), group=lambda number: "even" if number % 2 == 0 else "odd")
    def small(number):
        assert number < 5

    (mark,) = small.pytestmark
    assert (mark.args[0], [*mark.args[1]]) == ("group", ["even", "odd"])
    small(group="even")
    with pytest.raises(AssertionError):
        small(group="odd")


def test_two_cases_of_one_name_are_refused():
    with pytest.raises(AssertionError, match="two cases are named '1'"):
        each_of("number", [1, 1])
