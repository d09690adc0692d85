"""The loss of connectionist temporal classification (Graves et al., 2006), as a Scan over the time steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import FLOAT, INT64
from sabir.ir import TensorType
from sabir.training._joint import JointLoss
from sabir.training._labels import IGNORED, tensor_type_of
from sabir.training._losses import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value

_NEVER = -1e30  # the logarithm of a probability of 0: finite, as infinities have no slopes
_RANK = 3
_AXIS_1, _AXIS_2 = np.array([1], np.int64), np.array([2], np.int64)


@dataclass(frozen=True, slots=True)
class CTC(JointLoss):
    """The loss of sequences of labels that are shorter than the sequences of scores, as in speech.

    The output has logits, or logarithms of probabilities, [N,T,C]; with `time_axis` 0 it is [T,N,C]. The
    target has a sequence of labels for each sample, int64[N,S], filled up with `padding`; class `blank` is
    no label. It is minus the logarithm of the probability of all paths through T that give the labels where
    repetitions and blanks are left out, divided by the number of labels, and the mean over the samples, as
    PyTorch's CTCLoss. All T steps count unless `lengths` names a value of the model, int64[N], with the
    number of steps of each sample.

    Labels that T steps cannot have make the loss infinite; with `zero_infinity` such a sample counts 0.

    Raises UnsupportedError for a `time_axis` other than 0 and 1.

    >>> print(CTC().target(sabir.ir.tensor_type('float', ['N', 'T', 30])))
    int64[N,?]
    """

    blank: int = 0
    padding: int = IGNORED
    time_axis: int = 1
    lengths: str | None = None
    zero_infinity: bool = False

    def __post_init__(self) -> None:
        """Raise UnsupportedError for another time_axis, and a padding that is the blank."""
        if self.time_axis not in {0, 1}:
            raise UnsupportedError(f"the time_axis of CTC is 0 or 1; got {self.time_axis}")
        if self.padding == self.blank:
            raise UnsupportedError(f"the padding of CTC is no label and not the blank; both are {self.blank}")

    @property
    def others(self) -> tuple[str, ...]:
        return () if self.lengths is None else (self.lengths,)

    def target(self, output: TensorType) -> TensorType:
        if output.shape is None or len(output.shape) != _RANK:
            raise UnsupportedError(f"CTC needs scores [N,T,C], or [T,N,C]; the output is {output}")
        classes = output.shape[-1]
        if isinstance(classes, int) and not 0 <= self.blank < classes:
            raise UnsupportedError(f"the blank {self.blank} is no class of the output {output}")
        return TensorType(INT64, (output.shape[1 - self.time_axis], None))

    def build_of(self, b: Builder, values: Sequence[Value], target: Value | None) -> Value:
        if target is None:
            raise UnsupportedError("CTC compares with a target")
        scores = values[0]
        element = tensor_type_of(b, scores).element
        # float16 cannot hold the logarithms of so small probabilities
        narrow = element.dtype.itemsize < FLOAT.dtype.itemsize
        wide = b.Cast(scores, to=FLOAT.number) if narrow else scores
        loss = self._of_wide(b, wide, values[1:], target)
        return b.Cast(loss, to=element.number) if narrow else loss

    def _of_wide(self, b: Builder, scores: Value, lengths: Sequence[Value], target: Value) -> Value:
        steps_first = scores if self.time_axis == 0 else b.Transpose(scores, perm=[1, 0, 2])
        logs = b.LogSoftmax(steps_first, axis=2)
        paths = _Paths.of(b, target, self)
        emitted = _emitted(b, logs, paths.classes)
        ended = _ended(b, _walked(b, emitted, paths, lengths), paths.count)
        impossible = b.Less(ended, number(b, ended, _NEVER / 2))
        losses = b.Where(impossible, number(b, ended, 0.0 if self.zero_infinity else np.inf), b.Neg(ended))
        labels = b.CastLike(b.Max(paths.count, np.array(1, np.int64)), losses)
        return b.ReduceMean(b.Div(losses, b.Squeeze(labels, _AXIS_1)), keepdims=0)


@dataclass(frozen=True, slots=True)
class _Paths:
    """The labels with blanks around them, [N,2S+1].

    `classes` are the classes of the places, `skips` says where a path may come from two places before: from
    one label to another one. `count` is the number of labels, [N,1].
    """

    classes: Value
    skips: Value
    count: Value

    @staticmethod
    def of(b: Builder, target: Value, loss: CTC) -> _Paths:
        valid = b.Not(b.Equal(target, np.array(loss.padding, np.int64)))
        labels = b.Where(valid, target, np.array(loss.blank, np.int64))
        blanks = b.Expand(np.array(loss.blank, np.int64), b.Shape(target))
        before = b.Slice(labels, np.array([0]), np.array([-1]), np.array([1]))
        after = b.Slice(labels, np.array([1]), np.array([np.iinfo(np.int64).max]), np.array([1]))
        never = b.Expand(np.array(False), b.Shape(target))  # ruff: ignore[boolean-positional-value-in-call]  an element
        first = b.Slice(never, np.array([0]), np.array([1]), np.array([1]))
        changes = b.Concat(first, b.Not(b.Equal(before, after)), axis=1)
        count = b.ReduceSum(b.Cast(valid, to=INT64.number), _AXIS_1, keepdims=1)
        return _Paths(_interleaved(b, labels, blanks), _interleaved(b, changes, never), count)


def _interleaved(b: Builder, odd: Value, even: Value) -> Value:
    """Build [N,2S+1] of two [N,S]: `even` stands at the places 0, 2, 4, ..., and `odd` between."""
    pairs = b.Concat(b.Unsqueeze(odd, _AXIS_2), b.Unsqueeze(even, _AXIS_2), axis=2)
    first = b.Slice(even, np.array([0]), np.array([1]), np.array([1]))
    return b.Concat(first, b.Reshape(pairs, np.array([0, -1])), axis=1)


def _emitted(b: Builder, logs: Value, classes: Value) -> Value:
    """Build the logarithm of the probability of each place's class in each step, [T,N,2S+1]."""
    steps = b.Concat(b.Shape(logs, end=1), b.Shape(classes), axis=0)
    return b.GatherElements(logs, b.Expand(b.Unsqueeze(classes, np.array([0])), steps), axis=2)


