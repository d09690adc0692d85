"""The passes over a row of a nest with folds: the values that each computes, and keeps for later ones."""

from __future__ import annotations

from typing import NamedTuple

from sabir.compilation.backends.cpu.emit.nest import (
    ANY,
    NEXT,
    STILL,
    Accumulated,
    Apply,
    Fold,
    Load,
    Nest,
    Position,
    TakeStep,
)

_CHEAP = frozenset(["add", "sub", "mul", "neg", "abs", "cast", "where", "min", "max"])
_COSTLY = frozenset([
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "sigmoid",
    "softplus",
    "pow",
    "fmod",
    "word",
    "second_word",
])


class Passes(NamedTuple):
    """The passes of a nest. `roots` has the folds of each pass, and the values that it stores.

    `kept` maps the steps whose values later passes read from scratch memory to the pass that computes them;
    `fetched` has the steps that each pass reads so. `varies` says for each step whether it varies along the
    reduced axes.
    """

    nest: Nest
    roots: list[list[int]]
    kept: dict[int, int]
    fetched: list[list[int]]
    varies: list[bool]
    costly: bool

    def operand(self, fold: int) -> int:
        """Return the number of the step that a fold reduces."""
        step = self.nest.steps[fold]
        assert isinstance(step, Fold)  # ruff: ignore[assert]  for the type checker
        return step.operand

    def inside(self, number: int) -> list[tuple[int, int]]:
        """Return the stores of a pass inside of the loops over the reduced axes."""
        roots = self.roots[number]
        return [
            (a, n) for a, n in self.nest.stores if n in roots and _is_inside(self.nest, a, n, self.varies)
        ]

    def after(self) -> list[tuple[int, int]]:
        """Return the stores of one number for each row, which follow all passes."""
        return [(a, n) for a, n in self.nest.stores if not _is_inside(self.nest, a, n, self.varies)]


def passes_of(nest: Nest, *, keep: bool) -> Passes:
    """Return the passes of a nest; with `keep`, later passes read costly values from scratch memory."""
    varies = [False] * len(nest.steps)
    stage = [0] * len(nest.steps)
    for number, step in enumerate(nest.steps):
        varies[number] = _varies(nest, number, varies)
        stage[number] = max((stage[o] + isinstance(step, Fold) for o in _operands(nest, number)), default=0)
    folds = [n for n, step in enumerate(nest.steps) if isinstance(step, Fold)]
    stored = dict.fromkeys(value for access, value in nest.stores if _is_inside(nest, access, value, varies))
    count = 1 + max([stage[n] - 1 for n in folds] + [stage[n] for n in stored])
    roots = [
        [n for n in folds if stage[n] - 1 == number] + [n for n in stored if stage[n] == number]
        for number in range(count)
    ]
    kept: dict[int, int] = {}
    fetched: list[list[int]] = []
    for number, wanted in enumerate(roots):
        starts = [s.operand if isinstance(s := nest.steps[n], Fold) else n for n in wanted]
        fetched.append(_fetched(nest, starts, stage, varies, number) if keep else [])
        kept |= {n: stage[n] for n in fetched[-1]}
    costly = any(isinstance(s, Apply) and s.op in _COSTLY for s in nest.steps)
    return Passes(nest, roots, kept, fetched, varies, costly)


def _is_inside(nest: Nest, access: int, number: int, varies: list[bool]) -> bool:
    """Return whether a store is inside of the loops over the reduced axes."""
    if varies[number] or isinstance(nest.steps[number], Fold):
        return varies[number]
    return any(s != STILL and r for s, r in zip(nest.accesses[access].strides, nest.reduced, strict=True))


def _operands(nest: Nest, number: int) -> tuple[int, ...]:
    match step := nest.steps[number]:
        case Apply():
            return step.operands
        case Fold():
            return (step.operand,)
        case TakeStep():
            return (step.place,)
        case _:
            return ()


def _varies(nest: Nest, number: int, varies: list[bool]) -> bool:
    match step := nest.steps[number]:
        case Fold():
            return False
        case Load() | TakeStep():
            strides = nest.accesses[step.access].strides
            moves = any(s in {NEXT, ANY} and r for s, r in zip(strides, nest.reduced, strict=True))
            return moves or (isinstance(step, TakeStep) and varies[step.place])
        case Position():
            return nest.reduced[step.axis]
        case Apply():
            return any(varies[o] for o in step.operands)
        case Accumulated():
            return True
        case _:
            return False


def _fetched(nest: Nest, starts: list[int], stage: list[int], varies: list[bool], number: int) -> list[int]:
    """Return the values of earlier passes that a pass reads; cheap functions of one are recomputed."""
    found: dict[int, None] = {}
    pending, seen = list(starts), set[int]()
    while pending:
        n = pending.pop()
        if n in seen or not varies[n]:
            continue
        seen.add(n)
        step = nest.steps[n]
        operands = [o for o in _operands(nest, n) if varies[o]]
        is_cheap = isinstance(step, Apply) and step.op in _CHEAP and len(operands) <= 1
        if stage[n] < number and isinstance(step, (Apply, TakeStep)) and not is_cheap:
            found[n] = None
        else:
            pending += operands
    return sorted(found)
