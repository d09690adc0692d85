"""The conversions: every example and official case to every other opset, with the values that it had.

`python tools/conversions.py` converts each example of each room, each official node case of onnx and its
light models to every other version of each domain, with operands as inputs and again with small ones as
constants. A result passes where strict inference accepts it, the checker finds no error that the original
does not have, and a run computes the same values; a refusal where it is a ConversionError that names the node
and the reason. Operators that draw random numbers are left out: no two runs of them agree. `--share N`
converts one case in N, `--only TEXT` those whose name contains a text, `--jobs N` in N processes. Exits with
1 where a case fails.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[1]
MOST_TEXT = 500
CHUNK = 50  # official cases that a process converts in one go

Refused = tuple[str, str, str]
"""An operator version, the direction, and the reason."""


@dataclass
class Tally:
    """What became of some cases."""

    cases: int = 0
    converted: int = 0
    refused: int = 0
    wrong: int = 0
    reasons: Counter[Refused] = field(default_factory=Counter[Refused])
    failures: list[str] = field(default_factory=list[str])

    def add(self, other: Tally) -> None:
        """Count what another tally counted."""
        self.cases += other.cases
        self.converted += other.converted
        self.refused += other.refused
        self.wrong += other.wrong
        self.reasons += other.reasons
        self.failures += other.failures

    def __str__(self) -> str:
        return (
            f"{self.cases} cases, {self.converted} conversions with the same values, {self.refused} refused,"
            f" {self.wrong} wrong"
        )


def main() -> int:
    """Convert everything, and print the counts."""
    options = _options()
    began, total = time.monotonic(), Tally()
    units = list(_units(options.share))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        work = partial(_convert, share=options.share, only=options.only)
        for done, tally in enumerate(pool.map(work, units), start=1):
            for failure in tally.failures:
                print(failure, flush=True)
            total.add(tally)
            print(
                f"\r{done}/{len(units)} units, {total}, {time.monotonic() - began:.0f} s ",
                end="", file=sys.stderr, flush=True,
            )  # fmt: skip
    print(file=sys.stderr)
    for (operator, direction, reason), count in sorted(total.reasons.items()):
        print(f"{count:6} refused: {operator} {direction}: {reason}")
    print(f"{total}, {time.monotonic() - began:.0f} s")
    return 1 if total.wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="convert one case in N")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="convert the cases whose name contains TEXT"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="convert in N processes")
    return parser.parse_args()


def _units(share: int) -> Iterator[tuple[str, int]]:
    """Yield what processes take one at a time: rooms, light models, chunks of official cases."""
    conversions = _conversions()
    yield from (("room", place) for place in range(len(conversions.OPERATORS)))
    yield from (("light", place) for place in range(len(conversions.light_models())))
    count = len(conversions.official())
    yield from (("official", start) for start in range(0, count, CHUNK * share))


def _conversions() -> Any:
    sys.path.insert(0, str(ROOT / "tests"))
    from support import conversions  # ruff: ignore[import-outside-top-level]  beside the tests

    return conversions


def _convert(unit: tuple[str, int], *, share: int, only: str) -> Tally:
    """Convert the cases of a unit to every other version."""
    conversions, tally = _conversions(), Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # examples divide by zero on purpose
        for case in _cases(conversions, unit, share):
            if only in case.name and zlib.crc32(case.name.encode()) % share == 0:
                _prove(conversions, case, tally)
    return tally


def _cases(conversions: Any, unit: tuple[str, int], share: int) -> Iterable[Any]:
    kind, place = unit
    if kind == "room":
        return conversions.room_cases(conversions.OPERATORS[place])
    if kind == "light":
        return [conversions.light_case(conversions.light_models()[place])]
    chosen = conversions.official()[place : place + CHUNK * share]
    return (variant for case in chosen for variant in conversions.official_cases(case))


def _prove(conversions: Any, case: Any, tally: Tally) -> None:
    import sabir  # ruff: ignore[import-outside-top-level]  after the path of the tests

    tally.cases += 1
    try:
        proof = conversions.Proof(case)
    except Exception as error:  # ruff: ignore[blind-except]  reported as what it is
        tally.wrong += 1
        tally.failures.append(f"{case.name}: the original fails: {_shown(error)}")
        return
    failed: dict[str, list[int]] = {}
    for version in conversions.targets(case.domain, case.opset):
        try:
            got = proof.to(version)
        except Exception as error:  # ruff: ignore[blind-except]  any is what is looked for
            failed.setdefault(_shown(error), []).append(version)
            continue
        if isinstance(got, sabir.ConversionError):
            tally.refused += 1
            direction = "down" if version < case.opset else "up"
            tally.reasons.update({(r.operator, direction, r.reason) for r in got.refusals})
        else:
            tally.converted += 1
    for problem, versions in failed.items():
        tally.wrong += len(versions)
        tally.failures.append(f"{case.name} {case.opset} → {', '.join(map(str, versions))}: {problem}")


def _shown(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:MOST_TEXT]}"


if __name__ == "__main__":
    sys.exit(main())
