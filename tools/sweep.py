"""The sweep: some 60 000 one-node models with hostile inputs and attributes, read, checked, inferred, run.

`python tools/sweep.py` runs them all in child processes; `--share N` one in N; `--only TEXT` those whose name
holds a text. A case passes where every stage gives an answer or a SabirError of at most 2000 characters,
within 10 seconds and 1.5 GiB, and nothing is printed. Exits with 1 where one does not.

With `--engine compiled` each model is run in that engine alone, which must end as the interpreter does: with
outputs of the same types and shapes, or with the same error. Its cache is empty at the beginning. Models with
plans that would take long come last.

`--write` puts the counts, the longest time and the most memory of a case into the table of docs/sweep.md.

With `--awkward N` the first N awkward calls (tests/support/awkward.py) are run instead: each twice on the
compiled engine, whose memory is between protected pages, and once on the interpreter. All runs of a call must
end with the same values, as near as rounding allows, or with the same error.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import selectors
import signal
import subprocess  # ruff: ignore[suspicious-subprocess-import]  our own program is run
import sys
import tempfile
import time
import warnings
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    import sabir
    from support.awkward import Awkward

ROOT = Path(__file__).parents[1]
ADDRESS_SPACE, MOST_MEMORY = 3 << 30, 3 << 29
MOST_SECONDS, PATIENCE, MOST_TEXT = 10.0, 60.0, 2000  # of the processor; on the clock, where others work too
ITERATIONS = 1 << 14  # of loops, where two engines are compared
PLANS = 1 << 24  # the place of the first model whose plan takes long
FEW_BYTES = 1 << 28  # of values, where a call is run three times
MOST_AXES = 32  # numpy does not do everything with more, which an engine may
LONGEST_PROBLEM = 600
MILE = 5000  # models from one sign of progress to the next
CACHE = "SABIR_CACHE"  # the variable that names the folder of compiled code
PAGE, BEGIN, END = ROOT / "docs" / "sweep.md", "<!-- written by tools/sweep.py -->", "<!-- end -->"
CLEAR_PEAK = "5"  # what proc(5) says to write to clear_refs


def main() -> int:
    """Run the sweep, and print what failed."""
    options = _options()
    if options.child:
        _child(options)
        return 0
    began, failures, count, ends = time.monotonic(), list[dict[str, Any]](), 0, Counter[str]()
    longest, largest = {"seconds": 0.0, "name": ""}, {"bytes": 0, "name": ""}
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE] = folder  # what an earlier sweep compiled would hide the time that it takes
        for message in _all(options):
            if "failed" in message:
                failures.append(message)
                print(f"{message['name']}: {message['failed']}", flush=True)
            elif "ended" in message:
                ends.update(message["ended"])
            elif "seconds" in message:
                longest = max(longest, message, key=itemgetter("seconds"))
                largest = max(largest, message, key=itemgetter("bytes"))
            else:
                count += 1
                if count % MILE == 0:
                    print(f"{count} models, {len(failures)} failures", file=sys.stderr, flush=True)
    kinds = Counter(f["failed"].split(":")[0] for f in failures)
    if ends:
        print(", ".join(f"{number} {end}" for end, number in sorted(ends.items())))
    print(f"{count} models, {len(failures)} failures {dict(kinds)}, {time.monotonic() - began:.0f} s")
    print(f"longest: {longest['seconds']:.1f} s, {longest['name']}; ", end="")
    print(f"most memory: {largest['bytes'] >> 20} MiB, {largest['name']}")
    if options.write:
        _write(options, count, len(failures), longest, largest)
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="run one case in N")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the cases whose name holds TEXT")
    parser.add_argument("--no-plans", action="store_true", help="leave the models out whose plans take long")
    parser.add_argument(
        "--awkward", type=int, default=0, metavar="N", help="run the first N awkward calls instead"
    )
    parser.add_argument("--engine", choices=["reference", "compiled"], default="reference")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/sweep.md")
    parser.add_argument("--after", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--child", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def _write(
    options: argparse.Namespace, count: int, failures: int, longest: dict[str, Any], largest: dict[str, Any]
) -> None:
    """Replace the row of an engine in the table of docs/sweep.md, or add it."""
    what = {"reference": "checked, inferred and run by the interpreter", "compiled": "run by both engines"}
    engine = "compiled" if options.awkward else options.engine
    kind = _kind(options)
    share = "all" if options.share == 1 else f"one in {options.share:,}"
    start = f"| {what[engine]} | {kind} |"
    row = (
        f"{start} {time.strftime('%Y-%m-%d')} | {count:,} ({share}) | {failures} |"
        f" {longest['seconds']:.1f} s: {_cell(longest['name'])} |"
        f" {largest['bytes'] >> 20} MiB: {_cell(largest['name'])} |"
    )
    lines = PAGE.read_text("utf-8").splitlines()
    first, last = lines.index(BEGIN), lines.index(END)
    table = [line for line in lines[first + 1 : last] if line and not line.startswith(start)]
    PAGE.write_text("\n".join([*lines[: first + 1], "", *table, row, "", *lines[last:], ""]), "utf-8")


def _kind(options: argparse.Namespace) -> str:
    if options.awkward:
        return "awkward calls"
    if options.only:
        return f"named `{options.only.strip()}…`"
    return "of one node" if options.engine == "reference" or options.no_plans else "all"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# the parent: a child runs the cases in turn, and another one goes on where it ends early


def _all(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    after, finished = options.after, False
    while not finished:
        place, name, finished = after, "", False
        with _started(options, after) as (child, lines):
            for told in lines:
                finished = "end" in told
                if "place" in told:
                    place, name = told["place"], told["name"]
                if not finished:
                    yield told
            code = child.poll()
        if not finished:
            if not name:
                raise RuntimeError(f"a child ended with {code} before its first case")
            how = f"hang: over {PATIENCE:.0f} s" if code is None else f"crash: exit status {code}"
            yield {"name": name, "failed": how}
        after = place


@contextlib.contextmanager
def _started(
    options: argparse.Namespace, after: int
) -> Generator[tuple[subprocess.Popen[bytes], Iterator[dict[str, Any]]]]:
    reading, writing = os.pipe()
    command = [
        sys.executable, __file__, "--child", str(writing), "--after", str(after),
        "--share", str(options.share), "--only", options.only, "--engine", options.engine,
        *(["--no-plans"] if options.no_plans else []), "--awkward", str(options.awkward),
    ]  # fmt: skip
    # ruff: ignore[subprocess-without-shell-equals-true]  this very file
    child = subprocess.Popen(command, pass_fds=(writing,))
    os.close(writing)
    try:
        yield child, _lines(child, reading)
    finally:
        os.close(reading)
        child.kill()
        child.wait()


def _lines(child: subprocess.Popen[bytes], reading: int) -> Iterator[dict[str, Any]]:
    """Yield what a child tells until it ends, or is silent for too long."""
    selector, held = selectors.DefaultSelector(), b""
    selector.register(reading, selectors.EVENT_READ)
    while selector.select(PATIENCE):
        read = os.read(reading, 1 << 16)
        if not read:
            child.wait()
            return
        *whole, held = (held + read).split(b"\n")
        for line in whole:
            yield json.loads(line)


# the child


def _child(options: argparse.Namespace) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    sys.path.insert(0, str(ROOT / "tests"))
    with os.fdopen(options.child, "w") as pipe, tempfile.TemporaryFile() as printed:

        def tell(**facts: object) -> None:
            pipe.write(json.dumps(facts) + "\n")
            pipe.flush()

        for descriptor in (1, 2):
            os.dup2(printed.fileno(), descriptor)
        for place, name, stages in _awkward(options, tell) if options.awkward else _hostile(options):
            tell(place=place, name=name)
            started = time.process_time()
            for problem in run(stages, printed.fileno()):
                tell(name=name, failed=problem)
            tell(name=name, seconds=time.process_time() - started, bytes=_peak())
        tell(end=True)


Stages: TypeAlias = "dict[str, Callable[[], object]]"


def _hostile(options: argparse.Namespace) -> Iterator[tuple[int, str, Stages]]:
    """Yield the models with hostile inputs and attributes: place, name, and what is done with each."""
    import sabir  # ruff: ignore[import-outside-top-level]  the parent needs none of it
    from support.costly_plans import costly_plans  # ruff: ignore[import-outside-top-level]  beside the tests
    from support.sweep import Case, cases, in_sample  # ruff: ignore[import-outside-top-level]  the same

    def stages(case: Case) -> Stages:
        if options.engine != "reference":
            return {"compare": lambda: _compare(case.data, case.feeds, options.engine)}
        return {
            "check": lambda: list(sabir.findings(case.data)),
            "infer": lambda: sabir.infer(sabir.load(case.data)),
            "evaluate": lambda: sabir.evaluate(sabir.load(case.data), case.feeds),
        }

    def wanted(place: int, name: str) -> bool:
        in_share = place >= PLANS or in_sample(place, options.share)
        return place > options.after and in_share and options.only in name

    def all_cases() -> Iterator[tuple[int, Case]]:
        yield from cases(wanted)
        if options.engine != "reference" and not options.no_plans:
            yield from costly_plans(wanted, PLANS)

    for place, case in all_cases():
        yield place, case.name, stages(case)


def _awkward(options: argparse.Namespace, tell: Callable[..., None]) -> Iterator[tuple[int, str, Stages]]:
    """Yield the awkward calls, which are run between protected pages."""
    from support.awkward import awkward_call  # ruff: ignore[import-outside-top-level]  beside the tests
    from support.guards import Guards, install  # ruff: ignore[import-outside-top-level]  the same
    from support.sweep import in_sample  # ruff: ignore[import-outside-top-level]  the same

    install()
    for place in range(options.after + 1, options.awkward):
        if not in_sample(place, options.share):
            continue
        call = awkward_call(place)
        if options.only not in call.name:
            continue
        Guards.before = bool(place % 2)
        yield place, call.name, {"compare": lambda call=call: tell(ended=_compare_call(call))}


def run(stages: Stages, printed: int) -> Iterator[str]:
    """Yield what is wrong with how the stages of one case went."""
    import sabir  # ruff: ignore[import-outside-top-level]  the parent needs none of it

    sabir.set_default_limits(sabir.Limits.untrusted())
    Path("/proc/self/clear_refs").write_text(CLEAR_PEAK, encoding="ascii")
    began = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", sabir.SabirWarning)  # as typed as an error
        warnings.filterwarnings("always", ".*please report it", sabir.SabirWarning)
        for stage, work in stages.items():
            try:
                work()
            except sabir.SabirError as error:
                if len(str(error)) > MOST_TEXT:
                    yield f"long message in {stage}: {str(error)[:100]!r}"
            except Exception as error:  # ruff: ignore[blind-except]  any other is what is looked for
                yield f"untyped error in {stage}: {type(error).__name__}: {str(error)[:LONGEST_PROBLEM]!r}"
    if warned:
        yield f"warning: {str(warned[0].message)[:200]!r}"
    took = time.process_time() - began
    if took > MOST_SECONDS:
        yield f"slow: {took:.1f} s"
    if _peak() > MOST_MEMORY:
        yield f"memory: {_peak() >> 20} MiB"
    if os.lseek(printed, 0, os.SEEK_END):
        os.ftruncate(printed, 0)
        os.lseek(printed, 0, os.SEEK_SET)
        yield "printed: something"


def _compare_call(call: Awkward) -> list[str]:
    """Run a call on both engines; return how it ended. Raises AssertionError where they do not agree."""
    import sabir  # ruff: ignore[import-outside-top-level]  the parent needs none of it
    from support.differences import difference  # ruff: ignore[import-outside-top-level]  beside the tests
    from support.guards import guarded_feed, is_native  # ruff: ignore[import-outside-top-level]  the same

    limits = sabir.Limits.untrusted()._replace(iterations=ITERATIONS, memory=FEW_BYTES)
    feeds = {name: guarded_feed(x) for name, x in call.feeds.items()}

    def ran(session: sabir.Session | str) -> list[Any] | str:
        try:
            return session if isinstance(session, str) else list(session.run(feeds).values())
        except sabir.SabirError as error:
            return f"{type(error).__name__}: {error}"

    def made(engine: Any) -> sabir.Session | str:
        try:
            return sabir.Session(call.model, engine=engine, limits=limits)
        except sabir.SabirError as error:
            return f"{type(error).__name__}: {error}"

    compiled = made("compiled")
    expected, *found = ran(made("reference")), ran(compiled), ran(compiled)
    for results in found:
        problem = difference(results, expected, call.scale)
        if problem:
            raise AssertionError(problem)
    ends = ["runs that end in an error" if isinstance(expected, str) else "runs with results"]
    if not isinstance(compiled, str) and is_native(compiled):
        ends.append("models with kernels")
    return ends


def _compare(data: bytes, feeds: dict[str, Any], engine: str) -> None:
    """Run one case in an engine and in the interpreter; raises AssertionError where they do not agree."""
    import sabir  # ruff: ignore[import-outside-top-level]  the parent needs none of it

    told, limits = list[str](), sabir.Limits.untrusted()._replace(iterations=ITERATIONS)
    names: tuple[Any, ...] = (engine, "reference")
    for name in names:
        try:
            results = sabir.Session(data, engine=name, limits=limits).run(feeds)
        except sabir.SabirError as error:
            told.append(f"{type(error).__name__}: {error}")
        else:
            told.append(f"outputs {[_shown(x) for x in results.values()]}")
    axes = max((x.ndim for x in feeds.values() if hasattr(x, "ndim")), default=0)
    if told[0] != told[1] and axes < MOST_AXES:
        raise AssertionError(f"{engine}: {told[0][:300]!r}, but reference: {told[1][-300:]!r}")


def _shown(x: Any) -> str:
    return f"{x.dtype}{x.shape}" if hasattr(x, "dtype") else type(x).__name__


def _peak() -> int:
    """Return the most bytes of memory that this process held since the peak was cleared."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(main())
