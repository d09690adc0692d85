"""Which calls become kernels, by operator version, and why others are evaluated: the contents of docs/fallbacks.md."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

import numpy as np

from sabir.base import SabirError
from sabir.compilation.engine.cuts import is_look
from sabir.compilation.frontend.lowering import lower
from sabir.compilation.frontend.patterns import pattern_of
from sabir.compilation.frontend.prepare import prepare
from sabir.ir import TensorType, parse_dim
from sabir.opsets import STANDARD
from support.rooms import OPERATORS, examples_of, model_of

_TYPES = (
    re.compile(r"no kernel reads (\w+)(?:\[.*\])?"),
    re.compile(r"kernels do not compute with (\w+) yet"),
)


class Row(NamedTuple):
    """One version: its examples, how many of them become kernels, how many with symbols for sizes, and why others do not."""

    domain: str
    name: str
    since: int
    examples: int
    native: int
    symbolic: int
    reasons: tuple[str, ...]


def named(kind):
    """The type with a symbol for each size above 1, the same one for equal sizes."""
    return TensorType(kind.element, tuple(d if d < 2 else parse_dim(f"n{d}") for d in kind.shape))


def reasons_of(operator, example, *, symbols):
    """Why the call of an example is evaluated; nothing, where it becomes kernels.

    Its first input is fed, the others are constants, as in most models.
    """
    version = operator.at(example.opset)
    if version.why_absent("lower") and version.find("parts") is None:
        return [version.why_absent("lower")]
    model, feeds = model_of(operator, example)
    for value in list(model.graph.inputs)[1:]:
        if isinstance(feeds[value.name], np.ndarray):
            model.graph.set_initializer(value, feeds[value.name])
            model.graph.inputs.remove(value)
    for value in model.graph.inputs:
        if symbols and isinstance(value.type, TensorType):
            value.type = named(value.type)
    inputs = list(model.graph.inputs)
    pattern, sizes = pattern_of([v.type for v in inputs], [feeds[v.name] for v in inputs])
    try:
        prepared = prepare(model, pattern, sizes, STANDARD, newer_opsets=False)
    except SabirError as error:
        return [f"{type(error).__name__}: {error}"]
    found = lower(prepared, sizes)
    calls = prepared.program.calls
    evaluated = [s for place, s in found.evaluated.items() if place not in found.controls]
    return [step.reason for step in evaluated if not is_look(calls[step.place])]


@functools.cache
def rows():
    """All versions that have examples and are not removed."""
    return [
        _row(operator, version)
        for operator in OPERATORS
        for version in operator.versions
        if not version.removed and any(operator.at(e.opset) is version for e in examples_of(operator))
    ]


def _row(operator, version):
    own = [e for e in examples_of(operator) if operator.at(e.opset) is version]
    exact, symbolic = ([reasons_of(operator, e, symbols=s) for e in own] for s in (False, True))
    kernels, with_symbols = (sum(not reasons for reasons in why) for why in (exact, symbolic))
    distinct = dict.fromkeys(r for reasons in (*exact, *symbolic) for r in reasons)
    return Row(
        operator.domain, operator.name, version.since, len(own), kernels, with_symbols, tuple(distinct)
    )


HEAD = """# Fallbacks

Which calls the compiled engine computes in native code, and why it leaves others to the interpreter.

- *kernels*: how many examples of a version, in its room, become kernels. The first input is fed, the others are constants;
- *symbols*: how many do where the sizes of the first input are known when the model is run, and not before;
- *evaluated*: the reasons of the others. An element type alone means that kernels do not compute with it.

A result whose number of items a run decides is a kernel where one finds the items, in memory with room for all.

`tools/write_fallbacks.py` writes this page, and `tests/compilation` holds it to be current: so each change shows in its history, and the
numbers of kernels are to grow.

{native} of {examples} examples become kernels, {symbolic} of them with symbols.
"""
TABLE = ("| operator | version | examples | kernels | symbols | evaluated |", "|---|--:|--:|--:|--:|---|")


def page():
    """The document."""
    found = rows()
    totals = {name: sum(getattr(r, name) for r in found) for name in ("native", "symbolic", "examples")}
    lines = [HEAD.format(**totals)]
    for domain in sorted({r.domain for r in found}):
        lines += [f"## {domain or 'ai.onnx'}", "", *TABLE]
        lines += [_line(r) for r in found if r.domain == domain] + [""]
    return "\n".join(lines)


def _line(row):
    return f"| {row.name} | {row.since} | {row.examples} | {row.native} | {row.symbolic} | {_told(row.reasons)} |"


def _told(reasons):
    """The reasons, with the element types before the sentences."""
    kinds: dict[str, None] = {}
    sentences: dict[str, None] = {}
    for reason in reasons:
        found = next(filter(None, (pattern.fullmatch(reason) for pattern in _TYPES)), None)
        (sentences if found is None else kinds)[reason if found is None else found[1]] = None
    return "; ".join([*([", ".join(kinds)] if kinds else []), *sentences]).replace("|", "\\|")
