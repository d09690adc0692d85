"""The types of what operators' behaviours take and return."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from sabir.ir import Builder, Graph, Shape, Type, Value

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


class Loops(Protocol):
    """What a loop leaves: the condition, the states, and what it stacked."""

    @property
    def state(self) -> tuple[Any, ...]:
        """The condition after the last iteration, and the states."""
        ...

    @property
    def stacks(self) -> tuple[Any, ...]:
        """The other outputs of all iterations, stacked."""
        ...


@runtime_checkable
class Repeatable(Protocol):
    """A subgraph that an engine may repeat by itself, faster than it is called."""

    def repeat(self, inputs: Sequence[Any], limit: int | None, *, conditional: bool) -> Loops | None:
        """Run the subgraph up to `limit` times; if `conditional`, while its first result is true.

        The inputs of the first run are its number, the condition, and the states. None is returned where the
        caller must repeat it.
        """
        ...


BehaviourFunction: TypeAlias = Callable[..., Any]  # `infer`, `evaluate`, an adapter or a body of a version


class ShapedBuilder(Builder, ABC):
    """A builder over values whose types are known as far as inference knows them.

    An operand may be a number, which becomes a scalar of the element type of the first floating-point
    operand (without one, of the first operand), or a list of integers, which becomes a 1-D int64 tensor:
    `g.Mul(d, 0.5)`, `g.Unsqueeze(d, [0])`.
    """

    @abstractmethod
    def rank(self, value: Value) -> int:
        """Return the rank of a tensor; raises UnsupportedError where it is unknown."""

    @abstractmethod
    def shape(self, value: Value) -> Shape | None:
        """Return the shape of a tensor as far as inference knows it."""

    @abstractmethod
    def sizes(self, value: Value) -> Value:
        """Return the shape of a tensor as a value: a constant where all sizes are numbers."""

    @abstractmethod
    def zeros(self, value: Value) -> Value:
        """Return zeros of the shape and type of a tensor, or of all items of a sequence or optional."""

    @abstractmethod
    def total(self, *parts: Value) -> Value:
        """Return the sum of gradients of one value: of tensors, or of sequences or optionals item by item."""

    @abstractmethod
    def fit(self, gradient: Value, value: Value, *others: Value) -> Value:
        """Undo broadcasting: sum a gradient, to whose shape `value` broadcasts, to the shape of `value`.

        If `others` are passed, the shape is that to which they and `value` broadcast: along an axis that none
        of them has, `value` was not repeated. It adds no node where the shapes are known to be equal, one
        ReduceSum where the sizes tell which axes were repeated, and otherwise finds the axes at run time,
        also where a rank is unknown.
        """


class Gradient(ShapedBuilder):
    """What a `gradient` is written with: a builder that knows the call whose gradient it builds.

    The behaviour is `gradient(g, *inputs, /, *, attributes) -> Value | tuple[Value | None, ...]`. It returns
    a gradient for each input of the operator, with the shape and the element type of that input. None means
    that no gradient passes: for an index, a shape, a condition. A subgraph attribute is passed as a graph.

    Only floating-point values have gradients. A room writes the gradients of all of its inputs; what nothing
    reads is erased later. `wants` is for a gradient that must change the forward node, or whose cost is in a
    subgraph. Every operator in a gradient, if it computes floating-point numbers from others, must have a
    gradient too, so that second derivatives exist. The nodes are of operator set 18 or later.
    """

    @property
    @abstractmethod
    def dy(self) -> Value:
        """The gradient of the first output; raises SchemaError where only other outputs have one."""

    @property
    @abstractmethod
    def dys(self) -> tuple[Value | None, ...]:
        """The gradient of each output of the call, None where nothing depends on the output."""

    @abstractmethod
    def y(self, index: int = 0) -> Value:
        """Return an output of the call; one that the node leaves out is named, so that it is computed."""

    @abstractmethod
    def ys(self, *indices: int) -> tuple[Value, ...]:
        """Return several outputs of the call, as `y` does; those that go together are named together."""

    @abstractmethod
    def wants(self, index: int) -> bool:
        """Whether the gradient of an input of the call is used."""

    # subgraphs

    @abstractmethod
    def captured(self, *bodies: Graph) -> tuple[Value, ...]:
        """Return the values that subgraphs capture and whose gradients are used."""

    @abstractmethod
    def add(self, value: Value, gradient: Value) -> None:
        """Contribute to the gradient of a captured value."""

    @abstractmethod
    def reached(self, body: Graph, sources: Iterable[Value]) -> set[Value]:
        """Return the values of a subgraph through which gradients pass to `sources`."""

    @abstractmethod
    def backward(self, body: Graph) -> "BackwardBody":
        """Return a builder of the subgraph that computes gradients of the values of `body`."""

    @abstractmethod
    def carry(
        self, bodies: Sequence[Graph], values: Sequence[Value], first: int, **attributes: Any
    ) -> tuple[Value, ...]:
        """Make values of the call's subgraphs further outputs of the call, and return these outputs.

        `first` is the index of the first of them; `attributes` are attributes of the call that change. Each
        value is copied by Identity, because onnxruntime may overwrite a value that is both an output and
        used otherwise. Another of the `bodies` outputs a value in its place: an empty one, or zeros of the
        same shape where an iteration around the call may stack it.
        """

    @abstractmethod
    def collect(self, body: Graph, values: Sequence[Value], states: int) -> tuple[Value, ...]:
        """Keep values of the body of a Loop in sequences, and return these outputs of the call.

        A sequence receives a tensor of each step, or all items of a sequence of each step. The sequences are
        further states, after the `states` that the loop has.
        """

    @abstractmethod
    def lengths(self, body: Graph, sequences: Sequence[Value]) -> tuple[Value, ...]:
        """Return new values of a subgraph: the lengths of sequences."""

    @abstractmethod
    def is_steady(self, value: Value) -> bool:
        """Whether a value of a subgraph is a tensor of one shape in all its runs, as far as known.

        A residual of a subgraph that is not run in each of them has another shape then.
        """


class Surroundings(Protocol):
    """What a behaviour `in_graph` builds with: the graph around a call, whose values it names.

    The behaviour is `in_graph(around, *inputs, /, *, attributes) -> tuple[Value | None, ...]`.
    """

    def derivatives(
        self, of: str, by: Sequence[str], constant: Sequence[str], values: Sequence[Value]
    ) -> tuple[Value | None, ...]:
        """Return the derivatives of the sum of a tensor by others, which are independent variables.

        `of`, `by` and `constant` are names of tensors of the graph; `values` has the values of those in `by`
        and `constant` at which the derivatives are taken.
        """
        ...


class BackwardBody(ShapedBuilder):
    """A builder of the subgraph that computes gradients of the values of another subgraph, the forward body.

    While it is built its nodes read values of the forward body. These are the residuals. Before the graph
    becomes an attribute, the room carries each residual out of the forward body and redirects the reads.
    """

    @abstractmethod
    def like(self, name: str, value: Value) -> Value:
        """Add an input of the type of a value."""

    @abstractmethod
    def gradients(
        self, seeds: Iterable[tuple[Value | None, Value | None]], wrt: Sequence[Value]
    ) -> list[Value | None]:
        """Return the gradients of values that the forward body reads or takes as inputs, None where zero.

        `seeds` are values of the forward body, each with its gradient; pairs with None are skipped, and the
        gradients of a value that is listed twice are added.
        """

    @abstractmethod
    def close(self, outputs: Iterable[Value]) -> None:
        """Set the outputs, erase what nothing reads, and make residuals small.

        Constants of the forward body are copied. Of a value whose shape alone is read the shape is a
        residual, not the value.
        """

    @abstractmethod
    def residuals(self) -> list[Value]:
        """Return the values of the forward body that are read, in reading order."""

    @abstractmethod
    def recompute(self, stays: Callable[[Value], bool]) -> None:
        """Compute the residuals for which `stays` is false again, from others.

        Raises UnsupportedError where that is impossible: for an input of the forward body, or random numbers.
        """

    @abstractmethod
    def first(self, build: Callable[[ShapedBuilder], Sequence[Value]]) -> Sequence[Value]:
        """Build values before all nodes of this body; they read its inputs and values around it."""

    @abstractmethod
    def redirect(self, residual: Value, value: Value) -> None:
        """Let the nodes that read a residual read another value instead."""
