"""Random mutants of good models, each put through every stage.

`python fuzz/mutate.py --count 100000` makes that many, `--seconds S` stops earlier; `--seed N` makes others;
`--jobs J` uses J processes; `--engines reference,compiled` runs models in both, which must end alike. Each
distinct find is printed once and its file kept in the folder `--keep`.
Exits with 1 where there was one.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import multiprocessing
import os
import random
import resource
import select
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "tests")]

import _common  # ruff: ignore[module-import-not-at-top-of-file]  after the path is set
from google.protobuf.message import DecodeError  # ruff: ignore[module-import-not-at-top-of-file]  after the path is set

from hostile.corpus import CASES  # ruff: ignore[module-import-not-at-top-of-file]  after the path is set
from sabir import SabirWarning  # ruff: ignore[module-import-not-at-top-of-file]  after the path is set
from sabir.proto import ModelProto  # ruff: ignore[module-import-not-at-top-of-file]  after the path is set

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 40  # seconds for one mutant, after which its process is ended
ADDRESS_SPACE = 4 << 30
LARGEST_SEED = 20_000
PROGRESS = 5000
NUMBERS = (0, 1, -1, 2, 7, 64, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1, -(2**63))
FLOATS = (0.0, -1.0, float("nan"), float("inf"), 1e30, -1e-30)
TEXTS = ("", "x", "y", "\x1b[31m\n", "N" * 500, "zzz", "Relu", "If", "Loop", "ai.onnx.ml", "9" * 30, "N*N+1")


# seeds


def seeds() -> list[bytes]:
    """Return the models to start from: official ones, and the cases of the hostile corpus that are read."""
    cases = [c for c in CASES.values() if c.outcome != "refused" and c.form == "protobuf" and not c.slow]
    found = [*official(), *(c.make() for c in cases)]
    return [data for data in dict.fromkeys(found) if 0 < len(data) < LARGEST_SEED and is_message(data)]


def official() -> list[bytes]:
    """Return onnx's own test models."""
    import onnx  # ruff: ignore[import-outside-top-level, banned-api]  its test models
    from onnx.backend.test.loader import (  # ruff: ignore[import-outside-top-level, banned-api]  its test models
        load_node_model_tests,
    )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [case.model.SerializeToString() for case in load_node_model_tests() if case.model]
    folder = Path(onnx.__file__).parent
    found += [p.read_bytes() for p in sorted(folder.rglob("*.onnx")) if p.stat().st_size < LARGEST_SEED]
    return found


def is_message(data: bytes) -> bool:
    """Say whether protobuf reads it."""
    try:
        ModelProto.FromString(data)
    except DecodeError:
        return False
    return True


# mutation


def mutant(rng: random.Random, models: list[bytes]) -> bytes:
    """Return one mutant: changed as a message, as bytes, or as both."""
    data = rng.choice(models)
    how = rng.random()
    if how < 0.75:
        data = of_message(rng, data, models)
    if how > 0.6:
        data = _of_bytes(rng, data)
    return data


