# ruff: file-ignore[banned-api]  the official cases are onnx's
"""The output types of the official node cases, inferred from the model alone, and why some are not known.

A shape that inference leaves open is excused by a witness: other contents of the same graph inputs, under
which the same model gives another shape. No inference from the model alone could then be right.
"""

from __future__ import annotations

import functools
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import sabir
from sabir.base import SabirError
from sabir.evaluation import Runner
from sabir.inference import Inference
from sabir.ir import OptionalType, SequenceType, TensorType

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = 16  # elements; sizes, axes and limits come in tensors of this size at most
MOST = 13  # the numbers tried in them are below
GUESSES = 3000  # random contents tried after the systematic ones


@dataclass
class Opened:
    """An output whose shape is not all numbers: where that begins, and feeds that show why."""

    case: str
    output: str
    kind: Any
    operator: str
    inputs: tuple[str, ...] = ()
    shapes: list[Any] = field(default_factory=list)
    witnesses: list[dict[str, Any]] = field(default_factory=list)  # the feeds of the shapes after the first

    @property
    def excused(self) -> bool:
        """Whether the shapes seen differ."""
        return len(self.shapes) > 1

    @property
    def tight(self) -> bool:
        """Whether the shapes seen differ at every place that is open."""
        return self.excused and not _constant(self.kind, self.shapes)

    def note(self, others: dict[str, Any], seen: Any) -> None:
        """Keep a shape that such feeds gave, where it differs at a place at which the others do not."""
        shapes = [*self.shapes, seen]
        new = seen not in self.shapes and not self.excused
        if new or _constant(self.kind, shapes) < _constant(self.kind, self.shapes):
            self.shapes = shapes
            self.witnesses.append(others)
            self.inputs = tuple(dict.fromkeys([*self.inputs, *others]))


@dataclass
class Survey:
    """What inference makes of the cases."""

    static: int = 0
    of_onnx: int = 0  # static by onnx's inference, with data propagation
    wrong: list[str] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)

    @property
    def outputs(self) -> int:
        """How many outputs all cases have."""
        return self.static + len(self.wrong) + len(self.opened)


@functools.cache
def survey() -> Survey:
    """Infer every official node case without the types that it declares for what is computed."""
    from onnx.backend.test.loader import load_node_model_tests  # ruff: ignore[import-outside-top-level]  only where it is needed

    found = Survey()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases are computed here, divisions by zero among them
        for case in load_node_model_tests():
            _infer(case, found)
    return found


def _infer(case, found: Survey) -> None:
    bare = stripped(case.model)
    found.of_onnx += _found_by_onnx(bare)
    model = sabir.loads(bare.SerializeToString())
    engine = Inference(model)
    engine.run()
    ((feeds, outputs),) = case.data_sets
    feeds = {v.name: _plain(x) for v, x in zip(model.graph.inputs, feeds, strict=True)}
    left = []
    for value, expected in zip(model.graph.outputs, outputs, strict=True):
        kind, seen = engine.types.get(value), shape_of(_plain(expected))
        if not _fits(kind, seen):
            found.wrong.append(f"{case.name}: {value.name} is {kind}, and has the shape {seen}")
        elif is_static(kind):
            found.static += 1
        else:
            left.append(Opened(case.name, value.name, kind, _origin(value, engine.types).op, (), [seen]))
    if left:
        _witness(model, feeds, left)
        found.opened += left


def stripped(proto):
    """A copy without declared types of what is computed, those inside subgraphs aside."""
    import onnx  # ruff: ignore[import-outside-top-level]  only where it is needed

    model = onnx.ModelProto()
    model.CopyFrom(proto)
    for output in model.graph.output:
        output.ClearField("type")
    del model.graph.value_info[:]
    return model


def _found_by_onnx(bare) -> int:
    """Count the outputs of which onnx's inference, with data propagation, finds all dimensions."""
    from onnx.shape_inference import infer_shapes  # ruff: ignore[import-outside-top-level]  only where it is needed

    return sum(_said_in_full(v.type) for v in infer_shapes(bare, data_prop=True).graph.output)


def _said_in_full(kind) -> bool:
    held = kind.WhichOneof("value")
    if held in {"sequence_type", "optional_type"}:
        return _said_in_full(getattr(kind, held).elem_type)
    tensor = kind.tensor_type
    return (
        held == "tensor_type"
        and tensor.HasField("shape")
        and all(d.HasField("dim_value") for d in tensor.shape.dim)
    )


