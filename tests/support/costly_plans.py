"""Models of some kilobytes whose plans would take long: many kernels, many operands, functions that double, branches."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

import sabir
from support.sweep import Case

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTIONS = ("Sin", "Cos", "Exp", "Tanh", "Abs", "Neg", "Relu", "Sigmoid", "Softplus", "Atan", "Erf", "Floor")
HEAD = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>\n'
TRUE = np.ones((), bool)
X = np.linspace(0.1, 0.9, 4).astype(np.float32)
LONG = np.full(1 << 15, 0.5, np.float32)

Made = tuple[str, dict[str, Any]]


def costly_plans(wanted: Callable[[int, str], bool], first: int = 0) -> Iterator[tuple[int, Case]]:
    """Yield the cases for whose place, from `first` on, and name `wanted` holds, always in the same order."""
    for place, (name, make) in enumerate(MODELS.items(), first):
        if wanted(place, f"plan: {name}"):
            text, feeds = make()
            yield place, Case(f"plan: {name}", sabir.dumps(sabir.parse(HEAD + text)), feeds)


def _chosen(count: int, length: int) -> Iterator[tuple[str, ...]]:
    """Yield chains of functions, no two of which are equal."""
    return itertools.islice(itertools.product(FUNCTIONS, repeat=length), count)


def _applied(chain: tuple[str, ...], number: int, start: str) -> str:
    """Return the nodes of a chain; its last value is `c` and the number."""
    names = [start, *(f"t{number}_{step}" for step in range(1, len(chain))), f"c{number}"]
    return " ".join(f"{names[k + 1]} = {f} ({names[k]})" for k, f in enumerate(chain))


def _joined(operator: str, count: int) -> Made:
    return f"g (float[4] x) => (y) {{ y = {operator} ({', '.join(['x'] * count)}) }}", {"x": X}


def _chains(count: int, length: int) -> Made:
    """Chains of functions over inputs of sizes of their own."""
    body = " ".join(_applied(chain, i, f"x{i}") for i, chain in enumerate(_chosen(count, length)))
    ports = ", ".join(f"float[n{i}] x{i}" for i in range(count)), ", ".join(f"c{i}" for i in range(count))
    feeds = {f"x{i}": np.full(3 + i % 7, 0.5, np.float32) for i in range(count)}
    return f"g ({ports[0]}) => ({ports[1]}) {{ {body} }}", feeds


def _folds(count: int, size: int) -> Made:
    """Maxima of chains over one input."""
    chains = enumerate(_chosen(count, 4))
    body = " ".join(f"{_applied(chain, i, 'x')}  m{i} = ReduceMax (c{i})" for i, chain in chains)
    outputs = ", ".join(f"m{i}" for i in range(count))
    return f"g (float[N] x) => ({outputs}) {{ {body} }}", {"x": np.full(size, 0.5, np.float32)}


def _long_chain(count: int) -> Made:
    body = " ".join(f"y{i + 1} = {FUNCTIONS[i * i % 11]} (y{i})" for i in range(count))
    return f"g (float[N] y0) => (y{count}) {{ {body} }}", {"y0": X}


def _products(count: int) -> Made:
    """Products in a chain, each with another epilogue."""
    chains = enumerate(_chosen(count, 3))
    operands = ["x", *(f"c{i}" for i in range(count - 1))]
    body = " ".join(f"m{i} = MatMul ({operands[i]}, w)  {_applied(chain, i, f'm{i}')}" for i, chain in chains)
    feeds = {"x": np.eye(4, dtype=np.float32), "w": np.eye(4, dtype=np.float32)}
    return f"g (float[4,4] x, float[4,4] w) => (c{count - 1}) {{ {body} }}", feeds


def _doubling_functions(levels: int) -> Made:
    callees = ["Neg", *(f"d.F{i}" for i in range(levels - 1))]
    functions = " ".join(
        f'<domain: "d", opset_import: ["" : 21, "d" : 1]> F{i} (x) => (y) {{ a = {f} (x)  y = {f} (a) }}'
        for i, f in enumerate(callees)
    )
    return f"g (float[N] x) => (y) {{ y = d.F{levels - 1} (x) }} {functions}", {"x": X}


def _branches(count: int, x: np.ndarray) -> Made:
    """Branches one after another, each of other functions."""
    parts = [
        f"y{i + 1} = If (c) <then_branch = t () => (float[N] c{i}) {{ {_applied(chain, i, f'y{i}')} }},"
        f" else_branch = e () => (float[N] e{i}) {{ e{i} = Neg (y{i}) }}>"
        for i, chain in enumerate(_chosen(count, 4))
    ]
    return f"g (bool c, float[N] y0) => (y{count}) {{ {' '.join(parts)} }}", {"c": TRUE, "y0": x}


def _nested_branches(depth: int) -> Made:
    def body(level: int, name: str) -> str:
        if not level:
            return f"{name} = {FUNCTIONS[len(name) % 12]} (x)"
        inner = [f"{name}{letter}" for letter in "te"]
        branches = [f"{n[-1]} () => (float[N] {n}) {{ {body(level - 1, n)} }}" for n in inner]
        return f"{name} = If (c) <then_branch = {branches[0]}, else_branch = {branches[1]}>"

    return f"g (bool c, float[N] x) => (y) {{ {body(depth, 'y')} }}", {"c": TRUE, "x": X}


def _loops(count: int) -> Made:
    parts = [
        f"y{i + 1} = Loop (m, , y{i}) <body = b (int64 i, bool p, float[N] q{i}) => (bool o, float[N] c{i})"
        f" {{ o = Identity (p)  {_applied(chain, i, f'q{i}')} }}>"
        for i, chain in enumerate(_chosen(count, 4))
    ]
    return f"g (int64 m, float[N] y0) => (y{count}) {{ {' '.join(parts)} }}", {"m": np.int64(40), "y0": X}


def _slices(count: int) -> Made:
    parts = [
        f"b{i} = Constant <value_ints = [{i}]> ()  e{i} = Constant <value_ints = [{i + 3}]> ()"
        f"  t{i} = Slice (x, b{i}, e{i})"
        for i in range(count)
    ]
    joined = ", ".join(f"t{i}" for i in range(count))
    return f"g (float[N] x) => (y) {{ {' '.join(parts)} y = Concat <axis = 0> ({joined}) }}", {"x": LONG}


def _unique(count: int) -> Made:
    body = " ".join(f"y{i} = Unique (y{i - 1})" for i in range(1, count))
    return f"g (float[N] y0) => (y{count - 1}) {{ {body} }}", {"y0": X}


MODELS: dict[str, Callable[[], Made]] = {
    "a join of 3500 operands": lambda: _joined("Concat <axis = 0>", 3500),
    "a join of 60 000 operands": lambda: _joined("Concat <axis = 0>", 60_000),
    "a sum of 3000 operands": lambda: _joined("Sum", 3000),
    "400 chains": lambda: _chains(400, 4),
    "1000 chains": lambda: _chains(1000, 4),
    "400 long chains": lambda: _chains(400, 10),
    "900 folds": lambda: _folds(900, 24),
    "400 folds of many numbers": lambda: _folds(400, 1 << 18),
    "a chain of 4000 functions": lambda: _long_chain(4000),
    "a chain of 30 000 functions": lambda: _long_chain(30_000),
    "900 products": lambda: _products(900),
    "functions that double 12 times": lambda: _doubling_functions(12),
    "functions that double 15 times": lambda: _doubling_functions(15),
    "functions that double 18 times": lambda: _doubling_functions(18),
    "400 branches": lambda: _branches(400, X),
    "400 branches of many numbers": lambda: _branches(400, LONG),
    "2^8 nested branches": lambda: _nested_branches(8),
    "400 loops": lambda: _loops(400),
    "1000 slices": lambda: _slices(1000),
    "1200 calls that decide sizes": lambda: _unique(1200),
}
