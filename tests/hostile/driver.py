"""The driver: cases go through every stage in a child process, whose memory and time are bounded.

A server process imports everything once, and is forked for each case, or for some small ones together.
`python fuzz/cases.py` runs the whole corpus, this way.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import struct
import subprocess
import sys
import time
import traceback
import warnings
from itertools import starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Self

    from hostile.case import Case

TESTS = Path(__file__).parents[1]
ADDRESS_SPACE, MOST_MEMORY = 4 << 30, 3 << 29
MOST_SECONDS, MOST_TEXT, MOST_TOLD = 4.0, 2000, 10_000  # of the processor, as others may want it too
PATIENCE, MOST_CPU = 60.0, 60
ITERATIONS = 1 << 12  # a sixty-fourth of the default, whose own test is in tests/limits


class Told(NamedTuple):
    """What came of one stage: `outcome` is `ok` or the name of an error's class."""

    stage: str
    outcome: str
    message: str
    typed: bool
    seconds: float


class Result(NamedTuple):
    """What came of one case: its stages, what broke it, the most memory it took, and whether it was found bad."""

    stages: list[Told]
    died: str
    memory: int
    printed: str
    errors: int

    def problems(self) -> Iterator[str]:
        """Say where the case went wrong, whatever it is."""
        if self.died:
            yield f"{self.died}, after {[t.stage for t in self.stages]}"
        if self.memory > MOST_MEMORY:
            yield f"took {self.memory >> 20} MiB"
        if self.printed:
            yield f"printed {self.printed[:200]!r}"
        ends = {t.stage: (t.outcome, t.message) for t in self.stages}
        if ends.get("compiled") != ends.get("evaluate") and not self.needs_more(ends):
            yield f"compiled: {ends.get('compiled')}, and evaluate: {ends.get('evaluate')}"
        for told in self.stages:
            if not told.typed:
                yield f"{told.stage}: {told.outcome}: {told.message}"
            if len(told.message) > MOST_TEXT and told.typed:
                yield f"{told.stage}: a message of {len(told.message)} characters"
            if told.typed and not all(c.isprintable() or c == "\n" for c in told.message):
                yield f"{told.stage}: a message with control characters: {told.message[:200]!r}"
            if told.seconds > MOST_SECONDS:
                yield f"{told.stage}: {told.seconds:.1f} s"

    @staticmethod
    def needs_more(ends: dict[str, tuple[str, str]]) -> bool:
        """Whether only the reference met a limit.

        Kernels need no intermediate tensors, no sequences of parts, and no iterations over nothing.
        """
        outcome, message = ends.get("evaluate", ("", ""))
        lacks = {
            "EvaluationError": ("Unable to allocate",),
            "LimitError": (
                "Limits(memory=",
                "SplitToSequence with output",
                "Scan with output 'y': subgraphs ran as often as they may",
            ),
        }.get(outcome, ())
        return ends.get("compiled") == ("ok", "") and any(text in message for text in lacks)

    @property
    def refused(self) -> bool:
        """Whether reading raised, or the check found an error."""
        return (
            any(t.outcome != "ok" for t in self.stages if t.stage in {"load", "findings"}) or self.errors > 0
        )

    @property
    def sound(self) -> bool:
        """Whether every stage gave an answer, and no error was found."""
        return not self.errors and all(t.outcome == "ok" for t in self.stages)


