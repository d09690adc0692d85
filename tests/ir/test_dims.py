"""Symbolic dimensions: the canonical form, the rules, the bounds and the caps."""

import copy
import operator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sabir.ir._dims import (
    Expr,
    add,
    ceil_div,
    dim_max,
    dim_min,
    exact_quotient,
    floor_div,
    is_nonnegative,
    known_equal,
    lower_bound,
    mod,
    mul,
    product,
    sub,
    symbol,
    total,
    trunc_div,
    upper_bound,
)

NAMES = ("H", "M", "N")
H, M, N = map(symbol, NAMES)

OPERATIONS = {
    "+": (operator.add, add),
    "-": (operator.sub, sub),
    "*": (operator.mul, mul),
    "//": (operator.floordiv, floor_div),
    "%": (operator.mod, mod),
    "min": (min, dim_min),
    "max": (max, dim_max),
}

leaves = st.one_of(st.sampled_from(NAMES), st.integers(-9, 9))
trees = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from(sorted(OPERATIONS)), inner, inner), max_leaves=10
)
polynomials = st.recursive(
    leaves, lambda inner: st.tuples(st.sampled_from("+-*"), inner, inner), max_leaves=6
)
sizes = st.fixed_dictionaries({name: st.integers(0, 12) for name in NAMES})


def build(tree):
    """Return the dimension that a tree describes."""
    if not isinstance(tree, tuple):
        return symbol(tree) if isinstance(tree, str) else tree
    return OPERATIONS[tree[0]][1](build(tree[1]), build(tree[2]))


def compute(tree, values):
    """Return what Python makes of the tree for these sizes; None where it divides by 0."""
    if not isinstance(tree, tuple):
        return values[tree] if isinstance(tree, str) else tree
    left, right = compute(tree[1], values), compute(tree[2], values)
    if left is None or right is None or (right == 0 and tree[0] in {"//", "%"}):
        return None
    return OPERATIONS[tree[0]][0](left, right)


def built(tree):
    """Return the dimension of a tree, as a known one."""
    value = build(tree)
    assume(value is not None)
    return value


def at(value, values):
    """Return a dimension's value for these sizes."""
    return value.substitute(values) if isinstance(value, Expr) else value


# ---------------------------------------------------------------- against Python's arithmetic


@given(trees, sizes)
def test_value_is_what_python_computes(tree, values):
    expected = compute(tree, values)
    assume(expected is not None)
    assert at(built(tree), values) == expected


@given(trees, sizes, sizes)
def test_substituting_step_by_step_gives_the_same(tree, values, shifts):
    expected = compute(tree, {name: values[name] + shifts[name] for name in NAMES})
    assume(expected is not None)
    moved = built(tree)
    if isinstance(moved, Expr):
        moved = moved.substitute({name: symbol(name) + shifts[name] for name in NAMES})
    assert at(moved, values) == expected


@given(trees, sizes)
def test_bounds_hold_everywhere(tree, values):
    expected = compute(tree, values)
    assume(expected is not None)
    value = built(tree)
    low, high = lower_bound(value), upper_bound(value)
    assert low is None or low <= expected
    assert high is None or expected <= high
    assert is_nonnegative(value) == (low is not None and low >= 0)


@given(trees, trees, sizes)
def test_known_equal_is_true_or_false_only_when_it_is_so_everywhere(left, right, values):
    first, second = compute(left, values), compute(right, values)
    assume(first is not None and second is not None)
    verdict = known_equal(built(left), built(right))
    assert verdict is None or verdict == (first == second)


