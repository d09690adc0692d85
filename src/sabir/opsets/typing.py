"""The types of what operators' behaviours take and return."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from sabir.ir import Type

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
T_co = TypeVar("T_co", covariant=True)

# optional attributes that are lists
Ints: TypeAlias = Sequence[int] | None
Floats: TypeAlias = Sequence[float] | None
Strings: TypeAlias = Sequence[str] | None


class Subgraph(Protocol[T_co]):
    """A subgraph attribute, as a function of its inputs."""

    @property
    def inputs(self) -> tuple[Type | None, ...]:
        """The declared types of its inputs."""
        ...

    @property
    def outputs(self) -> tuple[Type | None, ...]:
        """The declared types of its outputs."""
        ...

    def typed(self, *inputs: Type | None) -> tuple[Type | None, ...]:
        """Return the types of the results for such inputs, whether or not they are declared; it is not run.

        A loop without iterations has no other source for them.
        """
        ...

    def __call__(self, *inputs: Any) -> tuple[T_co, ...]:
        """Apply the subgraph; it reads its captures without being passed them."""
        ...


BehaviourFunction: TypeAlias = Callable[..., Any]  # `infer`, `evaluate`, an adapter or a body of a version
