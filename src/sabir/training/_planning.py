"""Which constants of a model are parameters: for each one a decision, with its reason."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import starmap
from typing import TYPE_CHECKING, Literal, NamedTuple

from sabir.base import NotFoundError, listed_names, quote, suggest
from sabir.ir import Tensor
from sabir.rewriting import constant_of
from sabir.training._bodies import initializers_of_bodies, lift
from sabir.training._exported import advice, is_folded, kind_of
from sabir.training._folded import folded_layers
from sabir.training._learned_scales import LearnedScales
from sabir.training._parameters import matches, reached_by_gradients
from sabir.training._restored import restore_biases
from sabir.training._roles import Roles
from sabir.training._sharing import Tied, Untied, shared_weights, tie_found, tie_named, untie
from sabir.training._value_names import is_generated, verdict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from sabir.ir import Graph, Model, Value
    from sabir.rewriting import Rewriter
    from sabir.training._roles import Role

Action = Literal["trained", "frozen", "left"]

_MOST = 5
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Decision:
    """What training does with one constant of a model, and why.

    `action` is `trained`, `frozen` (a parameter that patterns exclude) or `left` (no parameter). `dubious` is
    set where neither the use nor the name of the constant decides. `element` is the name of its element type.

    >>> Decision('fc.bias', 'float', (4,), 'trained', 'bias of Gemm').action
    'trained'
    """

    name: str
    element: str
    shape: tuple[int, ...]
    action: Action
    reason: str
    dubious: bool = False


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """What `prepare` trains: a decision for each floating-point constant, and what was tied and untied.

    `untied` are initializers that an exporter stored once for several layers, `tied` parameters that it
    stored twice, and `restored` biases of zero that it removed. `warnings` are sentences about what may not
    be meant.

    >>> TrainingPlan().trained
    ()
    """

    decisions: tuple[Decision, ...] = ()
    untied: tuple[Untied, ...] = ()
    tied: tuple[Tied, ...] = ()
    restored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def trained(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(d.name for d in self.decisions if d.action == "trained")


class Choice(NamedTuple):
    """What a caller says about the parameters; without `trainable` patterns, use and name decide."""

    trainable: tuple[str, ...] | None = None
    frozen: tuple[str, ...] = ()
    tie: tuple[tuple[str, str], ...] = ()
    learn_scales: bool = False


class Sharing(NamedTuple):
    """What was tied, untied and restored, and the sentences about what may not be meant."""

    untied: tuple[Untied, ...]
    tied: tuple[Tied, ...]
    restored: tuple[str, ...]
    warnings: tuple[str, ...]


def resolve_sharing(model: Model, choice: Choice) -> Sharing:
    """Tie and untie the initializers of a model; raises as `tie_named`."""
    warnings = folded_layers(model)
    untied = untie(model, Roles(model))
    restored = restore_biases(model)
    tied = tie_named(model, choice.tie)
    more, doubts = tie_found(model, Roles(model))
    doubts += shared_weights(model, Roles(model))
    return Sharing(tuple(untied), (*tied, *more), tuple(restored), (*warnings, *doubts))


def decide(rewriter: Rewriter, targets: Iterable[Value], choice: Choice, sharing: Sharing) -> TrainingPlan:
    """Decide what is trained where a gradient of `targets` comes.

    Constants of nodes that are parameters become initializers. Raises NotFoundError for a pattern that
    matches none of the initializers.
    """
    model = rewriter.model
    _check_patterns(model.graph, choice)
    reached: set[Value] = set()
    for target in targets:
        reached |= reached_by_gradients(rewriter, target)
    scales = LearnedScales(rewriter, choice.frozen).scales if choice.learn_scales else ()
    judge = _Judge(model, reached, choice, scales)
    decisions = list(starmap(judge.decision, _floats(model.graph)))
    for node in [n for n in model.graph if n.op == "Constant"]:
        data = constant_of(node.output)
        if data is None or not data.element.is_float or not judge.is_weight(node.output, data):
            continue
        decision = judge.decision(node.output, data)
        decisions.append(decision)
        if decision.action == "trained":
            lift(model.graph, node.output, data, node.output.name)
    decisions += starmap(judge.decision_in_body, initializers_of_bodies(model.graph))
    warnings = (*sharing.warnings, *_doubts(decisions))
    return TrainingPlan(tuple(decisions), sharing.untied, sharing.tied, sharing.restored, warnings)


def _check_patterns(graph: Graph, choice: Choice) -> None:
    names = [v.name for v in graph.defined() if constant_of(v) is not None or v.constant is not None]
    for pattern in (*(choice.trainable or ()), *choice.frozen):
        if not any(fnmatchcase(name, pattern) for name in names):
            raise NotFoundError(
                f"no initializer of the model matches the pattern {quote(pattern)}{suggest(pattern, names)}"
            )


def _floats(graph: Graph) -> Iterator[tuple[Value, Tensor]]:
    for value, data in graph.initializers.items():
        if isinstance(data, Tensor) and data.element.is_float:
            yield value, data


def _doubts(decisions: Sequence[Decision]) -> list[str]:
    """Return one sentence for each reason that leaves a doubt."""
    found: dict[tuple[Action, str], list[str]] = {}
    for decision in decisions:
        if decision.dubious:
            found.setdefault((decision.action, decision.reason), []).append(decision.name)
    said = {"trained": "trained as", "left": "not trained, as"}
    return [
        f"{listed_names(names, _MOST)}: {said[action]} {reason}; trainable= and frozen= decide otherwise"
        for (action, reason), names in found.items()
    ]


class _Judge:
    """Decides about constants, one by one."""

    def __init__(
        self, model: Model, reached: set[Value], choice: Choice, scales: Collection[Value] = ()
    ) -> None:
        self._model, self._reached, self._choice = model, reached, choice
        self._scales = scales
        self._roles = Roles(model)

    def is_weight(self, value: Value, data: Tensor) -> bool:
        """Return whether a constant of a node may be a parameter; most are numbers of a computation."""
        if value not in self._reached:
            return False
        if any(role.kind == "parameter" for role in self._roles.of(value)):
            return data.size > 1
        return verdict(value.name, one_number=data.size == 1) == "parameter"

    def decision(self, value: Value, data: Tensor) -> Decision:
        """Return the decision about a floating-point constant."""
        action, reason, dubious = self._judged(value, data)
        return Decision(value.name, data.element.name, tuple(data.shape), action, reason, dubious)

    def decision_in_body(self, value: Value, data: Tensor) -> Decision:
        """Return the decision about an initializer of a body, where no parameters are left."""
        self._reached.add(value)
        found = self.decision(value, data)
        return replace(found, reason=f"{found.reason}; the body of a node has it")

    def _judged(self, value: Value, data: Tensor) -> tuple[Action, str, bool]:
        frozen, trainable = self._choice.frozen, self._choice.trainable
        if value in self._scales:
            return "trained", "scale of a quantization, which is learned", False
        if value not in self._reached:
            return "left", "no gradient reaches it", False
        if matches(value.name, frozen):
            return "frozen", "its name matches frozen=", False
        if trainable is not None:
            if value.name in trainable or (data.shape and matches(value.name, trainable)):
                return "trained", "its name matches trainable=", False
            return "frozen", "its name matches no pattern of trainable=", False
        return self._by_itself(value, data)

    def _by_itself(self, value: Value, data: Tensor) -> tuple[Action, str, bool]:
        """Judge by what the exporter recorded, then by the use, then by the name."""
        roles, kind = self._roles.of(value), kind_of(value)
        if kind is not None:
            return self._recorded(kind, roles)
        folded = is_folded(value)
        told = None if folded else verdict(value.name, one_number=data.size == 1)
        role = next((r for r in roles if r.kind == "parameter"), None)
        if role is not None:
            action, reason = self._by_use(value, data, role, told, len(roles))
            doubt = action == "trained" and folded
            return action, f"{reason}; {self._folded()}" if doubt else reason, doubt
        hard = next((r for r in roles if r.kind == "constant"), None)
        if hard is not None:
            return "left", hard.text, False
        if told is not None:
            is_parameter = told == "parameter"
            return "trained" if is_parameter else "left", f"its name says that it is a {told}", False
        soft = next((r for r in roles if r.kind == "number"), None)
        if folded:
            return "left", self._folded(), True
        if soft is not None:
            return "left", soft.text, False
        if not roles:
            return "left", "no node computes with it", False
        return "left", f"neither use ({roles[0].text}) nor name says that it is a parameter", data.size > 1

    def _folded(self) -> str:
        return f"the exporter computed it, perhaps of parameters, which {advice(self._model)} keeps"

    def _recorded(self, kind: str, roles: Sequence[Role]) -> tuple[Action, str, bool]:
        used = f"; {roles[0].text}" if roles else ""
        if kind == "PARAMETER":
            return "trained", f"a parameter of the module{used}", False
        return "left", f"a {kind.replace('_', ' ').lower()} of the module, and no parameter{used}", False

    def _by_use(
        self, value: Value, data: Tensor, role: Role, told: str | None, readers: int
    ) -> tuple[Action, str]:
        if told == "constant" and (role.part == "weight" or role.node.op in {"Add", "Mul"}):
            return "left", f"its name says that it is a constant, though it is {role.text}"
        is_number = data.size == 1 and role.part in {"weight", "bias"}
        if is_number and (not data.shape or is_generated(value.name)) and told != "parameter":
            return "left", f"a number, though it is {role.text}"
        return "trained", role.text if readers == 1 else f"{role.text}; {readers} nodes read it"


__all__ = ["Choice", "Decision", "Sharing", "TrainingPlan", "decide", "resolve_sharing"]
