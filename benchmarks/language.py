"""Decoding and prompts of language models, beside onnxruntime-genai or onnxruntime.

    python benchmarks/language.py [--genai PYTHON] FOLDER_OR_MODEL ...

A folder is one of onnxruntime-genai's builder, whose peer is onnxruntime-genai, run by an interpreter that
has it (`--genai`, by default this one). A model is a decoder that joins its caches by Concat, with
`past_key_values.*` inputs and `present.*` outputs; its peer is onnxruntime, which gets and returns caches as
arrays. `BENCH_THREADS` is the number of threads. A step is the computation of one token after so many
others; what it must read, weights and caches, is shown with the share of the speed of memory reached.

A folder is also started anew, in a process of its own, once the system has its file in memory and Sabir its
kernels on the disk: the seconds from the first import to the first token after a prompt, and the most
memory that the process held, with the file where it is mapped, after more tokens.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess  # ruff: ignore[suspicious-subprocess-import]  for the peer's process
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import harness as h  # before numpy: it pins the threads
import numpy as np

import sabir
from sabir.generation import with_cache_buffers
from sabir.ir import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

POSITIONS = (128, 1024)  # before a step, and the lengths of prompts
CAPACITY = 2048
STEPS = 32  # tokens in turn, after which a decoder goes back
STREAMED = 256 * h.MIB
GENAI = """
import sys, time
import numpy as np
import onnxruntime_genai as og
folder, threads = sys.argv[1], int(sys.argv[2])
config = og.Config(folder)
config.overlay('{"model": {"decoder": {"session_options": {"intra_op_num_threads": %d}}}}' % threads)
model = og.Model(config)
def generator():
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=2048, do_sample=False)
    return og.Generator(model, params)
decoder = generator()
print("ready", flush=True)
for line in sys.stdin:
    what, count = line.split()
    count = int(count)
    ids = np.arange(1, count + 1, dtype=np.int32) % 1000 + 1
    if what == "prompt":
        decoder = generator()
        started = time.perf_counter()
        decoder.append_tokens(ids)
        decoder.generate_next_token()
        taken = time.perf_counter() - started
    elif what == "begin":
        decoder = generator()
        decoder.append_tokens(ids)
        decoder.generate_next_token()
        taken = 0.0
    else:
        started = time.perf_counter()
        decoder.generate_next_token()
        taken = time.perf_counter() - started
        if decoder.token_count() >= count + 33:
            decoder.rewind_to(count)
            decoder.append_tokens(np.array([7], np.int32))
            decoder.generate_next_token()
    print(taken, flush=True)