def _plain(value: Any) -> Any:
    from onnx import TensorProto, numpy_helper  # ruff: ignore[import-outside-top-level]  only where it is needed

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value


# types and shapes


def is_static(kind) -> bool:
    """Whether all dimensions are numbers; those of the items of a sequence, whose length no type tells."""
    if isinstance(kind, (SequenceType, OptionalType)):
        return is_static(kind.item)
    return isinstance(kind, TensorType) and kind.is_static


def shape_of(value: Any) -> Any:
    """The shape of a tensor as a tuple, those of a sequence's items as a list, or None of nothing."""
    if value is None:
        return None
    if isinstance(value, list):
        return [shape_of(item) for item in value]
    return np.shape(value)


def _fits(kind, seen) -> bool:
    if kind is None or seen is None:
        return True
    if isinstance(kind, (SequenceType, OptionalType)):
        return all(_fits(kind.item, s) for s in (seen if isinstance(seen, list) else [seen]))
    if kind.shape is None or isinstance(seen, list):
        return kind.shape is None
    return len(kind.shape) == len(seen) and all(
        not isinstance(d, int) or d == s for d, s in zip(kind.shape, seen, strict=True)
    )


def _constant(kind, shapes) -> int:
    """Count the places that a type leaves open and that are the same in all shapes, items taken together."""
    if isinstance(kind, (SequenceType, OptionalType)):
        return _constant(kind.item, [item for s in shapes for item in (s if isinstance(s, list) else [s])])
    if kind is None or kind.shape is None:
        return int(len({s if s is None else len(s) for s in shapes}) < 2)
    return sum(not isinstance(d, int) and len({s[i] for s in shapes}) < 2 for i, d in enumerate(kind.shape))


def _origin(value, types):
    """The node at which a value's shape is lost: those of its inputs are known."""
    node = value.node
    while True:
        open_inputs = [v for v in node.inputs if v is not None and v.node and not is_static(types.get(v))]
        if not open_inputs:
            return node
        node = open_inputs[0].node


# witnesses


def _witness(model, feeds, left: list[Opened]) -> None:
    """Find feeds under which the outputs have other shapes, as many as it takes for every open place."""
    runner, waiting = Runner(model), list(left)
    kinds = {v.name: v.type for v in model.graph.inputs}
    for others in _other_feeds(feeds, kinds, zlib.crc32(left[0].case.encode())):
        try:
            with np.errstate(all="ignore"):
                results = runner.run({**feeds, **others})
        except SabirError:
            continue  # no such contents are allowed
        for output in waiting:
            output.note(others, shape_of(results[output.output]))
        waiting = [w for w in waiting if not w.tight]
        if not waiting:
            return


def _other_feeds(feeds, kinds, seed) -> Iterator[dict[str, Any]]:
    """Yield other contents of the declared types, for one input after the other and for several at once."""
    for name, x in feeds.items():
        for other in _others(x, kinds[name]):
            yield {name: other}
    yield {n: longer for n, x in feeds.items() for longer in _longer(x, kinds[n])[:1]}
    small = {n: x for n, x in feeds.items() if _is_small(x)}
    if small:
        yield from _at_once(small)
        yield from _guessed(small, np.random.default_rng(seed))


def _is_small(x) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "if" and x.size <= SMALL


def _others(x: Any, kind) -> list[Any]:
    if x is None:
        return []
    if isinstance(x, list) or not kind.is_static:
        return _longer(x, kind)
    if x.dtype.kind == "O":
        return [np.full(x.shape, text, object) for text in ("a b c d e", *x.ravel().tolist())]
    if x.dtype.kind == "b":
        return [~x, np.ones_like(x), np.zeros_like(x)]
    fills = [np.full(x.shape, number).astype(x.dtype) for number in (0, 1, 2, 3, *x.ravel()[:1])]
    return [*(_near(x) if _is_small(x) else ()), *fills, x[::-1] if x.ndim else x, x * x.dtype.type(2), -x]


def _near(x) -> Iterator[Any]:
    """Yield contents with one or two elements changed, and every small pair."""
    for i in range(x.size):
        for step in (1, -1):
            yield _with(x, (i, x.flat[i] + x.dtype.type(step)))
        for j in range(i):
            yield _with(x, (i, x.flat[j]), (j, x.flat[i]))
            yield _with(x, (i, x.flat[i] + x.dtype.type(1)), (j, x.flat[j] - x.dtype.type(1)))
    if x.size <= 2:
        yield from (np.array(p, x.dtype).reshape(x.shape) for p in product(range(MOST), repeat=x.size))