class Server:
    """A process that runs cases, forking itself for them."""

    def __enter__(self) -> Self:
        command = [sys.executable, __file__]
        folders = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        self._process = subprocess.Popen(  # ruff: ignore[subprocess-without-shell-equals-true]  this very file
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": folders}
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def run(self, data: bytes, form: str = "protobuf") -> Result:
        """Run one case, given as a file's bytes."""
        return self.run_together([(data, form)])[0]

    def run_together(self, files: Sequence[tuple[bytes, str]]) -> list[Result]:
        """Run cases one after the other in one child; its memory, its output and its death are those of each."""
        pipe = self._process
        assert pipe.stdin is not None
        assert pipe.stdout is not None
        pipe.stdin.write(struct.pack("<I", len(files)))
        for data, form in files:
            pipe.stdin.write(struct.pack("<16sQ", form.encode(), len(data)) + data)
        pipe.stdin.flush()
        answers = json.loads(pipe.stdout.readline())
        return [Result(list(starmap(Told, answer.pop("stages"))), **answer) for answer in answers]


# the server


def _serve() -> None:
    """Answer the cases of each request on standard input with a line on standard output."""
    sys.path.insert(0, str(TESTS))
    from hostile.case import model  # ruff: ignore[import-outside-top-level]  as the parent needs none of it
    from sabir.opsets import STANDARD  # ruff: ignore[import-outside-top-level]  the same

    list(STANDARD)  # the modules of all operators
    for _ in stages_of(model().SerializeToString(), "protobuf"):  # so that each fork finds all imported
        pass
    gc.collect()
    gc.freeze()  # a fork that looks through what is here would copy it
    answers, sys.stdout = sys.stdout, sys.stderr
    while True:
        head = sys.stdin.buffer.read(4)
        if len(head) < 4:
            return
        files = [_received() for _ in range(*struct.unpack("<I", head))]
        answers.write(json.dumps(_forked(files)) + "\n")
        answers.flush()


def _received() -> tuple[bytes, str]:
    """Read one file and its format."""
    name, size = struct.unpack("<16sQ", sys.stdin.buffer.read(24))
    return sys.stdin.buffer.read(size), name.rstrip(b"\0").decode()


def _forked(files: Sequence[tuple[bytes, str]]) -> list[dict[str, Any]]:
    reading, writing = os.pipe()
    printing, printed = os.pipe()
    child = os.fork()
    if not child:
        for descriptor in (1, 2):
            os.dup2(printed, descriptor)
        os.close(reading)
        _child(files, writing)
    os.close(writing)
    os.close(printed)
    told, output, died = _watched(child, reading, printing)
    _, status, used = os.wait4(child, 0)
    os.close(reading)
    os.close(printing)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        died = f"took over {MOST_CPU} s"
    elif not died and status:
        died = (
            f"killed by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {status}"
        )
    lines = [json.loads(line) for line in told.splitlines()]
    shared = {"died": died, "memory": used.ru_maxrss << 10, "printed": output}
    return [
        {
            "stages": [line["told"] for line in lines if line["case"] == case and "told" in line],
            "errors": sum(line["errors"] for line in lines if line["case"] == case and "errors" in line),
            **shared,
        }
        for case in range(len(files))
    ]


def _watched(child: int, reading: int, printing: int) -> tuple[str, str, str]:
    """Read what a child tells and prints until it closes both; kill it where it is silent for too long."""
    parts = {reading: b"", printing: b""}
    open_ = set(parts)
    patience = time.monotonic() + PATIENCE
    while open_:
        ready, _, _ = select.select(list(open_), [], [], max(0.0, patience - time.monotonic()))
        if not ready:
            os.kill(child, signal.SIGKILL)
            return parts[reading].decode(), parts[printing].decode("utf-8", "replace"), "took too long"
        for descriptor in ready:
            read = os.read(descriptor, 1 << 16)
            parts[descriptor] += read
            if not read:
                open_.discard(descriptor)
            elif descriptor == reading:
                patience = time.monotonic() + PATIENCE
    return parts[reading].decode(), parts[printing].decode("utf-8", "replace"), ""


def _child(files: Sequence[tuple[bytes, str]], writing: int) -> None:
    try:
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU, MOST_CPU + 5))
        _make_warnings_errors()
        for case, (data, form) in enumerate(files):
            for line in stages_of(data, form):
                os.write(writing, json.dumps({"case": case, **line}).encode() + b"\n")
        os._exit(0)
    except BaseException:  # ruff: ignore[blind-except]  the child ends here, whatever it is
        traceback.print_exc()
        os._exit(1)


