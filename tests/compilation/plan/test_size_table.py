"""Sizes of a plan as a table: the numbers of all of them, as substitution gives them."""

import numpy as np
import pytest

from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.plan.size_table import SizeTable
from sabir.ir import dim_max, dim_min, symbol

N, M = symbol("N"), symbol("M")
SIZES = [
    7, 0, N, M, 2 * N + 1, N * M, N * N * M - 3 * N, (N + 1) // 2, (N * M) // (M + 1), N % 5, dim_min(N, M),
    dim_max(3 * N, M + 4), 16 * ((N + 15) // 16) * M,
]  # fmt: skip


@pytest.mark.parametrize("n", [2, 3, 17, 1000])
@pytest.mark.parametrize("m", [2, 5, 640])
def test_values_are_those_of_substitution(n, m):
    table, symbols = SizeTable(), {"N": n, "M": m}
    rows = table.rows(SIZES)
    expected = [size if isinstance(size, int) else size.substitute(symbols) for size in SIZES]
    assert table.values(symbols)[rows].tolist() == expected


def test_equal_sizes_are_one_row():
    table = SizeTable()
    assert table.rows([N + 1, 2, 1 + N, 2]) == [0, 1, 0, 1]
    table.values({"N": 4})
    assert table.add(3 * N) == 2
    assert table.values({"N": 4}).tolist() == [5, 2, 12]


def test_short_groups_end_with_a_filler():
    table = SizeTable()
    rows = table.padded([[N, 2], [], [M]], 1)
    assert table.values({"N": 5, "M": 6})[rows].tolist() == [[5, 2], [1, 1], [6, 1]]
    assert table.padded([], 1).shape == (0, 0)


def test_an_unknown_symbol_is_a_mismatch():
    table = SizeTable()
    table.add(N)
    with pytest.raises(Mismatch, match="no layout"):
        table.values({"M": 1})


def test_sizes_past_64_bits_are_a_mismatch():
    table = SizeTable()
    table.add(N * N * N)
    assert table.values({"N": 1 << 20}).tolist() == [1 << 60]
    with pytest.raises(Mismatch, match="64 bits"):
        table.values({"N": np.iinfo(np.int32).max})
