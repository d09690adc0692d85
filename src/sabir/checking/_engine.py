"""Checking a model: the choice of rules, and their findings in reading order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import CheckError, Finding, Limits, SchemaError, run_with_limits, suggest
from sabir.checking._findings import Findings
from sabir.checking._rule import GROUPS, RULES, Rule
from sabir.opsets import STANDARD

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.checking._operator_sets import SetSource
    from sabir.ir import Model, OperatorSet
    from sabir.schema import Registry

    Source = Model | OperatorSet | str | os.PathLike[str] | bytes | Sequence[SetSource]


def check(
    model: Source,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    strict: bool = False,
    types: bool = True,
    verify: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> None:
    """Raise CheckError with all errors if a model or an operator set violates a rule; otherwise return.

    With `strict` warnings count as errors and the rules of all groups apply. The other arguments and errors
    are those of `findings`.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> sabir.check(model)
    >>> model.graph[0].op = 'Reluu'
    >>> sabir.check(model)
    Traceback (most recent call last):
        ...
    sabir.CheckError: 1 problem in the model:
      graph/node[0] 'Reluu': error NODE001: ai.onnx.Reluu is not an operator that Sabir knows; is it 'R...
    """
    found = findings(
        model,
        select=select,
        ignore=ignore,
        strict=strict,
        types=types,
        verify=verify,
        registry=registry,
        limits=limits,
    )
    errors = [f for f in found if strict or f.severity == "error"]
    if errors:
        raise CheckError(errors)


def findings(
    model: Source,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    strict: bool = False,
    types: bool = True,
    verify: bool = False,
    registry: Registry = STANDARD,
    limits: Limits | None = None,
) -> Findings:
    """Yield the findings of a model, or of operator sets, in reading order; a notebook shows them as a table.

    Takes a model, an operator set, or the path or the bytes of a file with one of these. Operator sets in a
    list are checked together: the versions of a domain are compared. `select` and `ignore` are ids of rules,
    beginnings of ids (`GRAPH`), or groups of rules (`style`, `pedantic`). A rule of a group applies only if
    its id or its group is selected; with `strict` all rules apply. `types=False` skips type inference, which
    takes most of the time. `verify` reads files of external data of any size, and compares their checksums.

    Raises FileError or WireError if there is no model to read, LimitError where checking would cost too much,
    and SchemaError for an unknown id or group.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N] x) => (float[N] y) { y = Relu (x) }''')
    >>> model.graph[0].op = 'Reluu'
    >>> [(f.rule, str(f.location)) for f in sabir.findings(model)]
    [('NODE001', "graph/node[0] 'Reluu'")]
    """

    def found() -> Iterator[Finding]:
        from sabir.checking._violations import violations  # ruff: ignore[import-outside-top-level]  10 ms of `import sabir`

        rules = chosen(select, ignore, strict=strict)
        every = run_with_limits(limits, violations, model, rules, registry, types=types, verify=verify)
        yield from sorted(every, key=lambda f: f.location.order)

    return Findings(found())


def chosen(select: Iterable[str] = (), ignore: Iterable[str] = (), *, strict: bool = False) -> list[Rule]:
    """Return the rules that ids and groups select; raises SchemaError for an unknown one.

    >>> [rule.id for rule in chosen(['SPARSE'], ignore=['SPARSE001'])][:2]
    ['SPARSE002', 'SPARSE003']
    """
    wanted = tuple(select)
    found = _meant(wanted, strict=strict) if wanted else {r.id for r in RULES if strict or not r.group}
    found -= _meant(ignore, strict=True)
    return [r for r in RULES if r.id in found]


def _meant(choice: Iterable[str], *, strict: bool) -> set[str]:
    """Return the ids of the rules that ids, beginnings of ids and groups select.

    The beginning of an id omits rules of a group unless `strict` is set or there are no other rules.
    """
    found = set[str]()
    for name in choice:
        meant = [r for r in RULES if name and (name == r.group or r.id.startswith(name))]
        if not meant:
            known = (*(r.id for r in RULES), *GROUPS)
            raise SchemaError(f"there is no rule {name!r}{suggest(name, known)}")
        always = meant if strict or name in GROUPS else [r for r in meant if not r.group]
        found.update(r.id for r in always or meant)
    return found