"""
# a process that writes the seconds to its first token, and its peak of resident memory in bytes
BEGIN = """
import sys, time
started = time.perf_counter()
folder, threads, count, more = sys.argv[1], *map(int, sys.argv[2:])
ids = [i % 1000 + 1 for i in range(1, count + 1)]
"""
# getrusage would count the memory of the process that started this one
END = """
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
print(first, peak * 1024)
"""
START_SABIR = f"""{BEGIN}
from sabir import TextGenerator
generator = TextGenerator(folder, threads=threads)
tokens = generator.stream(ids, max_new_tokens=more, min_new_tokens=more)
next(tokens)
first = time.perf_counter() - started
list(tokens)
{END}"""
START_GENAI = f"""{BEGIN}
import numpy as np
import onnxruntime_genai as og
config = og.Config(folder)
config.overlay('{{"model": {{"decoder": {{"session_options": {{"intra_op_num_threads": %d}}}}}}}}' % threads)
model = og.Model(config)
params = og.GeneratorParams(model)
params.set_search_options(max_length=count + more, min_length=count + more, do_sample=False)
decoder = og.Generator(model, params)
decoder.append_tokens(np.array(ids, np.int32))
decoder.generate_next_token()
first = time.perf_counter() - started
while not decoder.is_done():
    decoder.generate_next_token()
{END}"""
STARTS = 5  # of each contestant, in turns, after one that does not count


class Decoder(NamedTuple):
    """A contestant: what prepares a position, and the seconds of a step there and of a prompt."""

    name: str
    begin: Callable[[int], object]
    step: Callable[[], float]
    prompt: Callable[[int], float]


def main() -> None:
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("--genai", default=sys.executable, metavar="PYTHON")
    cli.add_argument("models", type=Path, nargs="+")
    given = cli.parse_args()
    speed = streaming()
    print(f"{h.THREADS} thread(s) on both sides; memory is read at {speed / 1e9:.1f} GB/s.\n")
    rows = [row for path in given.models for row in _rows(path, given.genai, speed)]
    h.table(("model", "run", "Sabir", "peer", "ratio", "tokens/s", "reads", "of memory's speed"), rows)
    started = [row for path in given.models if path.is_dir() for row in _starts(path, given.genai)]
    if started:
        print()
        h.table(("model", "after a start", "Sabir", "onnxruntime-genai", "ratio"), started)


def streaming() -> float:
    """Return the bytes a second that a sum of a large tensor reads."""
    b = sabir.Builder(21)
    b.output(b.ReduceSum(b.input("x", "float", [STREAMED >> 12, 1 << 10]), [1], keepdims=0), "y")
    session = sabir.Session(b.model(), threads=h.THREADS)
    feeds = {"x": np.ones((STREAMED >> 12, 1 << 10), np.float32)}
    session.run(feeds)
    case = h.Case("stream", lambda _: session.run(feeds))
    return STREAMED / h.medians([case], rounds=9, pick=min)["stream"]


def _rows(path: Path, genai: str, speed: float) -> list[tuple[str, ...]]:
    file = path / "model.onnx" if path.is_dir() else path
    h.progress(str(path))
    model = sabir.load(file)
    ours = _sabir(model)
    peer = _genai(path, genai) if path.is_dir() else _onnxruntime(file, model)
    name = path.name if path.is_dir() else path.stem
    found: list[tuple[str, ...]] = []
    for count in POSITIONS:
        for each in (ours, peer):
            each.begin(count)
        a, b = _medians([ours, peer], lambda each: each.step())
        read = _weights(model) + _cached(model, count)
        found.append((
            name, f"a step after {count}", h.time_text(a), h.time_text(b), h.ratio_text(b, a), f"{1 / a:.1f}",
            f"{read / h.MIB:.0f} MiB", f"{read / a / speed:.0%}",
        ))  # fmt: skip
    for count in POSITIONS:
        a, b = _medians([ours, peer], lambda each, count=count: each.prompt(count), blocks=3, size=1)
        found.append((
            name, f"a prompt of {count}", h.time_text(a), h.time_text(b), h.ratio_text(b, a),
            f"{count / a:.0f}", "", "",
        ))  # fmt: skip
    return found


def _starts(path: Path, genai: str) -> list[tuple[str, ...]]:
    """Return the rows of processes that are started anew: time to the first token, and memory."""
    h.progress(f"{path}, started anew")
    ways = ((sys.executable, START_SABIR), (genai, START_GENAI))
    runs = [[_started(path, *way) for way in ways] for _ in range(STARTS + 1)][1:]
    (ours, memory), (theirs, other) = (
        [h.statistics.median(run[way][figure] for run in runs) for figure in range(2)] for way in range(2)
    )
    size = [f"{peak / h.MIB:.0f} MiB" for peak in (memory, other)]
    return [
        (path.name, f"first token after {POSITIONS[0]}", h.time_text(ours), h.time_text(theirs),
         h.ratio_text(theirs, ours)),
        (path.name, f"peak of memory, {STEPS} tokens", *size, h.ratio_text(other, memory)),
    ]  # fmt: skip


def _started(path: Path, python: str, code: str) -> tuple[float, float]:
    """Return the seconds to the first token of a new process, and its peak of memory in bytes."""
    arguments = [str(path), str(h.THREADS), str(POSITIONS[0]), str(STEPS)]
    done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [python, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    first, memory = done.stdout.split()[-2:]
    return float(first), float(memory)


def _medians(
    decoders: Sequence[Decoder], run: Callable[[Decoder], float], blocks: int = 5, size: int = STEPS
) -> list[float]:
    """Return the median seconds of each contestant, which run in turns, a block of runs each.

    Both need some ten steps after a pause until the clock and the caches are what they are while text is
    generated, so a block of steps has many more.
    """
    taken: dict[str, list[float]] = {each.name: [] for each in decoders}
    for _ in range(blocks):
        for each in decoders:
            h.time.sleep(h.PAUSE)
            run(each)
            taken[each.name] += [run(each) for _ in range(size)]
    return [h.statistics.median(times) for times in taken.values()]


# ---------------------------------------------------------------- Sabir


def _pairs(model: Any) -> dict[str, str]:
    names = [value.name for value in model.graph.outputs if value.name.startswith("present")]
    return {name: name.replace("present", "past_key_values") for name in names}


def _inputs(model: Any, past: int, new: int) -> dict[str, Any]:
    """Return the feeds but the caches."""
    known = {value.name for value in model.graph.inputs}
    feeds = {
        "input_ids": np.arange(1, new + 1)[None] % 1000 + 1,
        "attention_mask": np.ones((1, past + new), np.int64),
        "position_ids": np.arange(past, past + new)[None],
        "past_length": np.array([past], np.int64),
    }
    return {name: array for name, array in feeds.items() if name in known}


def _cache(model: Any, past: str, rows: int) -> np.ndarray:
    kind = model.graph.value(past).type
    _, heads, _, size = kind.shape
    return np.zeros((1, heads, rows, size if isinstance(size, int) else _head(model)), kind.element.dtype)


def _head(model: Any) -> int:
    """Return the size of a head, which the builder leaves open: twice the pairs that are rotated."""
    call = next(node for node in model.graph if node.op == "GroupQueryAttention")
    return 2 * int(call.inputs[7].type.shape[1])


def _sabir(model: Any) -> Decoder:
    pairs = _pairs(model)
    buffered = with_cache_buffers(model, pairs)
    session = sabir.Session(buffered, threads=h.THREADS, caches=pairs, sizes=["past_length"])
    buffers = {past: _cache(model, past, CAPACITY) for past in pairs.values()}
    out = {present: buffers[past] for present, past in pairs.items()}
    places = itertools.cycle([0])

    def run(past: int, new: int) -> float:
        feeds = {**_inputs(buffered, past, new), **buffers}
        started = h.time.perf_counter()
        session.run(feeds, out=out)
        return h.time.perf_counter() - started

    def begin(past: int) -> None:
        nonlocal places
        places = itertools.cycle(range(past, past + STEPS))
        run(past, 1)

    return Decoder("Sabir", begin, lambda: run(next(places), 1), lambda count: run(0, count))


# ---------------------------------------------------------------- peers


def _onnxruntime(file: Path, model: Any) -> Decoder:
    session, pairs = h.onnxruntime_session(file), _pairs(model)
    caches: dict[str, np.ndarray] = {}
    first = past = 0

    def run(rows: int, new: int) -> float:
        feeds = {**_inputs(model, rows, new), **caches}
        started = h.time.perf_counter()
        results = session.run([*pairs], feeds)
        taken = h.time.perf_counter() - started
        caches.update(zip(pairs.values(), results, strict=True))
        return taken

    def begin(rows: int) -> None:
        nonlocal first, past
        first = past = rows
        caches.update({name: _cache(model, name, rows) for name in pairs.values()})

    def step() -> float:
        nonlocal past
        if past >= first + STEPS:
            begin(first)
        past += 1
        return run(past - 1, 1)

    def prompt(count: int) -> float:
        begin(0)
        return run(0, count)

    return Decoder("onnxruntime", begin, step, prompt)


def _genai(folder: Path, python: str) -> Decoder:
    child = subprocess.Popen(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
        [python, "-c", GENAI, str(folder), str(h.THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    to, answers = child.stdin, child.stdout
    if to is None or answers is None or answers.readline() != "ready\n":
        raise RuntimeError(f"onnxruntime-genai could not load {folder}")
    place = 0

    def ask(what: str, count: int) -> float:
        print(what, count, file=to, flush=True)
        return float(answers.readline())

    def begin(count: int) -> None:
        nonlocal place
        place = count
        ask("begin", count)

    return Decoder("onnxruntime-genai", begin, lambda: ask("step", place), lambda n: ask("prompt", n))


# ---------------------------------------------------------------- what a step reads


def _weights(model: Any) -> int:
    """Return the bytes of the initializers that a step reads whole: those that not only Gather reads."""
    found = 0
    for value, tensor in model.graph.initializers.items():
        readers = {use.user.op for use in value.uses if isinstance(use.user, Node)}
        if readers - {"Gather", "GroupQueryAttention"}:
            found += tensor.nbytes
    return found


def _cached(model: Any, rows: int) -> int:
    return sum(_cache(model, past, rows).nbytes for past in _pairs(model).values())


if __name__ == "__main__":
    main()
