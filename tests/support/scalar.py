"""A second backend: each expression as plain loops over single numbers, in one thread, with nothing packed.

It shows that a target needs nothing of the first backend, and it is an oracle for its kernels: both are made
from the same expressions after the same passes. It is slow, so runs of many steps raise `Mismatch`.
"""

from __future__ import annotations

import itertools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir import loops
from sabir.base import UnsupportedError
from sabir.compilation.frontend.lowering import KEYS
from sabir.compilation.plan.entries import Mismatch
from sabir.elements import element
from sabir.ir import Expr
from sabir.loops import walk
from sabir.opsets.families.classification import supports
from sabir.opsets.families.numbers.casting import converted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.fusion.views import Copy
    from sabir.loops import Expression, Size, Sizes

MOST_STEPS = 20_000


class ScalarBackend:
    """Loops over numbers; what the interpreter would have to evaluate is no plan."""

    key = "scalar"
    threads = 1
    passes = ()

    def begin(self) -> None:
        """Nothing has to be loaded."""

    def compile(self, request):
        """The expressions as a program."""
        if request.lowered.evaluated:
            raise UnsupportedError("the scalar backend evaluates no calls")
        return ScalarProgram(request.lowered)

    def restored(self, _stored: Any, _progress: Any) -> None:
        """Nothing is stored."""


class ScalarProgram:
    """Expressions that run."""

    is_native = True

    def __init__(self, lowered: Lowered) -> None:
        self.prepared = lowered.settled()
        self.inputs = self.prepared.inputs
        self._expressions = lowered.expressions

    def fits(self, sizes: Mapping[str, int]) -> bool:
        """Whether the guards hold."""
        return all(guard.holds(sizes) for guard in self.prepared.guards)

    def run(
        self, inputs: Sequence[Any], symbols: Mapping[str, int], _run: Any, _control: Any = None
    ) -> list[Any]:
        """The outputs."""
        memory = dict(self.prepared.constants) | dict(zip(self.inputs, inputs, strict=True))
        computing = Computing(symbols, memory)
        return [
            computing(self._expressions[slot]) if slot in self._expressions else memory[slot]
            for slot in self.prepared.plan.results
        ]

    def direct(self, *_: Any) -> None:
        """No run has less to do than another."""

    def repeat(self, *_: Any, **__: Any) -> None:
        """No loop repeats itself here."""

    def portable(self) -> None:
        """Nothing is stored."""

    def stages(self):
        """The program itself."""
        yield self

    def release(self) -> None:
        """No memory is kept."""


