"""A share of the awkward calls: examples of all operators with odd sizes, contents and attributes, on both engines.

`tools/sweep.py --awkward N` runs N of them; their tensors are beside pages that nobody may touch.
"""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.awkward import CALLED, READS, awkward_call
from support.differences import difference

TOOL = Path(__file__).parents[2] / "tools" / "sweep.py"
COUNT = 1500


@pytest.mark.skipif(sys.platform != "linux", reason="it guards pages, and reads its memory from /proc")
def test_the_engines_agree_on_awkward_calls():
    # ruff: ignore[subprocess-without-shell-equals-true]  our own program
    done = subprocess.run(
        [sys.executable, str(TOOL), "--awkward", str(COUNT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {end: int(number) for number, end in re.findall(r"(\d+) ((?:models|runs) [a-z ]+)", done.stdout)}
    assert f"{COUNT} models, 0 failures" in done.stdout
    assert counts["models with kernels"] > COUNT / 2
    assert counts["runs that end in an error"] > COUNT / 10
    assert counts["runs that end in an error"] + counts["runs with results"] == COUNT


def test_a_number_always_makes_the_same_call():
    for number in range(0, 3 * len(CALLED), 7):
        first, second = awkward_call(number), awkward_call(number)
        assert first.name == second.name
        assert not difference([*first.feeds.values()], [*second.feeds.values()])


def test_calls_of_all_operators_are_changed_and_read_in_all_ways():
    names = [awkward_call(number).name for number in range(4 * len(CALLED))]
    for operator in CALLED:
        calls = [name for name in names if f" {operator.domain}.{operator.name}-" in name]
        assert len(calls) == 4
    for way in (*(read for read, _ in READS), "constant", "computed", "element", "sizes", "is ["):
        assert any(way in name for name in names), way


@pytest.mark.parametrize(
    ("ours", "theirs", "part"),
    [
        ([np.float32([1, 2])], [np.float32([1, 2.5])], "output 0"),
        ([np.float32([1, 2])], [np.float64([1, 2])], "float32[2], and not float64[2]"),
        ([np.float32([1, 2])], [np.float32([1])], "float32[2], and not float32[1]"),
        ([np.float32([np.nan])], [np.float32([np.inf])], "nan"),
        ([np.int64([1])], "EvaluationError: no", "'outputs', and not 'EvaluationError: no'"),
        ("EvaluationError: yes", "EvaluationError: no", "yes"),
        ([[np.int64(1)]], [[np.int64(2)]], "output 0"),
        ([{"a": 1}], [{"b": 1}], "the keys"),
        ([None], [np.int64(2)], "None"),
        ([], [np.int64(2)], "0 outputs"),
    ],
)
def test_a_difference_is_described(ours, theirs, part):
    assert part in difference(ours, theirs)
    assert not difference(ours, ours)


def test_rounding_is_no_difference():
    x, y = np.array([1e-9, 1000], np.float32), np.array([2e-9, 1000.001], np.float32)
    assert not difference([x], [y])
    assert difference([x[:1]], [y[:1]])
    assert not difference([x[:1]], [y[:1]], 1000.0)
    assert not difference([x], [y + 5], None)
