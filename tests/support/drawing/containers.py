"""Programs drawn at random of kernels, sequences, optionals and control flow, whose values share memory.

Every tensor has float32 elements and three columns. The number of its rows is known to the generator, so that
each program is valid for the feeds that it names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import sabir
from sabir.ir import SequenceType, tensor_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Model, Value

COLUMNS = 3
ROWS = tensor_type("float", [None, COLUMNS])


@dataclass
class Program:
    """A program in the making: tensors with their rows, sequences with the rows of each item, optionals."""

    choose: Callable[[int], int]
    b: Any
    tensors: list[tuple[Value, int]] = field(default_factory=list)
    sequences: list[tuple[Value, list[int]]] = field(default_factory=list)
    optionals: list[tuple[Value, int]] = field(default_factory=list)
    condition: Value | None = None

    def pick(self, among):
        return among[self.choose(len(among))]

    def inner(self, b):
        """A program in a subgraph, which reads all values outside."""
        return Program(self.choose, b, [*self.tensors], [*self.sequences], [*self.optionals], self.condition)

    def step(self, depth=0):
        """Append one operation that the values so far admit."""
        usable = [*KERNELS, *KERNELS, *SOURCES]
        usable += SEQUENCES if self.sequences else []
        usable += OPTIONALS if self.optionals else []
        usable += NESTED if depth < 2 else []
        operation: Any = self.pick(usable)
        operation(self, depth) if operation in NESTED else operation(self)

    def fitting(self, rows):
        return [t for t in self.tensors if t[1] == rows]


def unary(p):
    x, rows = p.pick(p.tensors)
    op = p.pick(["Neg", "Abs", "Tanh", "Softmax", "Identity"])
    p.tensors.append((p.b.op(op, x), rows))


def binary(p):
    x, rows = p.pick(p.tensors)
    y, _ = p.pick(p.fitting(rows))
    p.tensors.append((p.b.op(p.pick(["Add", "Sub", "Max"]), x, y), rows))


def product(p):
    x, rows = p.pick(p.tensors)
    p.tensors.append((p.b.MatMul(x, np.float32([[0, 1, 0], [0.5, 0, 0.5], [1, 0, -1]])), rows))


def sliced(p):
    x, rows = p.pick(p.tensors)
    if rows > 1:
        start = p.choose(rows)
        p.tensors.append((p.b.Slice(x, [start], [rows], [0]), rows - start))


def view(p):
    x, rows = p.pick(p.tensors)
    flat = p.b.Reshape(x, [-1])
    p.tensors.append((p.b.Reshape(flat, [-1, COLUMNS]), rows))


def joined(p):
    parts = [p.pick(p.tensors) for _ in range(2)]
    if sum(rows for _, rows in parts) < 12:
        p.tensors.append((p.b.Concat(*(x for x, _ in parts), axis=0), sum(rows for _, rows in parts)))


def constructed(p):
    items = [p.pick(p.tensors) for _ in range(1 + p.choose(3))]
    p.sequences.append((p.b.SequenceConstruct(*(x for x, _ in items)), [rows for _, rows in items]))


def constructed_anew(p):
    """A sequence of values that nothing else reads, so that their memory may be used again."""
    items = [p.pick(p.tensors) for _ in range(1 + p.choose(3))]
    fresh = [p.b.op(p.pick(["Neg", "Abs", "Tanh"]), x) for x, _ in items]
    p.sequences.append((p.b.SequenceConstruct(*fresh), [rows for _, rows in items]))


def split(p):
    x, rows = p.pick(p.tensors)
    x = p.b.Neg(x) if p.choose(2) else x
    if rows % 2 == 0:
        p.sequences.append((p.b.SplitToSequence(x, np.int64(rows // 2), axis=0), [rows // 2] * 2))
    else:
        p.sequences.append((p.b.SplitToSequence(x, np.int64(1), axis=0), [1] * rows))


def wrapped(p):
    x, rows = p.pick(p.tensors)
    x = p.b.Neg(x) if p.choose(2) else x
    p.optionals.append((p.b.op("Optional", x), rows))


def inserted(p):
    s, items = p.pick(p.sequences)
    x, rows = p.pick(p.tensors)
    at = p.choose(len(items) + 1)
    p.sequences.append((p.b.SequenceInsert(s, x, np.int64(at)), [*items[:at], rows, *items[at:]]))


def erased(p):
    s, items = p.pick(p.sequences)
    if len(items) > 1:
        at = p.choose(len(items))
        p.sequences.append((p.b.SequenceErase(s, np.int64(at)), [*items[:at], *items[at + 1 :]]))


def at(p):
    s, items = p.pick(p.sequences)
    place = p.choose(len(items))
    x = p.b.SequenceAt(s, np.int64(place))
    p.tensors.append((p.b.Reshape(x, [items[place], COLUMNS]) if p.choose(2) else x, items[place]))


def concatenated(p):
    s, items = p.pick(p.sequences)
    if sum(items) < 12:
        p.tensors.append((p.b.ConcatFromSequence(s, axis=0), sum(items)))


def same_sequence(p):
    s, items = p.pick(p.sequences)
    p.sequences.append((p.b.Identity(s), items))


def mapped(p):
    s, items = p.pick(p.sequences)
    body = p.b.subgraph(lambda g: g.Neg(g.input("item", "float", [None, COLUMNS])))
    p.sequences.append((p.b.SequenceMap(s, body=body), items))


def unwrapped(p):
    o, rows = p.pick(p.optionals)
    p.tensors.append((p.b.OptionalGetElement(o), rows))


def branches(p, depth):
    rows = p.pick(p.tensors)[1]

    def branch(b):
        inner = p.inner(b)
        for _ in range(p.choose(3)):
            inner.step(depth + 1)
        x, _ = inner.pick(inner.fitting(rows))
        s = inner.b.SequenceConstruct(x, x)
        return x, s

    x, s = p.b.If(p.condition, then_branch=branch, else_branch=branch, outputs=2)
    p.tensors.append((x, rows))
    p.sequences.append((s, [rows, rows]))


def loop(p, depth):
    x, rows = p.pick(p.tensors)
    s = p.b.SequenceConstruct(x)
    turns = 1 + p.choose(3)

    def body(b):
        b.input("i", "int64", [])
        go = b.input("go", "bool", [])
        state = b.input("state", "float", [None, COLUMNS])
        grown = b.input("grown", SequenceType(ROWS))
        inner = p.inner(b)
        inner.tensors = [(state, rows), *(t for t in inner.tensors if t[1] == rows)]
        for _ in range(p.choose(3)):
            inner.step(depth + 1)
        y, _ = inner.pick(inner.fitting(rows))
        z, _ = inner.pick(inner.fitting(rows))
        return go, y, b.SequenceInsert(grown, z), b.Neg(z) if p.choose(2) else z

    last, grown, stacked = p.b.Loop(np.int64(turns), np.True_, x, s, body=body, outputs=3)
    p.tensors += [(last, rows), (p.b.Reshape(stacked, [turns * rows, COLUMNS]), turns * rows)]
    p.sequences.append((grown, [rows] * (turns + 1)))


KERNELS = [unary, binary, product, sliced, view, joined]
SOURCES = [constructed, constructed_anew, constructed_anew, split, wrapped]
SEQUENCES = [inserted, erased, at, concatenated, same_sequence, mapped, at, concatenated]
OPTIONALS = [unwrapped]
NESTED = [branches, loop]


class Drawn:
    """A program with feeds: all values of its main graph are outputs, or some of them."""

    def __init__(self, choose: Callable[[int], int]) -> None:
        self.rows = [1 + choose(4), 1 + choose(4)]
        self.model = self._model(choose)

    def _model(self, choose: Callable[[int], int]) -> Model:
        b = sabir.Builder(21)
        p = Program(choose, b)
        p.tensors = [
            (b.input(f"x{k}", "float", [f"N{k}", COLUMNS]), rows) for k, rows in enumerate(self.rows)
        ]
        p.condition = b.input("c", "bool", [])
        for _ in range(3 + choose(12)):
            p.step()
        for k, value in enumerate(dict.fromkeys(self._wanted(p, choose))):
            b.output(value, f"y{k}")
        return b.model()

    @staticmethod
    def _wanted(p: Program, choose: Callable[[int], int]) -> list[Value]:
        """Return the outputs: all values, some of them, or one of what all sequences contain in the end."""
        values = [v for v, _ in (*p.tensors, *p.sequences, *p.optionals) if v.node is not None]
        match choose(3):
            case 0:
                return values
            case 1:
                return [v for v in values if choose(3) == 0] or values[-1:]
            case _:
                parts = [p.b.ConcatFromSequence(s, axis=0) for s, _ in p.sequences]
                parts += [p.b.OptionalGetElement(o) for o, _ in p.optionals]
                return [p.b.Concat(*parts, axis=0)] if parts else values

    def feeds(self, rng: np.random.Generator) -> dict[str, Any]:
        found: dict[str, Any] = {
            f"x{k}": rng.standard_normal((rows, COLUMNS)).astype(np.float32)
            for k, rows in enumerate(self.rows)
        }
        used = {v.name for v in self.model.graph.inputs}
        return {k: v for k, v in (found | {"c": np.bool_(rng.integers(2))}).items() if k in used}
