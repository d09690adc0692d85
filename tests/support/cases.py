"""Many small cases in one test, which runs all of them and reports all that fail.

A test of its own takes pytest and its workers some milliseconds; most calls of an operator take less than one.
`pytest --case TEXT` runs only the cases whose name contains the text.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MOST_TRACEBACKS = 5
wanted = ""
"""What `--case` says; the tests' conftest sets it."""


def each_of(
    names: str, cases: Iterable[Any], *, group: Callable[..., str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that makes one test of a check and its cases.

    `names` are the arguments of the check that a case gives, the others are fixtures. A case is a
    `pytest.param` with an id, or what `parametrize` takes, whose text is its name. With `group`, a function of a
    case's values, there is one test for each group.
    """
    arguments = [name.strip() for name in names.split(",")]
    groups: dict[str, dict[str, tuple[Any, ...]]] = {}
    for case in cases:
        values = case.values if hasattr(case, "values") else case if len(arguments) > 1 else (case,)
        name = getattr(case, "id", None) or " ".join(map(str, values))
        held = groups.setdefault(group(*values) if group else "", {})
        assert name not in held, f"two cases are named {name!r}"
        held[name] = values

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        def run(**fixtures: Any) -> None:
            held = groups[fixtures.pop("group", "")]
            _run_all(check, {n: dict(zip(arguments, v, strict=True)) for n, v in held.items()}, fixtures)

        functools.update_wrapper(run, check)
        kinds = inspect.signature(check).parameters
        asked = [kind for name, kind in kinds.items() if name not in arguments]
        if not group:
            run.__signature__ = inspect.Signature(asked)
            return run
        first = inspect.Parameter("group", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run.__signature__ = inspect.Signature([first, *asked])
        return pytest.mark.parametrize("group", groups)(run)

    return decorate


def _run_all(check: Callable[..., None], cases: dict[str, dict[str, Any]], fixtures: dict[str, Any]) -> None:
    chosen = {name: values for name, values in cases.items() if wanted in name}
    if not chosen:
        pytest.skip(f"no case has {wanted!r} in its name")
    failed: dict[str, BaseException] = {}
    for name, values in chosen.items():
        try:
            check(**values, **fixtures)
        except (Exception, pytest.fail.Exception) as error:  # ruff: ignore[blind-except]  all are reported
            failed[name] = error
    if len(failed) == 1:
        ((name, error),) = failed.items()
        error.add_note(f"in the case {name} (`--case {name!r}` runs it alone)")
        raise error
    if failed:
        pytest.fail("\n".join(_report(failed, len(chosen))), pytrace=False)


def _report(failed: dict[str, BaseException], count: int) -> Iterable[str]:
    yield f"{len(failed)} of {count} cases failed (`--case NAME` runs one alone):"
    for name, error in failed.items():
        yield f"  {name}: {type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
    for name, error in list(failed.items())[:MOST_TRACEBACKS]:
        yield f"\n{name}:\n{pytest.ExceptionInfo.from_exception(error).getrepr(style='short')}"
