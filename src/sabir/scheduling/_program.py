"""The parts of a schedule: immutable data that refers to no graph, node or value of the model.

So later edits of the model do not reach a schedule, and dropping the schedule frees the constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.base import SabirError
    from sabir.ir import Constant
    from sabir.scheduling._plan import Plan
    from sabir.scheduling._subgraph_types import SubgraphTypes
    from sabir.scheduling._values import ValueInfo
    from sabir.schema import Version

Slots: TypeAlias = tuple[int, ...]
ABSENT = 0  # the slot of an operand or a result that the node leaves out


class ScheduledCall(Protocol):
    """A node over slots, as far as a plan looks at it.

    `captures` are the slots of the outer graph that its subgraphs read. `cost` is how many nodes one call
    runs, those of functions and subgraphs included, each run of a subgraph counted once.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> program = schedule(model, STANDARD).program
    >>> call: ScheduledCall = program.calls[0]
    >>> call.cost
    1
    """

    @property
    def inputs(self) -> Slots:
        """The slots that it reads."""
        ...

    @property
    def outputs(self) -> Slots:
        """The slots that it fills."""
        ...

    @property
    def label(self) -> str:
        """The node as messages name it."""
        ...

    @property
    def captures(self) -> Slots:
        """The slots that its subgraphs read."""
        ...

    @property
    def cost(self) -> int:
        """The number of nodes that one call runs."""
        ...


class OperatorCall(NamedTuple):
    """A call of an operator version.

    `attributes` has the values of the node's attributes by name, checked against the signature; references
    are resolved, defaults are not filled in, and a graph is a `ScheduledSubgraph`. `named` says which outputs
    the node names. `problem` is why the call cannot run, because the function around it got too few inputs;
    it is "" for a call that can.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> program = schedule(model, STANDARD).program
    >>> call = program.calls[0]
    >>> str(call.version), call.inputs, call.outputs
    ('Relu:14', (1,), (2,))
    """

    version: Version
    attributes: dict[str, Any]
    inputs: Slots
    outputs: Slots
    named: tuple[bool, ...]
    label: str
    problem: str = ""
    captures: Slots = ()
    cost: int = 1


class FunctionCall(NamedTuple):
    """A call of a model-local function; operands that the call leaves out are `ABSENT` or missing.

    >>> b = sabir.Builder(21)
    >>> twice = b.function(lambda g, x: x + x, name='twice')
    >>> y = b.output(twice(b.input('x', 'float', ['N'])), 'y')
    >>> from sabir.opsets import STANDARD
    >>> call = schedule(b.model(), STANDARD).program.calls[0]
    >>> type(call).__name__, call.cost
    ('FunctionCall', 2)
    """

    function: ScheduledFunction
    inputs: Slots
    outputs: Slots
    label: str
    cost: int
    captures: Slots = ()


class InvalidCall(NamedTuple):
    """A node that cannot be called; a plan that needs it raises `error` with the node's label in front.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.graph[0].op = 'Reluu'
    >>> from sabir.opsets import STANDARD
    >>> program = schedule(model, STANDARD).program
    >>> type(program.calls[0].error).__name__
    'SchemaError'
    """

    error: SabirError
    outputs: Slots
    label: str
    inputs: Slots = ()
    captures: Slots = ()
    cost: int = 0


class Program(NamedTuple):
    """The calls of one graph, in topological order, over slots from 0 (`ABSENT`) to `size`.

    `values` are all that the graph itself defines. `captures` are the slots of outer values. `constants` has
    the initializers by slot; one of an input's slot is the input's default. `producers` has the place in
    `calls` of the call that fills a slot. Slots of the graph that no call fills (inputs, constants, captures)
    are never dead.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> from sabir.opsets import STANDARD
    >>> program = schedule(model, STANDARD).program
    >>> program.size, program.inputs[0].slot, program.outputs[0].slot
    (3, 1, 2)
    """

    name: str
    size: int
    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    values: tuple[ValueInfo, ...]
    captures: Slots
    constants: Mapping[int, Constant]
    calls: tuple[ScheduledCall, ...]
    producers: Mapping[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class ScheduledSubgraph:
    """A subgraph of a node: its program and its plan.

    `captured` are the slots of the outer program that are copied to the slots `plan.captures` of this one.
    `input_counts` is how many inputs it takes: those with a default may be left out. `types` infers the types
    of the outputs without a run; it is None where they are declared completely, and for a subgraph without
    inputs, as the branches of `If`: it runs once or not at all, so no output depends on the types of a run
    that does not take place.

    >>> b = sabir.Builder(21)
    >>> x = b.input('x', 'float', [])
    >>> y = b.If(x > 0, then_branch=lambda g: g.Neg(x), else_branch=lambda g: g.Abs(x))
    >>> from sabir.opsets import STANDARD
    >>> call = schedule(b.model(), STANDARD).program.calls[-1]
    >>> [call.label for call in call.attributes['then_branch'].program.calls]
    ["Neg with output 'neg_out'"]
    """

    program: Program
    plan: Plan
    captured: Slots
    input_counts: range
    types: SubgraphTypes | None


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ScheduledFunction:
    """The body of a function for one set of attributes and operands left out; equal calls share it.

    >>> b = sabir.Builder(21)
    >>> twice = b.function(lambda g, x: x + x, name='twice')
    >>> y = b.output(twice(b.input('x', 'float', ['N'])), 'y')
    >>> from sabir.opsets import STANDARD
    >>> call = schedule(b.model(), STANDARD).program.calls[0]
    >>> len(call.function.program.calls)
    1
    """

    program: Program
    plan: Plan
