"""`sabir train --plan`: what would be trained, frozen and left, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.base import UnsupportedError, counted, quote
from sabir.cli._screen import Screen, plain
from sabir.training import LOSSES, training_plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Model
    from sabir.schema import Registry
    from sabir.training import TrainingPlan

_ORDER = ("trained", "frozen", "left")


class PlanOptions(NamedTuple):
    """The options of `sabir train` that decide what is trained."""

    loss: str | None
    trainable: list[str]
    frozen: list[str]
    tie: list[str]
    learn_scales: bool


def print_training_plan(model: Model, options: PlanOptions, registry: Registry) -> None:
    """Print what `sabir train` would do with the constants of a model."""
    plan = training_plan(
        model,
        output=None if options.loss is None or options.loss in LOSSES else options.loss,
        trainable=options.trainable or None,
        frozen=options.frozen,
        tie=ties_of(options.tie),
        learn_scales=options.learn_scales,
        registry=registry,
    )
    _show(Screen(), plan)


def ties_of(pairs: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of names of `--tie NAME=OTHER`; raises UnsupportedError for one without `=`."""
    found: list[tuple[str, str]] = []
    for pair in pairs:
        name, separator, other = pair.partition("=")
        if not (name and separator and other):
            raise UnsupportedError(f"--tie {quote(pair)}: write it as NAME=OTHER, two initializers")
        found.append((name, other))
    return found


def _show(screen: Screen, plan: TrainingPlan) -> None:
    """Print the decisions of a plan by action, then what is one parameter, and what may not be meant."""
    for action in _ORDER:
        chosen = [d for d in plan.decisions if d.action == action]
        if not chosen:
            continue
        screen.heading(action, counted(len(chosen), "constant"))
        screen.table(
            [(plain(d.name), f"{d.element}{list(d.shape)}", plain(d.reason)) for d in chosen], "cyan"
        )
    shared = [(plain(u.name), "each layer has its own", plain(", ".join(u.others))) for u in plan.untied]
    shared += [
        (plain(t.name), "is also, transposed" if t.transposed else "is also", plain(t.other))
        for t in plan.tied
    ]
    shared += [(plain(name), "was removed as it is zero", "") for name in plan.restored]
    if shared:
        screen.heading("stored otherwise")
        screen.table(shared, "cyan")
    for text in plan.warnings:
        screen.line()
        screen.line(f"warning: {plain(text)}")


__all__ = ["PlanOptions", "print_training_plan", "ties_of"]