class Computing:
    """One run: the sizes of symbols, the arrays by slot, and what was computed."""

    def __init__(self, symbols: Mapping[str, int], memory: Mapping[int, Any]) -> None:
        self._symbols, self._memory = symbols, memory
        self._steps = 0
        self._found: dict[Expression, np.ndarray] = {}

    def __call__(self, x: Expression) -> np.ndarray:
        for each in walk.postorder([x], set(self._found)):
            self._found[each] = self._computed(each)
        return self._found[x]

    def size(self, size: Size) -> int:
        """A size as a number."""
        found = size.substitute(self._symbols) if isinstance(size, Expr) else size
        if not isinstance(found, int):
            raise Mismatch(f"the size {found} is not known")
        return found

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        """A shape in numbers."""
        return tuple(map(self.size, sizes))

    def filled(self, x: Expression, at: Callable[..., Any], cost: int = 1) -> np.ndarray:
        """An array whose element at an index is what `at` returns for it."""
        shape = self.shape(x.shape)
        self._steps += math.prod(shape) * max(cost, 1)
        if self._steps > MOST_STEPS:
            raise Mismatch("too many steps for loops in Python")
        found = np.empty(shape, element(x.element).dtype)
        with np.errstate(all="ignore"):
            for index in np.ndindex(shape):
                found[index] = at(*index)
        return found

    def _computed(self, x: Expression) -> np.ndarray:
        return getattr(self, f"_{type(x).__name__.lower()}")(x)

    # ------------------------------------------------------------ leaves

    def _stored(self, x: loops.Stored) -> np.ndarray:
        if x.array is not None:
            return x.array
        if x.slot == KEYS:
            return np.arange(self.size(x.shape[0]), dtype=np.uint32)
        if x.slot in self._memory:
            return np.asarray(self._memory[x.slot])
        items = [self.size(k) if isinstance(k, Expr) else k for k in x.known or ()]
        return np.array(items, element(x.element).dtype).reshape(self.shape(x.shape))

    def _number(self, x: loops.Number) -> np.ndarray:
        return np.asarray(x.number).astype(element(x.element).dtype)

    def _extent(self, x: loops.Extent) -> np.ndarray:
        return np.asarray(self.size(x.size)).astype(element(x.element).dtype)

    def _count(self, x: loops.Count) -> np.ndarray:
        return self.filled(x, lambda *i: i[x.axis])

    # ------------------------------------------------------------ computation

    def _map(self, x: loops.Map) -> np.ndarray:
        operands, function = [self(o) for o in x.operands], _function(x)
        return self.filled(x, lambda *i: function(*(_at(o, i) for o in operands)))

    def _reduce(self, x: loops.Reduce) -> np.ndarray:
        array = self(x.operand)

        def at(*index: int) -> Any:
            ranges = [
                range(n) if a in x.axes else [i]
                for a, (n, i) in enumerate(zip(array.shape, index, strict=True))
            ]
            found = [array[place] for place in itertools.product(*ranges)]
            if x.op in {"argmax", "argmin"}:
                return _extreme(found, x.op, last=x.last)
            return _folded(x.op, found, array.dtype)

        return self.filled(x, at, math.prod(array.shape[a] for a in x.axes))

    def _cumulate(self, x: loops.Cumulate) -> np.ndarray:
        array = self(x.operand)

        def at(*index: int) -> Any:
            i, n = index[x.axis], array.shape[x.axis]
            taken = range(n - 1, i - (not x.exclusive), -1) if x.reverse else range(i + (not x.exclusive))
            return _folded(x.op, [array[_put(index, x.axis, j)] for j in taken], array.dtype)

        return self.filled(x, at, array.shape[x.axis])

    def _best(self, x: loops.Best) -> np.ndarray:
        array, count = self(x.operand), self.size(x.shape[x.axis])
        if count > array.shape[x.axis]:
            raise Mismatch("there are fewer elements")

        def at(*index: int) -> int:
            row = [array[_put(index, x.axis, j)] for j in range(array.shape[x.axis])]
            return _sorted(row, largest=x.largest)[index[x.axis]]

        return self.filled(x, at, array.shape[x.axis] ** 2)

    def _couple(self, x: loops.Couple) -> np.ndarray:
        both, classes = self(x.operand), self.size(x.shape[1])
        pairs = list(supports.pairs(classes))
        found = np.empty((len(both), classes), both.dtype)
        for n, row in enumerate(both):
            first, second = row[: len(pairs)], row[len(pairs) :]
            r = np.zeros((classes, classes))
            for (i, j), a, b in zip(pairs, first, second, strict=True):
                r[i, j], r[j, i] = a, b
            found[n] = _coupled(r, x.iterations, x.tolerance)
        return found

    def _contract(self, x: loops.Contract) -> np.ndarray:
        wide = np.int64 if x.element == "int32" else np.float64
        zeros = (0 if zero is None else self(zero).astype(wide) for zero in (x.a_zero, x.b_zero))
        operands = self(x.a), _unpacked(self(x.b), x.packs)
        a, b = (o.astype(wide) - zero for o, zero in zip(operands, zeros, strict=True))
        if x.scale is not None:
            b *= self(x.scale).astype(wide)
        if x.a_scale is not None:
            if x.packs == 2:
                halves = a.reshape(*a.shape[:-1], -1, 2, 4)
                a = halves.swapaxes(-1, -2).reshape(a.shape)
            a *= self(x.a_scale).astype(wide)
        depth = list(itertools.product(*map(range, a.shape[a.ndim - x.depth :])))
        head = len(x.shape) - x.rows - 1

        def at(*index: int) -> Any:
            batch, rows, column = index[:head], index[head:-1], index[-1]
            total = wide(0)
            for k in depth:
                total += _at_tail(a, batch, (*rows, *k)) * _at_tail(b, batch, (*k, column))
            return total.astype(np.int32) if x.element == "int32" else total

        return self.filled(x, at, len(depth))

    def _windows(self, x: loops.Windows) -> np.ndarray:
        array = self(x.operand)

        def at(*index: int) -> Any:
            place, taps = list(index[: array.ndim]), index[array.ndim :]
            for axis, tap, stride, dilation in zip(x.axes, taps, x.strides, x.dilations, strict=True):
                place[axis] = index[axis] * stride + tap * dilation
            return array[tuple(place)]

        return self.filled(x, at)

    def _slide(self, x: loops.Slide) -> np.ndarray:
        array = self(x.operand)
        taps = list(itertools.product(*map(range, array.shape[array.ndim - x.taps :])))
        if x.weights is None:
            return self.filled(
                x, lambda *i: _folded(x.op, [array[*i, *t] for t in taps], array.dtype), len(taps)
            )
        wide = np.int64 if x.element == "int32" else np.float64
        a, w = array.astype(wide) - x.zero, self(x.weights).astype(wide) - x.weights_zero

        def at(*index: int) -> Any:
            total = wide(0)
            if x.mixed == 1:
                head = index[len(index) - (w.ndim - x.taps) :]
                for t in taps:
                    total += a[*index, *t] * w[*head, *t]
            else:
                first = index[-1] - index[-1] % x.mixed
                for m in range(x.mixed):
                    for t in taps:
                        total += a[*index[:-1], first + m, *t] * w[index[-1], m, *t]
            return total.astype(np.int32) if x.element == "int32" else total

        return self.filled(x, at, len(taps) * x.mixed)

    def _filtered(self, x: loops.Filtered) -> np.ndarray:
        array, w = self(x.windows).astype(np.float64), self(x.filters).astype(np.float64)
        taps = list(itertools.product(*map(range, w.shape[2:])))
        each, channels = w.shape[0] // x.group, w.shape[1]

        def at(*index: int) -> Any:
            first = index[-1] // each * channels
            return sum(
                array[*index[:-1], first + c, *t] * w[index[-1], c, *t] for c in range(channels) for t in taps
            )

        return self.filled(x, at, len(taps) * channels)

    # ------------------------------------------------------------ views and moves

    def _permute(self, x: loops.Permute) -> np.ndarray:
        return self(x.operand).transpose(x.axes)

    def _reshape(self, x: loops.Reshape) -> np.ndarray:
        return self(x.operand).reshape(self.shape(x.shape))

    def _expand(self, x: loops.Expand) -> np.ndarray:
        return np.broadcast_to(self(x.operand), self.shape(x.shape))

    def _slice(self, x: loops.Slice) -> np.ndarray:
        array, starts = self(x.operand), self.shape(x.starts)
        return self.filled(
            x, lambda *i: array[tuple(s + n * t for s, n, t in zip(starts, i, x.steps, strict=True))]
        )

    def _copy(self, x: Copy) -> np.ndarray:
        return self(x.operand)

    def _take(self, x: loops.Take) -> np.ndarray:
        array, indices = self(x.operand), self(x.indices)
        size = array.shape[x.axis]
        if any(not -size <= i < size for i in indices.ravel().tolist()):
            raise Mismatch("an index is out of range")

        def at(*index: int) -> Any:
            place = indices[index[x.axis : x.axis + indices.ndim]]
            return array[*index[: x.axis], int(place), *index[x.axis + indices.ndim :]]

        return self.filled(x, at)

    def _scatter(self, x: loops.Scatter) -> np.ndarray:
        found, indices, updates = self(x.operand).copy(), self(x.indices), self(x.updates)
        others = zip(updates.shape, found.shape, strict=True)
        if any(m > n for a, (m, n) in enumerate(others) if a != x.axis):
            raise Mismatch("there are more updates than elements")
        size, function = found.shape[x.axis], _OPERATIONS.get(x.op)
        with np.errstate(all="ignore"):
            for index in np.ndindex(updates.shape):
                place = int(indices[index])
                if not -size <= place < size:
                    raise Mismatch("an index is out of range")
                target = _put(index, x.axis, place)
                found[target] = (
                    updates[index] if function is None else function(found[target], updates[index])
                )
        return found

    def _join(self, x: loops.Join) -> np.ndarray:
        return np.concatenate([self(p) for p in x.parts], x.axis)

    def _pad(self, x: loops.Pad) -> np.ndarray:
        array, before = self(x.operand), self.shape(x.before)
        fill = np.asarray(x.number).astype(array.dtype)

        def at(*index: int) -> Any:
            place = tuple(i - b for i, b in zip(index, before, strict=True))
            inside = all(0 <= i < n for i, n in zip(place, array.shape, strict=True))
            return array[place] if inside else fill

        return self.filled(x, at)

    # ------------------------------------------------------------ recurrences, trees, regions

    def _recur(self, x: loops.Recur) -> np.ndarray:
        body, steps = x.body, self.size(x.body.steps)
        states = [self(o) for o in x.initial]
        bound = [self(o) for o in x.bound]
        outputs: list[list[np.ndarray]] = [[] for _ in body.outputs]
        for step in range(steps):
            inner = _Step(self, body, states, bound, step)
            for kept, output in zip(outputs, body.outputs, strict=True):
                kept.append(inner(output)[0])
            states = [inner(after)[0] for after in body.after]
        if x.number < len(states):
            return states[x.number]
        found = outputs[x.number - len(states)]
        return np.stack(found[::-1] if body.backwards else found)

    def _descend(self, x: loops.Descend) -> np.ndarray:
        rows, nodes, roots, weights = (self(o) for o in (x.operand, x.nodes, x.roots, x.weights))
        first, targets = (None if o is None else self(o) for o in (x.first, x.targets))
        found = np.empty(self.shape(x.shape))
        for n, row in enumerate(rows):
            terms: list[list[float]] = [[] for _ in found[n]]
            for tree in range(x.trees):
                leaf = _leaf(row, nodes, int(roots[0, tree]), x)
                if first is None or targets is None:
                    terms[0].append(float(weights[leaf]))
                    continue
                for v in range(int(first[leaf]), int(first[leaf + 1])):
                    terms[int(targets[v])].append(float(weights[v]))
            found[n] = [_folded(x.op, t, np.dtype(np.float64)) for t in terms]
        return found

    def _matrixsteps(self, x: loops.MatrixSteps) -> np.ndarray:
        q, k, v, first = (self(o).astype(np.float64) for o in (x.queries, x.keys, x.values, x.first))
        decay, rate = (None if o is None else self(o).astype(np.float64) for o in (x.decay, x.rate))
        found = np.empty(self.shape(x.shape), element(x.element).dtype)
        _, _, steps, groups, _ = q.shape
        for n, h in np.ndindex(q.shape[:2]):
            matrix = first[n, h].copy()
            for t in range(steps):
                if decay is not None:
                    matrix *= decay[n, h, t][:, None]
                value = v[n, h, t]
                if rate is not None:
                    value = (value - k[n, h, t] @ matrix) * rate[n, h, t]
                matrix += np.outer(k[n, h, t], value)
                for g in range(groups):
                    found[n, h, t * groups + g] = q[n, h, t, g] @ matrix
            found[n, h, steps * groups :] = matrix
        return found

    def _trueplaces(self, x: loops.TruePlaces) -> np.ndarray:
        marks = self(x.operand)
        return _counted([i for i, mark in enumerate(marks) if mark], marks.size + 1)

    def _distinct(self, x: loops.Distinct) -> np.ndarray:
        values = self(x.operand).tolist()
        keys = [(v != v, 0 if v != v else v) for v in values]  # ruff: ignore[comparison-with-itself]  NaN
        order = sorted(set(keys)) if x.ascending else [*dict.fromkeys(keys)]
        rows = [
            [keys.index(key) for key in order],
            [order.index(key) for key in keys],
            [keys.count(key) for key in order],
        ]
        size = len(keys)
        return _counted(
            [row[i] if i < len(row) else 0 for row in rows for i in range(size)], 3 * size + 1, len(order)
        )

    def _suppress(self, x: loops.Suppress) -> np.ndarray:
        boxes, scores, most, overlap = (self(o) for o in (x.boxes, x.scores, x.most, x.overlap))
        least = -np.inf if x.threshold is None else self(x.threshold).item()
        found: list[list[int]] = []
        for batch, number in np.ndindex(scores.shape[:2]):
            row = scores[batch, number]
            order = [i for i in np.argsort(-row, kind="stable") if x.threshold is None or row[i] >= least]
            kept: list[int] = []
            for box in order:
                if len(kept) < most.item() and not any(
                    _shared(boxes[batch, box], boxes[batch, k], centred=x.centred) > overlap.item()
                    for k in kept
                ):
                    kept.append(int(box))
            found += [[batch, number, box] for box in kept]
        return _counted([n for row in found for n in row], self.size(x.shape[0]), len(found))

    def _poolregions(self, x: loops.PoolRegions) -> np.ndarray:
        images, counts, (rows, _) = self(x.images), self(x.counts), x.bins
        if (counts[:, 0] < 0).any():
            raise Mismatch("a region has no image")
        if x.places is None:
            pairs = counts[:, 1:].reshape(len(counts), -1, 2)
            return self.filled(
                x,
                lambda r, i, j, c: _pixels(
                    images[counts[r, 0], ..., c], x.op, pairs[r, i], pairs[r, rows + j]
                ),
            )
        places = self(x.places).astype(np.float64)

        def at(r: int, i: int, j: int, c: int) -> Any:
            down, across = (
                _samples(places[r, bin_], places[r, size - 2], int(counts[r, 1 + number]))
                for bin_, size, number in ((i, places.shape[1], 0), (rows + j, places.shape[1] + 1, 1))
            )
            found = [_sample(images[counts[r, 0], ..., c], y, z) for y in down for z in across]
            if x.op == "mean":
                return sum(map(sum, found)) / max(1, len(found))
            return max((w for sample in found for w in sample), default=0)

        return self.filled(x, at)


