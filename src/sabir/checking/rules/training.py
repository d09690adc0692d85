"""Training: the graphs of a TrainingInfo, and the bindings of their outputs to state variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.checking._examples import RELU, X, Y, in_model
from sabir.checking._rule import Problem, Textproto, rule
from sabir.ir import SparseTensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sabir.base import Location
    from sabir.checking._survey import Survey, TrainingSite
    from sabir.ir import Graph, Value

_COMBINED = "An algorithm is run as one graph with the main graph, and the two together are a valid graph."
_W = 'initializer { name: "w" dims: 1 data_type: 1 float_data: 1 }'
_MAIN = f'graph {{ name: "g" {RELU} {X} {Y} {_W} }}'
_SCALAR = "type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } }"
_INITIALIZATION = (
    'initialization { name: "i" node { op_type: "Constant" output: "w0" attribute { name: "value"'
    f' type: TENSOR t {{ dims: 1 data_type: 1 float_data: 0 }} }} }} output {{ name: "w0" {_SCALAR} }} }}'
)


def _training(*infos: str) -> Textproto:
    """Return an example whose main graph has the initializer w."""
    return in_model(f"{_MAIN} {' '.join(f'training_info {{ {info} }}' for info in infos)}")


def _algorithm(output: str = "w2") -> str:
    return (
        'algorithm { name: "a" initializer { name: "v" dims: 1 data_type: 1 float_data: 1 }'
        f' node {{ op_type: "Add" input: "w" input: "v" output: "{output}" }}'
        f' output {{ name: "{output}" {_SCALAR} }} }}'
    )


def _starts(key: str, value: str) -> str:
    return f'initialization_binding {{ key: "{key}" value: "{value}" }}'


def _updates(key: str, value: str) -> str:
    return f'update_binding {{ key: "{key}" value: "{value}" }}'


_GOOD = (
    _training(
        f"{_INITIALIZATION} {_algorithm()} {_starts('w', 'w0')} {_starts('v', 'w0')} {_updates('w', 'w2')}"
        f" {_updates('v', 'y')}"
    ),
    _training(f"{_algorithm()} {_updates('w', 'w2')}"),
)


def _bindings(site: TrainingSite) -> Iterator[tuple[Location, Value, Value, bool]]:
    """Yield each binding (key, value) with its location, and whether it is an update."""
    training = site.training
    for field, pairs in (
        ("initialization_binding", training.initialization_binding),
        ("update_binding", training.update_binding),
    ):
        for index, (key, value) in enumerate(pairs):
            where = site.where.at(field, index=index, name=key.name)
            yield where, key, value, field == "update_binding"


def _outputs(*graphs: Graph | None) -> set[Value | None]:
    """Return the outputs of graphs."""
    return {v for graph in graphs if graph is not None for v in graph.outputs}


@rule(
    "TRAIN001",
    "Each name specified as a key in the binding MUST be the name of an initializer that appears in the main"
    " inference-graph (i.e., in ModelProto.graph.initializer) or the name of an initializer that appears in"
    " TrainingInfoProto.algorithm.initializer.",
    source="ir-with-training.txt",
    over="training",
    since=7,
    bad=(
        _training(f"{_INITIALIZATION} {_starts('ghost', 'w0')}"),
        _training(f"{_algorithm()} {_updates('x', 'w2')}"),
        in_model(
            f'graph {{ name: "g" {RELU} {X} {Y} {_W} sparse_initializer {{ values {{ name: "s" dims: 1'
            " data_type: 1 float_data: 1 } indices { dims: 1 data_type: 7 int64_data: 0 } dims: 1 } }"
            f" training_info {{ {_algorithm()} {_updates('s', 'w2')} }}"
        ),
    ),
    good=_GOOD,
)
def keys_are_state(site: TrainingSite) -> Iterator[Problem]:
    """A key is a dense initializer of the main graph, or of the algorithm of the same TrainingInfo."""
    algorithm = site.training.algorithm
    state = {**site.model.graph.initializers, **(algorithm.initializers if algorithm is not None else {})}
    for where, key, _, _ in _bindings(site):
        if key not in state:
            yield Problem(
                f"{quote(key.name)} is not an initializer of the main graph or of the algorithm", where
            )
        elif isinstance(state[key], SparseTensor):
            yield Problem(
                f"{quote(key.name)} is a sparse initializer, which is not in the field `initializer`",
                where,
                "make it a dense initializer",
            )


@rule(
    "TRAIN002",
    "Each name specified as a value in the binding MUST be the name of an output of the"
    " TrainingInfoProto.initialization graph.",
    source="ir-with-training.txt",
    over="training",
    since=7,
    bad=(
        _training(f"{_INITIALIZATION} {_starts('w', 'ghost')}"),
        _training(f"{_INITIALIZATION} {_starts('w', 'y')}"),
        _training(f"{_algorithm()} {_updates('w', 'v')}"),
    ),
    good=_GOOD,
)
def values_are_outputs(site: TrainingSite) -> Iterator[Problem]:
    """A value is an output of the initialization; for an update, of the algorithm or the main graph."""
    training = site.training
    started, updated = _outputs(training.initialization), _outputs(training.algorithm, site.model.graph)
    for where, _, value, is_update in _bindings(site):
        if is_update:
            if training.algorithm is not None and value not in updated:
                yield Problem(
                    f"{quote(value.name)} is not an output of the algorithm or of the main graph", where
                )
        elif training.initialization is not None and value not in started:
            yield Problem(f"{quote(value.name)} is not an output of the initialization", where)


@rule(
    "TRAIN003",
    "Key values specified in the repeated initialization_binding field MUST be unique.",
    source="ir-with-training.txt",
    over="training",
    since=7,
    bad=(
        _training(f"{_INITIALIZATION} {_starts('w', 'w0')} {_starts('w', 'w0')}"),
        _training(f"{_algorithm()} {_updates('w', 'w2')} {_updates('w', 'y')}"),
    ),
    good=(*_GOOD, _training(f"{_algorithm()} {_updates('w', 'w2')} {_updates('v', 'w2')}")),
)
def keys_once(site: TrainingSite) -> Iterator[Problem]:
    """A key is bound once in a field; the constraints on an initialization apply to a training step too."""
    seen: set[tuple[str, bool]] = set()
    for where, key, _, is_update in _bindings(site):
        if (key.name, is_update) in seen:
            field = "update_binding, to which the constraints on initialization_binding apply"
            field = field if is_update else "initialization_binding"
            yield Problem(f"{quote(key.name)} is bound twice in {field}", where, "keep one of the two")
        seen.add((key.name, is_update))


@rule(
    "TRAIN004",
    "A TrainingInfoProto.initialization MAY be omitted (only if there are no initialization_bindings).",
    source="ir-with-training.txt",
    over="training",
    since=7,
    bad=(_training(_starts("w", "y")), _training(_updates("w", "y"))),
    good=_GOOD,
)
def graphs_for_bindings(site: TrainingSite) -> Iterator[Problem]:
    """Bindings of an initialization or an algorithm require that graph."""
    training = site.training
    if training.initialization is None and training.initialization_binding:
        yield Problem("there are initialization bindings, but no initialization graph", site.where)
    if training.algorithm is None and training.update_binding:
        yield Problem("there are update bindings, but no algorithm graph", site.where)


@rule(
    "TRAIN005",
    "An initialization graph has outputs only: it runs without feeds.",
    source="onnx.proto",
    over="training",
    since=7,
    bad=_training(
        f'initialization {{ name: "i" input {{ name: "s" {_SCALAR} }}'
        ' node { op_type: "Abs" input: "s" output: "w0" }'
        f' output {{ name: "w0" {_SCALAR} }} }} {_starts("w", "w0")}'
    ),
    good=_GOOD,
)
def initialization_without_inputs(site: TrainingSite) -> Iterator[Problem]:
    """An initialization has no input without a default."""
    graph = site.training.initialization
    for index, value in enumerate(graph.inputs if graph is not None else ()):
        if graph is not None and value not in graph.initializers:
            where = site.where.at("initialization").at("input", index=index, name=value.name)
            yield Problem(
                f"the initialization has the input {quote(value.name)}, but it gets no feeds",
                where,
                "make it an initializer",
            )


@rule(
    "TRAIN006",
    _COMBINED,
    source="onnx.proto",
    over="training",
    since=7,
    bad=_training(f"{_algorithm('y')} {_updates('w', 'y')}"),
    good=_GOOD,
)
def names_of_its_own(site: TrainingSite) -> Iterator[Problem]:
    """An algorithm defines no name of the main graph: both run as one graph."""
    algorithm = site.training.algorithm
    if algorithm is None:
        return
    main = _names(site.model.graph.defined())
    for name in _names(algorithm.defined()):
        if name in main:
            where = site.where.at("algorithm")
            yield Problem(f"{quote(name)} is also defined by the main graph", where, "rename one of the two")


def _names(values: Iterable[Value]) -> dict[str, None]:
    return {v.name: None for v in values if v.name}


@rule(
    "TRAIN007",
    "The training-step is performed by evaluating the Graph and assigning the outputs produced by the Graph"
    " to the state variables as specified in the update-binding.",
    source="ir-with-training.txt",
    over="training",
    since=7,
    bad=(
        _training(
            'algorithm { name: "a" node { op_type: "Shape" input: "w" output: "w2" }'
            ' output { name: "w2" type { tensor_type { elem_type: 7 shape { dim { dim_value: 1 } } } } } }'
            f" {_updates('w', 'w2')}"
        ),
        _training(
            'initialization { name: "i" node { op_type: "Concat" input: "w" input: "w" output: "w0"'
            ' attribute { name: "axis" type: INT i: 0 } } output { name: "w0" type { tensor_type'
            f" {{ elem_type: 1 shape {{ dim {{ dim_value: 2 }} }} }} }} }} }} {_starts('w', 'w0')}"
        ),
    ),
    good=_GOOD,
)
def values_fit_the_state(_: TrainingSite) -> Iterator[Problem]:
    """The inferred type and shape of a bound value fit the state variable."""
    yield from ()  # the engine adds what one inference over the whole model finds


@rule(
    "TRAIN008",
    "The keys of all update bindings are unique, so that two state variables do not have the same name.",
    source="onnx.proto",
    over="model",
    since=7,
    bad=_training(f"{_algorithm()} {_updates('v', 'w2')}", f"{_algorithm('w3')} {_updates('v', 'w3')}"),
    good=_GOOD,
)
def one_variable_of_a_name(survey: Survey) -> Iterator[Problem]:
    """Two state variables, such as initializers of two algorithms, have two names."""
    variables: dict[str, Value] = {}
    for site in survey.trainings:
        seen: set[Value] = set()
        for where, key, _, _ in _bindings(site):
            if key not in seen and variables.setdefault(key.name, key) is not key:
                message = f"{quote(key.name)} is the name of two state variables, initializers of two graphs"
                yield Problem(message, where, "rename one of the two")
            seen.add(key)


@rule(
    "TRAIN009",
    "The keys of all update bindings are unique, so that one variable is assigned at most once.",
    source="onnx.proto",
    over="model",
    severity="warning",
    note="the text of the specification requires this within one repeated field only, and lets a runtime"
    " interleave algorithms, such as two that train the same weights by different losses",
    since=7,
    bad=_training(f"{_algorithm()} {_updates('w', 'w2')}", f"{_algorithm('w3')} {_updates('w', 'w3')}"),
    good=_GOOD,
)
def updated_by_one_algorithm(survey: Survey) -> Iterator[Problem]:
    """One algorithm alone updates a state variable."""
    first: dict[Value, TrainingSite] = {}
    for site in survey.trainings:
        seen: set[Value] = set()
        for where, key, _, is_update in _bindings(site):
            if is_update and key not in seen and first.setdefault(key, site) is not site:
                yield Problem(
                    f"{quote(key.name)} is also updated by {first[key].where}; an iteration of all algorithms"
                    " assigns it more than once",
                    where,
                )
            seen.add(key)
