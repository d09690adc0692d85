"""The types of what operators' behaviours take and return."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from sabir.ir import Type

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
T_co = TypeVar("T_co", covariant=True)


class Body(Protocol[T_co]):
    """A subgraph attribute, as a function of its inputs."""

    @property
    def inputs(self) -> tuple[Type | None, ...]:
        """The declared types of what it takes."""
        ...

    @property
    def outputs(self) -> tuple[Type | None, ...]:
        """The declared types of what it gives."""
        ...

    def typed(self, *inputs: Type | None) -> tuple[Type | None, ...]:
        """Return the types of what it would give on such inputs, declared or not; it is not run.

        A loop without iterations has nothing else to go by.
        """
        ...

    def __call__(self, *inputs: Any) -> tuple[T_co, ...]:
        """Apply the subgraph; outer values that it reads come along by themselves."""
        ...


BehaviourFunction: TypeAlias = Callable[..., Any]  # `infer`, `evaluate`, an adapter or a body of a version