def _counted(items: Sequence[int], size: int, count: int | None = None) -> np.ndarray:
    """Items after their number, and zeros."""
    found = np.zeros(size, np.int64)
    found[0] = len(items) if count is None else count
    found[1 : len(items) + 1] = items
    return found


def _shared(a: np.ndarray, b: np.ndarray, *, centred: bool) -> float:
    """The intersection of two boxes over their union."""
    low, high = [], []
    for box in (a.astype(np.float32), b.astype(np.float32)):
        first, second = (box[:2] - box[2:] / 2, box[:2] + box[2:] / 2) if centred else (box[:2], box[2:])
        low.append(np.minimum(first, second) if not centred else first)
        high.append(np.maximum(first, second) if not centred else second)
    common = np.maximum(np.minimum(*high) - np.maximum(*low), np.float32(0)).prod()
    union = (high[0] - low[0]).prod() + (high[1] - low[1]).prod() - common
    return float(common / union) if common > 0 and union > 0 else 0.0


def _pixels(image: np.ndarray, op: str, rows: np.ndarray, columns: np.ndarray) -> Any:
    found = image[rows[0] : rows[1], columns[0] : columns[1]]
    if not found.size:
        return image.dtype.type(0)
    return found.max() if op == "max" else found.mean()


def _samples(begin: float, size: float, count: int) -> list[float]:
    """The places of the samples of a bin along an axis."""
    return [begin + (n + 0.5) * size / count for n in range(count)]


