"""What the steps of a training read: the inputs by name, and the batches that fit them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import ACCIDENTS, FeedError, listed_names, quote, suggest
from sabir.ir import TensorType
from sabir.training._parts import check_names
from sabir.training._saving import ignored_label
from sabir.training._state import converts

if TYPE_CHECKING:
    from sabir.evaluation import ModelPort
    from sabir.ir import Array
    from sabir.training._session import TrainingSession

_NUMBERS = "biufV"  # kinds of numpy's types; V has the 16-bit and smaller ones


class StepInputs:
    """The inputs of some algorithms of a session, by name.

    >>> ports = [sabir.evaluation.ModelPort('x', sabir.ir.tensor_type('float', [8, 3]))]
    >>> StepInputs(ports).size
    8
    """

    def __init__(self, ports: Iterable[ModelPort], ignored: Mapping[str, float] | None = None) -> None:
        """Take the inputs; `ignored` has what losses ignore, by the names of targets."""
        self.ports = {port.name: port for port in ports}
        self.required = [name for name, port in self.ports.items() if not port.optional]
        self.ignored = dict(ignored or {})

    @classmethod
    def of(cls, session: TrainingSession, algorithms: Sequence[int]) -> StepInputs:
        """Return the inputs of some algorithms of a session."""
        ports = [port for index in algorithms for port in session.inputs_of(index)]
        labels = {port.name: ignored_label(session.model, port.name) for port in ports}
        return cls(ports, {name: label for name, label in labels.items() if label is not None})

    @property
    def size(self) -> int | None:
        """The number of samples of a batch where the types of the inputs fix it; None where it is open.

        The first input fixes it, and the others have the same number or leave it open.
        """
        shapes = [self.ports[name].shape for name in self.required]
        firsts = [shape[0] if shape else None for shape in shapes]
        numbers = {size for size in firsts if isinstance(size, int)}
        return firsts[0] if len(numbers) == 1 and isinstance(firsts[0], int) else None

    def named(self, batch: Any) -> dict[str, Any]:
        """Return the feeds of a batch: a dict by input name, or a tuple in the order of the inputs.

        Raises FeedError for anything else.
        """
        if isinstance(batch, Mapping):
            feeds = cast("Mapping[str, Any]", batch)
            return {name: self.value(name, value) for name, value in feeds.items()}
        values: Sequence[Any] = tuple(cast("Iterable[Any]", batch)) if _is_several(batch) else (batch,)
        if len(values) != len(self.required) or not all(_is_tensor(value) for value in values):
            raise FeedError(
                f"a batch is a dict of feeds by input name, or a tuple of {listed_names(self.required)}; got "
                f"{type(batch).__name__}{f' of {len(values)}' if _is_several(batch) else ''}"
            )
        return {name: self.value(name, value) for name, value in zip(self.required, values, strict=True)}

    def value(self, name: str, value: Any) -> Any:
        """Return a value for an input as an array; raises FeedError.

        Python's numbers have no type of their own, and take that of the input.
        """
        if isinstance(value, np.ndarray):
            return cast("Array", value)
        port = self.ports.get(name)
        kind = None if port is None else port.type
        if port is not None and not isinstance(kind, TensorType):
            return value
        try:
            array = np.asarray(value)
        except ACCIDENTS as error:  # of another library, as for a tensor on another device
            raise FeedError(
                f"the values of the input {quote(name)} cannot become an array: {error}"
            ) from error
        return converted(array, kind) if isinstance(kind, TensorType) and not _is_tensor(value) else array

    def check(self, feeds: Mapping[str, Any], what: str = "the data") -> None:
        """Raise FeedError for feeds, or whole arrays, with other names, element types or shapes."""
        check_names(feeds, self.ports.values())
        missing = next((name for name in self.required if name not in feeds), None)
        if missing is not None:
            hint = suggest(missing, feeds) or f"; it has {listed_names(feeds)}"
            raise FeedError(f"{what} has no array {quote(missing)}, which the steps read{hint}")
        for name, value in feeds.items():
            kind = self.ports[name].type
            if isinstance(value, np.ndarray) and isinstance(kind, TensorType):
                _check(name, cast("Array", value), kind, what)

    def samples(self, feeds: Mapping[str, Any]) -> int:
        """Return how many samples a batch has: the most along a first axis."""
        shapes: Sequence[tuple[int, ...]] = [np.shape(value) for value in feeds.values()]
        return max((shape[0] for shape in shapes if shape), default=1)

    @property
    def can_pad(self) -> bool:
        """Whether samples can be added that count for nothing: a target may be one that is ignored."""
        return bool(self.ignored)

    def padded(self, feeds: Mapping[str, Any], size: int) -> dict[str, Any]:
        """Return a batch of `size` samples: those of `feeds`, then repetitions whose targets are ignored."""
        count = self.samples(feeds)
        places = np.arange(size) % count
        found = {name: np.asarray(value)[places] for name, value in feeds.items()}
        for name in self.ignored.keys() & found.keys():
            found[name][count:] = self.ignored[name]
        return found


def converted(array: Array, kind: TensorType) -> Array:
    """Return an array in the element type of an input where its numbers may have that, else as it is."""
    wanted = kind.element.dtype
    return array.astype(wanted) if array.dtype != wanted and converts(array.dtype, wanted) else array


def _is_several(batch: Any) -> bool:
    return isinstance(batch, (tuple, list))


def _is_tensor(value: Any) -> bool:
    """Return whether a value has an element type of its own."""
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _check(name: str, array: Array, kind: TensorType, what: str) -> None:
    """Raise FeedError for an array, one sample a row, that contradicts the type of an input."""
    found = f"{what} has {array.dtype}{list(array.shape)} for the input {quote(name)}, which is {kind}"
    wanted = kind.element.dtype
    if array.dtype != wanted and array.dtype.kind in _NUMBERS and wanted.kind in _NUMBERS:
        raise FeedError(f"{found}; convert it with .astype({wanted.name!r})")
    if kind.shape is None:
        return
    if array.ndim != len(kind.shape):
        raise FeedError(f"{found}: it must have {len(kind.shape)} axes, the first one for the samples")
    for axis, (size, dim) in enumerate(zip(array.shape[1:], kind.shape[1:], strict=True), start=1):
        if isinstance(dim, int) and size != dim:
            raise FeedError(f"{found}: axis {axis} is {size}, and must be {dim}")


__all__ = ["StepInputs", "converted"]