def of_message(rng: random.Random, data: bytes, models: list[bytes]) -> bytes:
    """Return a mutant of a message, changed in some of its messages."""
    model = ModelProto.FromString(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        holder = _some_message(rng, model)
        with contextlib.suppress(ValueError):  # text that is no UTF-8, numbers beyond 32 bits
            rng.choice(_CHANGES)(rng, holder, model, models)
    return model.SerializeToString()


def _some_message(rng: random.Random, model: Any) -> Any:
    """Walk down from the model, and stop somewhere."""
    here = model
    while True:
        inner = [m for field, value in here.ListFields() if field.message_type for m in _each(value)]
        if not inner or (here is not model and rng.random() < 0.25):
            return here
        here = rng.choice(inner)


def _each(value: Any) -> list[Any]:
    return [value] if hasattr(value, "DESCRIPTOR") else list(value)


def _some_field(rng: random.Random, holder: Any) -> tuple[Any, Any] | None:
    present = holder.ListFields()
    return rng.choice(present) if present else None


def _delete(rng: random.Random, holder: Any, _model: Any, _models: list[bytes]) -> None:
    found = _some_field(rng, holder)
    if found is None:
        return
    field, value = found
    if _is_list(value):
        del value[rng.randrange(len(value))]
    else:
        holder.ClearField(field.name)


def _duplicate(rng: random.Random, holder: Any, _model: Any, _models: list[bytes]) -> None:
    found = _some_field(rng, holder)
    if found is None or not _is_list(found[1]):
        return
    field, value = found
    item = rng.choice(list(value))
    for _ in range(rng.choice((1, 1, 2, 20))):
        value.add().CopyFrom(item) if field.message_type else value.append(item)


def _shuffle(rng: random.Random, holder: Any, _model: Any, _models: list[bytes]) -> None:
    found = _some_field(rng, holder)
    if found is None or not _is_list(found[1]) or len(found[1]) < 2:
        return
    field, value = found
    items = list(value)
    copies = [type(i)() for i in items] if field.message_type else items
    if field.message_type:
        for copy, item in zip(copies, items, strict=True):
            copy.CopyFrom(item)
    rng.shuffle(copies)
    del value[:]
    value.extend(copies)


def _extreme(rng: random.Random, holder: Any, _model: Any, _models: list[bytes]) -> None:
    """Set a field, present or not, to something extreme."""
    field = rng.choice(holder.DESCRIPTOR.fields)
    if field.message_type is not None:
        return
    pick = _value_for(rng, field)
    if not field.is_repeated:
        setattr(holder, field.name, pick)
    elif (values := getattr(holder, field.name)) and rng.random() < 0.7:
        values[rng.randrange(len(values))] = pick
    else:
        values.extend([pick] * rng.choice((1, 1, 3, 70)))


def _value_for(rng: random.Random, field: Any) -> Any:
    if field.cpp_type == field.CPPTYPE_STRING:
        text = rng.choice(TEXTS)
        return text.encode() if field.type == field.TYPE_BYTES else text
    if field.cpp_type in {field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE}:
        return rng.choice(FLOATS)
    if field.cpp_type == field.CPPTYPE_ENUM:
        return rng.choice((0, 1, 2, 3, 5, 7, 8, 9, 16, 22, 99, -1))
    return rng.choice((*NUMBERS, *range(30)))


def _swap_text(rng: random.Random, holder: Any, model: Any, _models: list[bytes]) -> None:
    """Give a text field another text that the model has: names then clash, or go in circles."""
    texts = [f for f in holder.DESCRIPTOR.fields if f.cpp_type == f.CPPTYPE_STRING and f.type != f.TYPE_BYTES]
    words = [w for n in model.graph.node for w in (*n.input, *n.output, n.op_type)]
    words += [v.name for v in (*model.graph.input, *model.graph.initializer)]
    if not texts or not words:
        return
    field, word = rng.choice(texts), rng.choice(words)
    if not field.is_repeated:
        setattr(holder, field.name, word)
    elif values := getattr(holder, field.name):
        values[rng.randrange(len(values))] = word
    else:
        values.append(word)


def _splice(rng: random.Random, _holder: Any, model: Any, models: list[bytes]) -> None:
    """Take over a message of the same kind from another model."""
    other = ModelProto.FromString(rng.choice(models))
    for _ in range(8):
        part, place = _some_message(rng, other), _some_message(rng, model)
        if part.DESCRIPTOR is place.DESCRIPTOR and part is not other:
            place.MergeFrom(part) if rng.random() < 0.3 else place.CopyFrom(part)
            return


def _wrap(rng: random.Random, _holder: Any, model: Any, _models: list[bytes]) -> None:
    """Put a copy of the graph inside a node."""
    inner = type(model.graph)()
    inner.CopyFrom(model.graph)
    node = model.graph.node.add(op_type=rng.choice(("If", "Loop", "Scan", "SequenceMap")), output=["wrapped"])
    if rng.random() < 0.5:
        node.input.extend([v.name for v in inner.input][:3])
    for name in ("then_branch", "else_branch") if node.op_type == "If" else ("body",):
        node.attribute.add(name=name, type=5).g.CopyFrom(inner)


_CHANGES: list[Callable[[random.Random, Any, Any, list[bytes]], None]] = [
    _delete, _duplicate, _shuffle, _extreme, _extreme, _extreme, _swap_text, _swap_text, _splice, _splice,
    _wrap,
]  # fmt: skip


def _is_list(value: Any) -> bool:
    return not isinstance(value, (str, bytes)) and hasattr(value, "__len__")


def _of_bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(changed)) if changed else 0
        match rng.randrange(5):
            case 0:
                changed[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del changed[at : at + rng.randrange(1, 9)]
            case 2:
                changed[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 3:
                stop = min(len(changed), at + rng.randrange(1, 40))
                changed[at:at] = changed[at:stop]
            case _:
                changed[at : at + 1] = bytes([changed[at] ^ 1 << rng.randrange(8)] if changed else b"")
    return bytes(changed)


# running


def run(data: bytes) -> None:
    """Put a mutant through every stage; what raises is a find."""
    model = _common.read(data)
    if model is None:
        return
    _common.check(model)
    _common.written(model)
    _common.evaluate(model)
    _common.infer(model)
    _common.inline(model)


def worker(seed: int, first: int, count: int, until: float, pipe: int, models: list[bytes]) -> None:
    """Run mutants, and tell of each before it runs, so that the parent knows which one ended the process."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", SabirWarning)  # as typed as an error
    for number in range(first, count):
        if time.monotonic() > until:
            break
        if number % 50 == 0:
            os.write(pipe, f"at {number}\n".encode())
        data = mutant(random.Random(f"{seed} {number}"), models)
        signal.alarm(PATIENCE)
        try:
            run(data)
        except Exception as error:  # ruff: ignore[blind-except]  that is what is looked for
            os.write(pipe, f"found {number} {_common.told(error)!r}\n".encode())
    os.write(pipe, f"end {number + 1}\n".encode())


def hunt(options: argparse.Namespace, models: list[bytes], seed: int, tally: Counter[str]) -> int:
    """Run one worker after another until all mutants are done; returns how many were."""
    first, until = options.first, time.monotonic() + options.seconds
    while first < options.count and time.monotonic() < until:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            worker(seed, first, options.count, until, writing, models)
            os._exit(0)
        os.close(writing)
        reached, ended = _listened(reading, seed, tally, options, models)
        os.close(reading)
        _, status = os.waitpid(child, 0)
        if ended is not None:
            return ended
        first = _blamed(reached, seed, status, tally, options, models)
    return first


def _listened(
    reading: int, seed: int, tally: Counter[str], options: argparse.Namespace, models: list[bytes]
) -> tuple[int, int | None]:
    held, reached = b"", options.first
    while True:
        select.select([reading], [], [])
        read = os.read(reading, 1 << 16)
        if not read:
            return reached, None
        *lines, held = (held + read).split(b"\n")
        for line in map(bytes.decode, lines):
            word, number, *rest = line.split(" ", 2)
            if word == "at":
                reached = int(number)
                if reached and reached % PROGRESS == 0:
                    print(f"seed {seed}: {reached} mutants", file=sys.stderr, flush=True)
            elif word == "end":
                return reached, int(number)
            else:
                _keep(options, seed, int(number), rest[0], tally, models)


def _blamed(
    reached: int,
    seed: int,
    status: int,
    tally: Counter[str],
    options: argparse.Namespace,
    models: list[bytes],
) -> int:
    """Find which mutant since the last sign of life ended the process, by running each alone."""
    for number in range(reached, reached + 50):
        child = os.fork()
        if not child:
            null = os.open(os.devnull, os.O_WRONLY)
            worker(seed, number, number + 1, time.monotonic() + 1000, null, models)
            os._exit(0)
        _, alone = os.waitpid(child, 0)
        if alone:
            how = "hang" if os.WIFSIGNALED(alone) and os.WTERMSIG(alone) == signal.SIGALRM else "crash"
            _keep(options, seed, number, f"{how}, status {alone}", tally, models)
            return number + 1
    tally[f"a process ended with {status}, and no mutant does so alone"] += 1
    return reached + 50


def _keep(
    options: argparse.Namespace, seed: int, number: int, told: str, tally: Counter[str], models: list[bytes]
) -> None:
    tally[told] += 1
    if tally[told] > 1:
        return
    print(f"seed {seed}, mutant {number}: {told}", flush=True)
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        data = mutant(random.Random(f"{seed} {number}"), models)
        (options.keep / f"{hashlib.sha1(data, usedforsecurity=False).hexdigest()[:12]}.onnx").write_bytes(
            data
        )


def main() -> int:
    """Run mutants, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first mutant")
    parser.add_argument("--keep", type=Path, help="the folder for files that break something")
    parser.add_argument(
        "--engines", default="reference", help="what runs models: reference, or also compiled"
    )
    options = parser.parse_args()
    os.environ[_common.ENGINES] = options.engines
    models = seeds()
    workers = [
        multiprocessing.Process(target=job, args=(options, models, number)) for number in range(options.jobs)
    ]
    for process in workers:
        process.start()
    for process in workers:
        process.join()
    return 1 if any(process.exitcode for process in workers) else 0


def job(options: argparse.Namespace, models: list[bytes], number: int) -> None:
    """Run the mutants of one of the jobs."""
    began, tally = time.monotonic(), Counter[str]()
    done = hunt(options, models, options.seed + 1000 * number, tally)
    seconds = time.monotonic() - began
    print(
        f"{done - options.first} mutants of {len(models)} models in {seconds:.0f} s, {len(tally)} finds",
        flush=True,
    )
    sys.exit(1 if tally else 0)


if __name__ == "__main__":
    sys.exit(main())