def _walked(b: Builder, emitted: Value, paths: _Paths, lengths: Sequence[Value]) -> Value:
    """Build the logarithm of the probability of all paths to each place after the last step, [N,2S+1]."""
    first = b.Gather(emitted, np.array(0, np.int64), axis=0)
    rest = b.Slice(emitted, np.array([1]), np.array([np.iinfo(np.int64).max]), np.array([0]))
    never = b.Expand(number(b, first, _NEVER), b.Shape(first))
    places = b.Range(np.array(0, np.int64), b.Squeeze(b.Shape(first, start=1)), np.array(1, np.int64))
    start = b.Where(b.Less(places, np.array(2, np.int64)), first, never)
    one, two = (b.Slice(never, np.array([0]), np.array([n]), np.array([1])) for n in (1, 2))

    element = tensor_type_of(b, first).element

    def step(s: Builder) -> Value:
        present, emission = (s.input(name, str(element), ["N", "L"]) for name in ("present", "emission"))
        skipped = s.Where(paths.skips, _moved(s, two, present, 2), never)
        found = s.Add(_log_sum(s, present, _moved(s, one, present, 1), skipped), emission)
        return s.Where(s.input("runs", "bool", ["N", 1]), found, present) if lengths else found

    scanned = [rest, *(_still_running(b, rest, length) for length in lengths)]
    return b.Scan(start, *scanned, num_scan_inputs=len(scanned), body=step)


def _still_running(b: Builder, rest: Value, lengths: Value) -> Value:
    """Build whether the steps after the first belong to the samples, [T-1,N,1]."""
    count = b.Squeeze(b.Shape(rest, end=1))
    steps = b.Range(np.array(0, np.int64), count, np.array(1, np.int64))
    number_of_step = b.Unsqueeze(b.Add(steps, np.array(1, np.int64)), np.array([1, 2]))
    return b.Less(number_of_step, b.Unsqueeze(b.Cast(lengths, to=INT64.number), _AXIS_1))


def _moved(b: Builder, filling: Value, values: Value, places: int) -> Value:
    """Build values that are moved to later places."""
    return b.Concat(filling, b.Slice(values, np.array([0]), np.array([-places]), np.array([1])), axis=1)


def _log_sum(b: Builder, *logs: Value) -> Value:
    """Build the logarithm of a sum of numbers whose logarithms are given."""
    most = b.Max(*logs)
    return b.Add(most, b.Log(b.Sum(*(b.Exp(b.Sub(x, most)) for x in logs))))


def _ended(b: Builder, walked: Value, count: Value) -> Value:
    """Build the logarithm of the probability of the paths that end with the last label or a blank."""
    last = b.Mul(count, np.array(2, np.int64))
    before = b.Max(b.Sub(last, np.array(1, np.int64)), np.array(0, np.int64))
    blank, label = (b.GatherElements(walked, place, axis=1) for place in (last, before))
    some = b.Greater(count, np.array(0, np.int64))
    label = b.Where(some, label, number(b, label, _NEVER))
    return b.Squeeze(_log_sum(b, blank, label), _AXIS_1)


__all__ = ["CTC"]