def _sample(image: np.ndarray, y: float, x: float) -> list[float]:
    """The four neighbours of a place times their weights; nothing for a place more than a pixel outside."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return [0.0]
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    v, u = y - top, x - left
    weights = ((1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u)
    pixels = ((top, left), (top, right), (bottom, left), (bottom, right))
    return [w * float(image[p]) for w, p in zip(weights, pixels, strict=True)]


class _Step(Computing):
    """One step of a recurrence: states and operands are those of the step, with an axis of size 1 for it."""

    def __init__(
        self, outer: Computing, body: loops.StepBody, states: Sequence[np.ndarray], bound: Sequence[np.ndarray], step: int,
    ) -> None:  # fmt: skip
        super().__init__(outer._symbols, outer._memory)
        self._by_state = dict(zip(body.states, states, strict=True))
        self._operands, self._number, self._count = bound, step, outer.size(body.steps)

    def shape(self, sizes: Sizes) -> tuple[int, ...]:
        found = super().shape(sizes)
        return (1, *found[1:]) if len(found) > 2 else found

    def _stepstate(self, x: loops.StepState) -> np.ndarray:
        return self._by_state[x][None]

    def _stepoperand(self, x: loops.StepOperand) -> np.ndarray:
        array = np.asarray(self._operands[x.number])
        if array.ndim < 3:
            return array
        place: Any = self._number if array.shape[0] != 1 else 0
        return array[[place]]


# ---------------------------------------------------------------- scalars


def _at(array: np.ndarray, index: tuple[int, ...]) -> Any:
    """The element that broadcasts to an index."""
    tail = index[len(index) - array.ndim :]
    return array[tuple(0 if n == 1 else i for n, i in zip(array.shape, tail, strict=True))]


def _unpacked(b: np.ndarray, packs: int) -> np.ndarray:
    """The integers of a matrix of bytes, each of which has `packs` of them along the rows."""
    if packs == 1:
        return b
    bits = 8 // packs
    fields = np.stack([b >> bits * n & (1 << bits) - 1 for n in range(packs)], axis=-2)
    return fields.reshape(*b.shape[:-2], b.shape[-2] * packs, b.shape[-1])


def _at_tail(array: np.ndarray, batch: tuple[int, ...], tail: tuple[int, ...]) -> Any:
    head = array.ndim - len(tail)
    own = batch[len(batch) - head :]
    return array[*(0 if n == 1 else i for n, i in zip(array.shape, own, strict=False)), *tail]


def _put(index: tuple[int, ...], axis: int, place: int) -> tuple[int, ...]:
    return (*index[:axis], place, *index[axis + 1 :])


def _folded(op: str, values: Sequence[Any], dtype: np.dtype) -> Any:
    start = {"sum": 0, "prod": 1}.get(op)
    if start is None:
        low = op == "max"
        if dtype.kind == "f":
            start = -math.inf if low else math.inf
        elif dtype.kind == "b":
            start = not low
        else:
            start = np.iinfo(dtype).min if low else np.iinfo(dtype).max
    name = {"sum": "add", "prod": "mul"}.get(op, op)
    wide = np.dtype(np.float64) if dtype.kind == "f" else dtype
    total = wide.type(start)
    for value in values:
        total = _OPERATIONS[name](total, wide.type(value))
    return total


def _precedes(a: Any, b: Any, *, largest: bool) -> bool:
    """Whether a number comes before another; NaN is the largest."""
    if np.isnan(a) or np.isnan(b):
        return bool(np.isnan(a) and not np.isnan(b)) if largest else bool(np.isnan(b) and not np.isnan(a))
    return bool(a > b) if largest else bool(a < b)


def _sorted(row: Sequence[Any], *, largest: bool) -> list[int]:
    order: list[int] = []
    for i, value in enumerate(row):
        place = next(
            (n for n, j in enumerate(order) if _precedes(value, row[j], largest=largest)), len(order)
        )
        order.insert(place, i)
    return order


def _extreme(values: Sequence[Any], op: str, *, last: bool) -> int:
    """The index of the first, or last, extreme; NaN is one."""
    best = 0
    for i, value in enumerate(values[1:], 1):
        new, old = np.isnan(value), np.isnan(values[best])
        if old:
            if last and new:
                best = i
        elif (
            new
            or (value > values[best] if op == "argmax" else value < values[best])
            or (last and value == values[best])
        ):
            best = i
    return best


def _coupled(r: np.ndarray, iterations: int, tolerance: float) -> np.ndarray:
    """The probabilities after Wu, Lin and Weng (2004), algorithm 2."""
    n = len(r)
    q = -r * r.T
    for i in range(n):
        q[i, i] = sum(r[j, i] ** 2 for j in range(n) if j != i)
    p = np.full(n, 1 / n)
    for _ in range(iterations):
        rest = q @ p
        total = p @ rest
        if np.abs(rest - total).max() < tolerance:
            break
        for t in range(n):
            step = (total - rest[t]) / q[t, t]
            p[t] += step
            total = (total + step * (step * q[t, t] + 2 * rest[t])) / (1 + step) ** 2
            rest = (rest + step * q[t]) / (1 + step)
            p /= 1 + step
    return p


def _leaf(row: np.ndarray, nodes: np.ndarray, place: int, x: loops.Descend) -> int:
    """The node at which a row stays."""
    width = nodes.dtype.itemsize * 8
    for _ in range(len(nodes)):
        threshold, word = _node(nodes, place)
        target, feature = word >> x.bits, (word & (1 << x.bits) - 1) >> 3
        if target == place and threshold == (1 << width) - 1:
            return place
        place = target + (int(row[feature]) > threshold)
    return place


def _node(nodes: np.ndarray, place: int) -> tuple[int, int]:
    """The threshold of a node, and the word with its successor and its feature."""
    pair = nodes.reshape(-1, 2)[place]
    return int(pair[0]), int(pair[1])


def _order(x: Any) -> Any:
    """The bits of a float in an order of unsigned integers: -0 is 0, and NaN the largest."""
    kind = np.uint32 if x.dtype.itemsize == 4 else np.uint64
    if np.isnan(x):
        return kind(np.iinfo(kind).max)
    bits = int((x + x.dtype.type(0)).view(kind))
    top = 1 << (x.dtype.itemsize * 8 - 1)
    return kind((~bits & (2 * top - 1)) if bits & top else bits | top)


def _divide(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        return a / b
    if b == 0:
        return a.dtype.type(0)
    quotient = abs(int(a)) // abs(int(b))
    return np.asarray(quotient if (a < 0) == (b < 0) else -quotient).astype(a.dtype)[()]


def _power(a: Any, b: Any) -> Any:
    if a.dtype.kind == "f":
        try:  # numpy takes square roots for an exponent of 0.5, whose zeros have another sign
            return a.dtype.type(math.pow(a, b))
        except ValueError:
            return a.dtype.type(math.inf if a == 0 else math.nan) * (np.copysign(1, a) if b % 2 == 1 else 1)
        except OverflowError:
            return a.dtype.type(-math.inf if a < 0 and b % 2 == 1 else math.inf)
    return np.asarray(pow(int(a), int(b)) & (1 << 64) - 1, np.uint64).astype(a.dtype)


def _shifted(a: Any, b: Any, *, left: bool) -> Any:
    bits, count = a.dtype.itemsize * 8, int(b)
    if not 0 <= count < bits:
        return a.dtype.type(-1 if not left and a < 0 else 0)
    return a << a.dtype.type(count) if left else a >> a.dtype.type(count)


def _fused(a: Any, b: Any, c: Any) -> Any:
    return a * b + c if a.dtype.kind != "f" else a.dtype.type(np.float64(a) * np.float64(b) + np.float64(c))


def _in_double(function: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: x.dtype.type(function(np.float64(x)))


def _rotated(x: int, count: int) -> int:
    return (x << count | x >> 32 - count) & 0xFFFFFFFF


_WORDS = loops.WordArithmetic(lambda a, b: a + b & 0xFFFFFFFF, operator.xor, _rotated)


def _word(number: int) -> Callable[..., int]:
    return lambda x, y, a, b: loops.threefry(_WORDS, (int(x), int(y)), (int(a), int(b)))[number]


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "not": np.logical_not, "bitwise_not": np.invert,
    "isnan": np.isnan, "isinf_pos": lambda x: x == math.inf, "isinf_neg": lambda x: x == -math.inf,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "nearest": lambda x: np.int32(np.rint(x)),
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: x.dtype.type(1) / x,
    "erf": _in_double(math.erf), "sigmoid": _in_double(lambda x: 1 / (1 + np.exp(-x))),
    "softplus": _in_double(lambda x: np.logaddexp(0, x)), "order": _order,
    **{n: _in_double(getattr(np, n)) for n in (
        "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    )},
    **{f"a{n}": _in_double(getattr(np, f"arc{n}")) for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "mod": np.mod, "fmod": np.fmod,
    "min": np.minimum, "max": np.maximum, "pow": _power, "eq": np.equal, "ne": np.not_equal, "lt": np.less,
    "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "and": np.logical_and, "or": np.logical_or,
    "xor": np.logical_xor, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "shl": lambda a, b: _shifted(a, b, left=True), "shr": lambda a, b: _shifted(a, b, left=False),
    "where": lambda c, a, b: a if c else b, "fma": _fused, "word": _word(0), "second_word": _word(1),
}  # fmt: skip


def _function(x: loops.Map) -> Callable[..., Any]:
    """The scalar function of a map."""
    if x.op == "cast":
        to = element(x.element)
        return lambda value: converted(np.asarray(value), to, saturate=False)[()]
    if x.op == "bits":
        return lambda value: np.asarray(value).view(element(x.element).dtype)[()]
    return _OPERATIONS[x.op]
