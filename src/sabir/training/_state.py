"""The state of a training session: arrays by the names of the state variables."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import FeedError, NotFoundError, quote, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sabir.ir import Array
    from sabir.training._parts import RunnablePart


class Store(NamedTuple):
    """Everything that a step changes. It is replaced as one object, so no interrupt leaves a part of it.

    `step` is how many steps were made, `epoch` how many epochs are complete, and `epoch_began` the step with
    which the next one began.
    """

    values: Mapping[str, Array]
    step: int
    epoch: int = 0
    epoch_began: int = 0

    def after(self, updates: Mapping[str, Array], *, steps: int, in_epoch: bool) -> Store:
        """Return the store after an assignment; a step outside of an epoch leaves the place in the epoch."""
        return self.moved({**self.values, **updates}, steps=steps, in_epoch=in_epoch)

    def moved(self, values: Mapping[str, Array], *, steps: int, in_epoch: bool) -> Store:
        """Return the store after steps that led to some values."""
        began = self.epoch_began + (0 if in_epoch else steps)
        return self._replace(values=values, step=self.step + steps, epoch_began=began)


class StepState:
    """A step in the making: the state as each algorithm sees it, and the store after all of them."""

    def __init__(self, store: Store, steps: int, *, in_epoch: bool) -> None:
        self._store, self._steps, self._in_epoch = store, steps, in_epoch
        self._updates: dict[str, Array] = {}
        self.values: Mapping[str, Array] = store.values

    def assign(self, updates: dict[str, Array]) -> None:
        """Let the next algorithm see what one assigned."""
        self._updates |= updates
        self.values = ChainMap(self._updates, cast("dict[str, Array]", self._store.values))

    def ended(self, part: RunnablePart, results: Mapping[str, Any]) -> Store:
        """Return the store after the last algorithm, of its results; raises EvaluationError."""
        return self._after({**self._updates, **part.assigned(results, self.values)})

    @property
    def store(self) -> Store:
        """The store with everything that is assigned."""
        return self._after(self._updates)

    def _after(self, updates: Mapping[str, Array]) -> Store:
        return self._store.after(updates, steps=self._steps, in_epoch=self._in_epoch)


class State(Mapping[str, "Array"]):
    """The state variables of a training session: copies to read, and to set in the same type and shape.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g () => (float y) <float w = {1}> { y = Neg (w) }
    ... @training {algorithm: a () => (float v) { v = Neg (w) }, update_binding: ["w": "v"]}''')
    >>> session = sabir.TrainingSession(model)
    >>> session.state['w'] = 5
    >>> print(session.run({})['y'], dict(session.state))
    -5.0 {'w': array(5., dtype=float32)}
    """

    def __init__(self, read: Callable[[], Store], write: Callable[[Store], None]) -> None:
        self._read, self._write = read, write

    def __getitem__(self, name: str) -> Array:
        """Return a copy of the value; raises NotFoundError, a KeyError, for a name of no state variable."""
        return self._present(name).copy()

    def __setitem__(self, name: str, value: Any) -> None:
        """Set the value; raises NotFoundError, and FeedError for another element type or shape."""
        self.update({name: value})

    def update(self, values: Mapping[str, Any]) -> None:
        """Set several values at once, or none of them where one does not fit; raises as for one value."""
        found = {name: _fitting(name, value, self._present(name)) for name, value in values.items()}
        store = self._read()
        self._write(store._replace(values={**dict(store.values.items()), **found}))

    def mark(self) -> Store:
        """Return everything that a step changes, as it is now, to go back to."""
        store = self._read()
        return store._replace(values={name: value.copy() for name, value in store.values.items()})

    def return_to(self, mark: Store) -> None:
        """Go back to where `mark` was called, with the number of the step and the place in the epochs."""
        self._write(mark._replace(values={name: value.copy() for name, value in mark.values.items()}))

    def __iter__(self) -> Iterator[str]:
        return iter(self._read().values)

    def __len__(self) -> int:
        return len(self._read().values)

    def __repr__(self) -> str:
        listed = ", ".join(f"{n}: {a.dtype}{list(a.shape)}" for n, a in self._read().values.items())
        return f"<State {listed or 'without variables'}>"

    def _present(self, name: str) -> Array:
        values = self._read().values
        if name not in values:
            hint = suggest(name, values) or f"; the state variables are {', '.join(map(repr, values))}"
            raise NotFoundError(f"there is no state variable {name!r}{hint}")
        return values[name]


def _fitting(name: str, value: Any, present: Array) -> Array:
    """Return a copy of a value in the type and shape of a state variable; raises FeedError."""
    array = np.asarray(value)
    wanted = f"the state variable {quote(name)} is {present.dtype}{list(present.shape)}"
    if array.shape != present.shape:
        raise FeedError(f"{wanted}, and the value has the shape {list(array.shape)}")
    if array.dtype == present.dtype:
        return array.copy()
    # what is no array has no type of its own: Python's numbers take that of the variable
    if isinstance(value, (np.ndarray, np.generic)) or not converts(array.dtype, present.dtype):
        raise FeedError(f"{wanted}, and the value is {array.dtype}; convert it with astype")
    return array.astype(present.dtype)


def converts(source: np.dtype[Any], to: np.dtype[Any]) -> bool:
    """Return whether numbers of Python may become elements of a type without a change of their kind."""
    if source.kind == "O" or to.kind == "O":
        return False
    return np.can_cast(source, to, "same_kind") or (to.kind == "V" and source.kind in "biuf")


__all__ = ["State", "StepState", "Store", "converts"]
