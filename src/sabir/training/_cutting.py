"""How samples become batches: the size that a model fixes, and what becomes of an incomplete batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sabir.base import UnsupportedError
from sabir.evaluation import warn
from sabir.training._data import Cutting
from sabir.training._streams import Stream

if TYPE_CHECKING:
    from sabir.ir import Model
    from sabir.training._session import TrainingSession
    from sabir.training._sources import Source
    from sabir.training._step_inputs import StepInputs

_SIZE = 32  # of a batch, by default


class Choice(NamedTuple):
    """What a caller of `fit` says about batches; None: nothing."""

    size: int | None
    shuffle: bool | int
    drop_last: bool | None


def cutting_of(
    given: Choice, inputs: StepInputs, source: Source | Stream, session: TrainingSession | None
) -> Cutting:
    """Return how samples become batches; raises UnsupportedError for what the inputs contradict.

    `session` is what trains, None for a validation.
    """
    fixed, training = inputs.size, session is not None
    if fixed is None:
        # the batches of an iterable are as large as it makes them
        is_cut = not isinstance(source, Stream) or source.is_cut or not isinstance(given.shuffle, bool)
        rest = "drop" if given.drop_last and is_cut else "keep"
        return Cutting(_SIZE if given.size is None else given.size, rest, given.shuffle, training=training)
    if given.size not in {None, fixed}:
        raise UnsupportedError(
            f"the types of the inputs fix the batch at {fixed} samples, and batch is {given.size}; leave it "
            "out, or export the model with a batch of any size (sabir.set_dims can open it)"
        )
    rest, reason = _rest(given, inputs, source, session)
    return Cutting(fixed, rest, given.shuffle, is_fixed=True, training=training, reason=reason)


def _rest(
    given: Choice, inputs: StepInputs, source: Source | Stream, session: TrainingSession | None
) -> tuple[Literal["pad", "drop"], str]:
    """Return whether an incomplete batch of a fixed size is filled or left out, and why; warns of that."""
    if given.drop_last:
        return "drop", ""
    reason = None
    if not inputs.can_pad:
        reason = "the loss ignores no target"
    elif session is not None and _normalizes_batches(session.model):
        reason = "BatchNormalization would see the filling"
    if reason is None:
        return "pad", ""
    if given.drop_last is False:
        raise UnsupportedError(f"an incomplete batch of a fixed size cannot be filled: {reason}")
    count = 0 if isinstance(source, Stream) else len(source)
    left = count % (inputs.size or 1)
    if left:
        warn(
            f"the inputs fix the batch at {inputs.size} samples, so {left} of {count} samples are left out "
            f"of each {'validation' if session is None else 'epoch'}: {reason}"
        )
    return "drop", reason


def _normalizes_batches(model: Model) -> bool:
    """Return whether an algorithm of a training model computes means of whole batches."""
    graphs = [info.algorithm for info in model.training if info.algorithm is not None]
    nodes = [node for graph in graphs for node in graph.all_nodes() if node.op == "BatchNormalization"]
    modes = [node.attributes.get("training_mode") for node in nodes]
    return any(mode is not None and mode.value == 1 for mode in modes)


__all__ = ["Choice", "cutting_of"]