def _with(x, *changes):
    other = x.copy()
    for place, item in changes:
        other.flat[place] = item
    return other


def _longer(x, kind) -> list[Any]:
    """Other shapes for an input whose type leaves them open: of a tensor, or of a sequence's items."""
    if isinstance(kind, OptionalType):
        kind = kind.item
    if isinstance(kind, SequenceType):
        if not x:
            return [[np.zeros([1] * (kind.item.rank or 0), kind.item.element.dtype)]]
        return [[rows[i % len(rows)] for rows in map(partial(_longer, kind=kind.item), x)] for i in range(4)]
    if kind.shape is None:
        return [x[None], x.ravel()]
    return [np.concatenate([x, x], axis) for axis, d in enumerate(kind.shape) if not isinstance(d, int)] or [
        x
    ]


def _at_once(small) -> Iterator[dict[str, Any]]:
    """Yield the same change to all inputs of one size: two elements exchanged, one set to 1."""
    for size in {x.size for x in small.values()}:
        group = {n: x for n, x in small.items() if x.size == size}
        for i in range(size):
            yield {n: _with(x, (i, 1)) for n, x in group.items()}
            yield from (
                {n: _with(x, (i, x.flat[j]), (j, x.flat[i])) for n, x in group.items()} for j in range(i)
            )


def _guessed(small, draw) -> Iterator[dict[str, Any]]:
    for turn in range(GUESSES):
        chosen = {n: x for n, x in small.items() if draw.random() < 0.7} or small
        least, most = -(turn % 2), (3, 6, MOST)[turn % 3]
        yield {n: draw.integers(least, most, x.shape).astype(x.dtype) for n, x in chosen.items()}


# the page


def page(found: Survey) -> str:
    """Write the survey as the document."""
    excused = sum(o.excused for o in found.opened)
    lines = [
        HEAD.format(
            outputs=found.outputs,
            static=found.static,
            of_onnx=found.of_onnx,
            wrong=len(found.wrong),
            opened=len(found.opened),
            excused=excused,
            most=found.outputs - excused,
        ),
        *(f"| {name} | {count} |" for name, count in Counter(o.operator for o in found.opened).most_common()),
        "",
        CASES,
        *map(_row, found.opened),
    ]
    return "\n".join(lines) + "\n"


def _row(o: Opened) -> str:
    told = " ".join(map(_shown, o.shapes)) if o.excused else IMPRECISE[o.operator]
    return f"| {o.case.removeprefix('test_')} | {o.output} | {o.kind} | {o.operator} | {' '.join(o.inputs)} | {told} |"


def _shown(shape: Any) -> str:
    if shape is None:
        return "nothing"
    if isinstance(shape, list):
        return f"({' '.join(map(_shown, shape))})"
    return f"[{','.join(map(str, shape))}]"


IMPRECISE = {  # what a better inference could tell of these operators' outputs
    "SequenceEmpty": "a sequence that begins empty may hold any shape: that all it gets later have one is not seen"
}
HEAD = """# What inference leaves open

The official node cases of the installed onnx have {outputs} graph outputs. Without the types that the cases declare for what
is computed, `sabir.infer` finds all dimensions of **{static}** of them as numbers; {wrong} are wrong. (onnx's own inference, with
data propagation, finds {of_onnx}.) Of a sequence, the dimensions of its items count; no type tells its length.

The other {opened} are below. Their shapes depend on what is fed: sizes, axes or limits that are graph inputs, or the data
itself. For {excused} of them this page proves it. The same model, fed with other contents of the same types, gives another
shape: the first under *shapes seen* is the official case's own, the others come from other contents of the inputs named.
So no inference that looks at the model alone can find more than {most}. And nearly every `?` is needed: for all lines but those
of `SequenceEmpty`, the shapes seen differ at every place that is left open.

`tools/write_inference.py` writes this page; `tests/inference/test_official_shapes.py` holds it to be current, and runs the other
contents through onnx's reference evaluator, which gives the same shapes.

| where it is lost | outputs |
|---|--:|"""
CASES = """## Case by case

| case | output | inferred | lost by | decided by | shapes seen |
|---|---|---|---|---|---|"""
