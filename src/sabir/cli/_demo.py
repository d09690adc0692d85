"""`sabir demo`: a trained digit classifier, loaded, checked, inferred and run on digits it never saw."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.columns import Columns
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sabir.checking import check
from sabir.cli._screen import Screen, bytes_text
from sabir.demo import digits
from sabir.drawing import seconds_text
from sabir.inference import infer
from sabir.runtime import Session
from sabir.serial import loads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Array

EXAMPLES = ("sabir demo",)
_SHADES = " ░▒▓█"
_PLAIN_SHADES = " .:*#"  # for terminals that can show only ASCII
_DARKEST = 16
_ALONE = 100  # pictures run one at a time, to measure the time a picture takes
_PAGE = 100  # columns for the pictures if the output is not a terminal


class Answers(NamedTuple):
    """The results of the classifier; `together` and `alone` are seconds a batch and a picture."""

    probabilities: Array
    labels: Array
    together: float
    alone: float

    @property
    def right(self) -> Array:
        """Which pictures were classified correctly."""
        return self.probabilities.argmax(axis=1) == self.labels


def demo() -> None:
    """Read handwritten digits with a small neural network.

    The network comes with Sabir, which built and saved it. The digits are real, and the network was not
    trained on them.
    """
    data, screen = digits(), Screen()
    model = loads(data.model)
    screen.line(f"loaded    a digit classifier: {len(model.graph)} nodes, {bytes_text(len(data.model))}")
    check(model)
    screen.line("checked   no problems found")
    model = infer(model)
    shapes = ", ".join(
        f"{v.name} {v.type}" for v in (*model.graph.inputs, *model.graph.outputs) if v is not None
    )
    screen.line(f"inferred  {shapes}")
    answers = _answers(Session(model), data.images, data.labels)
    _pictures(screen, data.images, answers)
    right, count = int(answers.right.sum()), len(answers.labels)
    screen.heading(f"{right / count:.1%} right", f"{right} of {count} digits that it was not trained on")
    alone, together = seconds_text(answers.alone), seconds_text(answers.together / count)
    screen.line(f"{alone} a picture one at a time, {together} a picture all at once")


def _answers(session: Session, images: Array, labels: Array) -> Answers:
    batch = images[:, np.newaxis].astype(np.float32)
    session.run({"image": batch})  # the first run of a shape may prepare things
    started = time.perf_counter()
    probabilities = session.run({"image": batch})["probabilities"]
    together = time.perf_counter() - started
    alone: list[float] = []
    for at in range(min(_ALONE, len(batch))):
        started = time.perf_counter()
        session.run({"image": batch[at : at + 1]})
        alone.append(time.perf_counter() - started)
    return Answers(probabilities, labels, together, statistics.median(alone))


def _pictures(screen: Screen, images: Array, answers: Answers) -> None:
    shades = _SHADES if screen.can_show(_SHADES) else _PLAIN_SHADES
    cards = [_card(images[at], answers, at, shades) for at in _chosen(answers.right)]
    screen.render(Padding(Columns(cards, padding=(1, 4), width=44), (1, 0, 0, 0)), width=_PAGE)


def _chosen(right: Array) -> Sequence[int]:
    """Return the indices of the first few correct pictures, and of the first wrong one."""
    wrong = np.flatnonzero(~right)[:1].tolist()
    return [*np.flatnonzero(right)[: 4 - len(wrong)].tolist(), *wrong]


def _card(image: Array, answers: Answers, at: int, shades: str) -> Table:
    """Return a picture, and beside it the likeliest digits."""
    levels = image.astype(int) * (len(shades) - 1) // _DARKEST
    picture = "\n".join("".join(shades[level] * 2 for level in row) for row in levels)
    card = Table.grid(padding=(0, 2))
    card.add_row(Text(picture), _verdict(answers, at, shades[-1]))
    return card


def _verdict(answers: Answers, at: int, block: str) -> Group:
    chances: list[float] = answers.probabilities[at].tolist()
    best = sorted(range(len(chances)), key=chances.__getitem__, reverse=True)[:3]
    answer, label = best[0], int(answers.labels[at])
    verdict = Text("answer ").append(str(answer), style="bold green" if answer == label else "bold red")
    if answer != label:
        verdict.append(f", but it is a {label}")
    bars: list[Any] = [Text(f"{d}  {block * round(chances[d] * 10):<10} {chances[d]:6.1%}") for d in best]
    return Group(Text(), verdict, Text(), *bars)