def _make_warnings_errors() -> None:
    from sabir import SabirWarning  # ruff: ignore[import-outside-top-level]  the parent needs none of it

    warnings.simplefilter("error")
    warnings.simplefilter("ignore", SabirWarning)  # as typed as an error
    warnings.filterwarnings("error", ".*please report it", SabirWarning)


# the stages


def stages_of(data: bytes, form: str) -> Iterator[dict[str, Any]]:
    """Put one file through every stage, and yield what came of each."""
    import sabir  # ruff: ignore[import-outside-top-level]  the parent needs none of it

    sabir.set_default_limits(sabir.Limits.untrusted()._replace(iterations=ITERATIONS))
    held: list[Any] = []
    for stage, work in _stages(data, form, held).items():
        began = time.process_time()
        outcome, message, typed, errors = _tried(work)
        yield {"told": [stage, outcome, message[:MOST_TOLD], typed, time.process_time() - began]}
        yield {"errors": errors}
        if not held:
            return


def _stages(data: bytes, form: str, held: list[Any]) -> dict[str, Callable[[], Any]]:
    """Return the stages in order; the first puts the model into `held`."""
    import sabir  # ruff: ignore[import-outside-top-level]  the parent needs none of it
    from hostile.feeds import feeds_for  # ruff: ignore[import-outside-top-level]  the parent needs none of it
    from support.differences import difference, scale_of  # ruff: ignore[import-outside-top-level]  as above

    results: list[Any] = []

    def loaded() -> None:
        held.append(sabir.loads(data, format=form))

    def saved(other: str) -> None:
        sabir.loads(sabir.dumps(held[0], format=other), format=other)

    def evaluated() -> None:
        results.append([*sabir.evaluate(held[0], feeds_for(held[0])).values()])

    def compiled() -> None:
        found = [*sabir.Session(held[0], engine="compiled").run(feeds_for(held[0])).values()]
        for expected in results:  # none where the interpreter refuses the model
            if problem := difference(found, expected, scale_of(held[0])):
                raise AssertionError(problem)

    return {
        "load": loaded,
        "findings": lambda: _findings(held[0]),
        "text": lambda: sabir.parse(sabir.text(held[0])),
        "dumps": lambda: saved("protobuf"),
        "json": lambda: saved("json"),
        "textproto": lambda: saved("textproto"),
        "repr": lambda: repr(held[0]),
        "evaluate": evaluated,
        "compiled": compiled,
        "infer": lambda: sabir.infer(held[0]),
        "inline": lambda: sabir.inline(held[0]),
    }


def _findings(model: Any) -> int:
    """Look at what the check finds; returns how many errors there are."""
    import sabir  # ruff: ignore[import-outside-top-level]  the parent needs none of it

    found = list(sabir.findings(model))
    for message in map(str, found[:1000]):
        if len(message) > MOST_TEXT or not message.isprintable():
            raise RuntimeError(f"a finding of {len(message)} characters: {message[:100]!r}")
    return sum(f.severity == "error" for f in found)


def _tried(work: Callable[[], Any]) -> tuple[str, str, bool, int]:
    """Return how a stage ended, what it said, whether the error has a type, and how many errors it counted."""
    import sabir  # ruff: ignore[import-outside-top-level]  the parent needs none of it

    try:
        answer = work()
    except sabir.SabirError as error:
        return type(error).__name__, str(error), True, 0
    except Exception as error:  # ruff: ignore[blind-except]  any other is what is looked for
        return type(error).__name__, f"{str(error)[:300]} at {_place(error)}", False, 0
    return "ok", "", True, answer if isinstance(answer, int) else 0


def _place(error: Exception) -> str:
    """Say where an error was raised: the innermost lines."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))


def unexpected(case: Case, result: Result) -> Iterator[str]:
    """Say where a case came out other than it should."""
    if case.outcome == "refused" and not result.refused:
        yield "was accepted"
    if case.outcome == "sound" and not result.sound:
        told = [f"{t.stage}: {t.message[:200]}" for t in result.stages if t.outcome != "ok"]
        yield f"was refused: {result.errors} errors found; {told}"


if __name__ == "__main__":
    _serve()