@given(trees, trees, sizes)
def test_truncating_division_is_exact_where_it_answers(left, right, values):
    first, second = compute(left, values), compute(right, values)
    assume(first is not None and second)
    quotient = trunc_div(built(left), built(right))
    assume(quotient is not None)
    assert at(quotient, values) == (abs(first) // abs(second)) * (1 if (first < 0) == (second < 0) else -1)


@given(trees, trees, sizes)
def test_ceiling_division_rounds_up(left, right, values):
    first, second = compute(left, values), compute(right, values)
    assume(first is not None and second)
    quotient = ceil_div(built(left), built(right))
    assume(quotient is not None)
    assert at(quotient, values) == -(-first // second)


# ---------------------------------------------------------------- one form for what is equal


@given(polynomials, polynomials, polynomials)
def test_ring_axioms_hold_as_equality(x, y, z):
    a, b, c = built(x), built(y), built(z)
    pairs = [
        (add(a, b), add(b, a)),
        (mul(a, b), mul(b, a)),
        (add(add(a, b), c), add(a, add(b, c))),
        (mul(a, add(b, c)), add(mul(a, b), mul(a, c))),
        (sub(a, b), add(a, mul(-1, b))),
        (sub(a, a), 0),
    ]
    for left, right in pairs:
        assert left == right
        assert hash(left) == hash(right)
        assert str(left) == str(right)


@given(polynomials, polynomials)
def test_a_product_divides_exactly(x, y):
    a, b = built(x), built(y)
    assume(b != 0)
    whole = mul(a, b)
    assume(whole is not None)
    assert exact_quotient(whole, b) == a
    assert floor_div(whole, b) == a
    assert mod(whole, b) == 0


def test_different_expressions_differ():
    assert len({N, M, N + 1, 2 * N, N * N, N // 2, N % 2, dim_min(N, 4), dim_max(N, 4), N // 3}) == 10
    assert N != "N"
    assert N + 1 != 1


def test_constants_are_ints():
    assert type(N - N) is int
    assert type(N * 0) is int
    assert type(N // N) is int
    assert type((N + 3).substitute({"N": 4})) is int


# ---------------------------------------------------------------- the rules, by their printed form


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ((6 * N) // 2, "3*N"),
        ((2 * N * M) // N, "2*M"),
        ((24 * N) // N, "24"),
        ((2 * N + 4) // 2, "N+2"),
        ((2 * N + 5) // 2, "N+2"),
        ((4 * N + 3) // 6, "(2*N-2)//3+1"),
        ((N // 2) // 3, "N//6"),
        ((N // M) // H, "N//(H*M)"),
        ((H + 2 - 3) // 2 + 1, "(H-1)//2+1"),
        ((H + 1) // 2, "(H-1)//2+1"),
        ((H + 3) // 2, "(H-1)//2+2"),
        (((H - 1) // 2 + 1 - 1) // 2 + 1, "(H-1)//4+1"),
        (H // 2, "H//2"),
        ((N // M + 1) // 2, "(N//M-1)//2+1"),
        (-5 // (M - N), "(-5)//(M-N)"),
        ((N * N * H) // (N * M), "(H*N)//M"),
        ((-N) // 2, "-((N-1)//2)-1"),
        ((3 * N) // 2, "(3*N)//2"),
        (N // -2, "-((N-1)//2)-1"),
        ((N * M + N) // (N * H), "(M+1)//H"),
        ((N * N - M * M) // (N - M), "M+N"),
        (N // (N + 1), "0"),
        ((N + M) // M, "N//M+1"),
        (-1 // M, "-1"),
        ((N % 4) // 4, "0"),
        ((2 * N) % 2, "0"),
        ((2 * N + 3) % 2, "1"),
        ((2 * N + 3) % 4, "2*((N+1)%2)+1"),
        ((N + 31) % 32, "(N-1)%32"),
        ((3 * N) % 2, "N%2"),
        ((-N) % 4, "(-N)%4"),
        (N % -4, "-((-N)%4)"),
        ((N % 4) % 2, "N%2"),
        ((N % 3) % 2, "(N%3)%2"),
        ((N % 2) % 4, "N%2"),
        ((N * M) % (N * H), "N*(M%H)"),
        ((N * M) % M, "0"),
        (N % (N + 1), "N"),
    ],
)
def test_division_rules(value, text):
    assert str(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dim_max(N, N + 1), "N+1"),
        (dim_min(N, N + 1), "N"),
        (dim_max(N, 0), "N"),
        (dim_min(N, 0), "0"),
        (dim_max(N - 2, 0), "max(0,N-2)"),
        (dim_min(4, N), "min(N,4)"),
        (dim_min(N, N), "N"),
        (dim_min(M, dim_min(N, 4), 5), "min(M,N,4)"),
        (dim_min(N + 1, M + 1), "min(M,N)+1"),
        (dim_min(dim_min(N, M) + 1, H), "min(H,M+1,N+1)"),
        (dim_max(dim_min(N, 4), 6), "6"),
        (dim_max(N % 5, 4), "4"),
        (dim_min(7), "7"),
    ],
)
def test_minimum_and_maximum_rules(value, text):
    assert str(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (N + 1, "N+1"),
        (1 - N, "1-N"),
        (N - 1, "N-1"),
        (-N - 1, "-N-1"),
        (-N - M, "-M-N"),
        (1 + N - M, "N-M+1"),
        (N + N * N + 2 * N * M + 3, "2*M*N+N*N+N+3"),
        (-(N // 2), "-(N//2)"),
        (M - N // 2, "M-N//2"),
        (2 * (N // 2), "2*(N//2)"),
        ((N // 2) * (N % 3), "(N%3)*(N//2)"),
        ((N % 3) // M, "(N%3)//M"),
    ],
)
def test_text(value, text):
    assert str(value) == text
    assert repr(value) == f"Expr({text!r})"


@pytest.mark.parametrize(
    ("a", "b", "quotient"),
    [
        (24 * N, N, 24),
        (6 * N * M, 2 * M, 3 * N),
        (0, N, 0),
        (12, 4, 3),
        (12, 5, None),
        (N + 1, 2, None),
        (N, M, None),
        (6, N, None),
        (N, 0, None),
        (None, 2, None),
        (N, None, None),
    ],
)
def test_exact_quotient(a, b, quotient):
    result = exact_quotient(a, b)
    assert result == quotient
    assert (result is None) == (quotient is None)


# ---------------------------------------------------------------- bounds and comparison


@pytest.mark.parametrize(
    ("value", "bounds"),
    [
        (N, (0, None)),
        (2 * N + 3, (3, None)),
        (4 - N, (None, 4)),
        (N - M, (None, None)),
        ((H - 1) // 2 + 1, (0, None)),
        (N % 8, (0, 7)),
        (7 // (N + 2), (0, 3)),
        (dim_min(N, 4), (0, 4)),
        (dim_max(N - M, 4), (4, None)),
        (((H - 1) // 2) * (N % 3), (-2, None)),
        ((N % 3) * ((H - 1) // 2), (-2, None)),
        (mul(dim_max(-3, dim_min(N - M, 4)), dim_max(-5, dim_min(N - H, 2))), (-20, 15)),
        (mul((N % 3), dim_min(N - M, 4)), (None, 8)),
        (mul(dim_max(1, N - M), dim_max(2, N - H)), (2, None)),
        (mul(dim_min(N - M, -3), dim_max(2, N - H)), (None, -6)),
        (dim_min(N - M, -3) // H, (None, -1)),
        (dim_min(N, 4) % M, (0, 4)),
        (5, (5, 5)),
        (None, (None, None)),
    ],
)
def test_bounds(value, bounds):
    assert (lower_bound(value), upper_bound(value)) == bounds


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (3, 3, True),
        (3, 4, False),
        ((H + 1) // 2, (H - 1) // 2 + 1, True),
        (N, N + 1, False),
        (N, -M - 1, False),
        (dim_min(N, 4), M + 5, False),
        (2 * N, 2 * M + 1, False),
        (N, M, None),
        (N, 3, None),
        (N, None, None),
        (None, None, None),
    ],
)
def test_known_equal(a, b, verdict):
    assert known_equal(a, b) is verdict
    assert known_equal(b, a) is verdict


# ---------------------------------------------------------------- what is unknown, undefined or too large


def test_the_unknown_absorbs():
    for operation in (add, sub, mul, floor_div, mod, ceil_div, trunc_div, dim_min, dim_max):
        assert operation(None, N) is None
        assert operation(N, None) is None
    assert mul(0, None) == mul(None, 0) == product([None, 3, 0]) == 0
    assert product([N, None]) is None
    assert total([N, None]) is None
    assert product([N, 2, M]) == 2 * N * M
    assert total([N, 2, M]) == N + M + 2
    assert not is_nonnegative(None)


def test_division_by_zero():
    for operation in (floor_div, mod, ceil_div, trunc_div):
        assert operation(N, 0) is None
        assert operation(5, 0) is None
        assert operation(0, 0) is None
    with pytest.raises(ZeroDivisionError):
        _ = N // 0
    with pytest.raises(ZeroDivisionError):
        _ = N % (M - M)
    with pytest.raises(ZeroDivisionError):
        (N // M).substitute({"M": 0})


def test_other_operands_are_type_errors():
    operations: list[Any] = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
    for operation in operations:
        with pytest.raises(TypeError):
            operation(N, "1")
        with pytest.raises(TypeError):
            operation(None, N)


def test_truncation_needs_known_signs():
    assert trunc_div(N, 2) == N // 2
    assert trunc_div(-7, 2) == -3
    assert trunc_div(N - 1, 2) is None
    assert trunc_div(N, M - 1) is None


def test_coefficients_are_capped():
    assert mul(2**62, N) == 2**62 * N
    assert mul(2**62, 4 * N) is None
    assert mul(2**62, 4) is None
    assert add(2**63, 1) is None
    assert sub(-(2**63), 1) is None
    assert floor_div(2**70, 2) is None
    assert sub(N + 2**63, N - 1) is None
    with pytest.raises(OverflowError):
        _ = 2**64 * N
    with pytest.raises(OverflowError):
        _ = N + 2**64


def test_degree_is_capped():
    value = product([N] * 16)
    assert isinstance(value, Expr)
    assert mul(value, N) is None


def test_terms_are_capped():
    assert isinstance(total(symbol(f"a{i}") for i in range(64)), Expr)
    assert total(symbol(f"a{i}") for i in range(65)) is None


def test_nesting_is_capped():
    value = N
    for _ in range(16):
        value = dim_max(1, sub(value % 7, M))
    assert value is None


def test_shared_parts_do_not_grow_past_the_size_cap():
    value = N
    for step in range(3, 12):
        value = total([floor_div(add(value, M), step), mod(value, step + 20), dim_min(value, 50 * M)])
    assert value is None


def test_size_is_capped_across_terms():
    parts = [symbol(f"a{i}") // (symbol(f"b{i}") + 2) for i in range(60)]
    assert isinstance(total(parts[:40]), Expr)
    assert total(parts) is None


def test_arguments_are_capped():
    assert isinstance(dim_min(*(symbol(f"a{i}") for i in range(16))), Expr)
    assert dim_min(*(symbol(f"a{i}") for i in range(17))) is None


# ---------------------------------------------------------------- what an expression is as an object


def test_symbols():
    value = dim_min(N // (M + 1), 4 + H % 3) * symbol("batch size")
    assert value.symbols == {"N", "M", "H", "batch size"}
    assert value.substitute({"M": 1, "H": 0}).symbols == {"N", "batch size"}


def test_substitution_simplifies():
    assert ((N - 1) // 2 + 1).substitute({"N": 2 * M}) == M
    assert dim_max(0, N - 2).substitute({"N": M + 2}) == M


def test_a_symbol_needs_a_name():
    with pytest.raises(ValueError, match="name"):
        symbol("")


def test_a_copy_keeps_no_hash_of_this_process():
    value = dim_min(N // 2, M % 3) + N
    [call] = [atom for monomial in value.terms for atom in monomial if not isinstance(atom, str)]
    expected = hash(value)
    value._hash = call._hash = 1
    copied = copy.deepcopy(value)
    assert copied == value
    assert hash(copied) == expected
