"""Run benchmarks, each in a process of its own, and record what they print in RESULTS.md.

    python benchmarks/run.py [--zoo FOLDER] [--before SRC] [NAME ...]

All of them without names; the sections of those that are not run stay as they were recorded.
"""

from __future__ import annotations

import argparse
import re
import subprocess  # ruff: ignore[suspicious-subprocess-import]  each script has its own process
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
TITLES = {
    "machine": "The machine",
    "load": "A file of 1 GiB",
    "compat": "The API of onnx",
    "graph": "Large graphs",
    "imports": "Importing",
    "light": "The light models",
    "operators": "Operators",
    "convert": "Conversion between operator sets",
    "classical": "Classical models",
    "small": "Small models, and two processes",
    "zoo": "Real architectures",
    "variants": "Integers, halves, and one token",
    "simplify": "Simplifying",
    "quantize": "Quantized models",
    "language": "Language models",
    "gradients": "Gradients",
    "training": "Training",
    "full_training": "Training at full size",
    "distributed": "Training by two processes, and planned for many",
    "before": "This tree and an earlier one",
}
NEEDS_ZOO = {"zoo", "variants", "simplify", "quantize", "language"}
# one has a folder of its own, one takes half an hour, one needs Ray
ONLY_BY_NAME = {"language", "full_training", "distributed"}
SCRIPTS = {"full_training": ("training.py", "--full", "--process-time")}  # others are called as the benchmark
WITH_ZOO = {"compat", "convert", "small", "before", *NEEDS_ZOO}  # scripts that take a folder of models
HEAD = """# Benchmark results

Written by `make bench`, which runs the scripts of this folder and replaces the sections it ran. Every
figure is a median of interleaved runs; a ratio above 1 means that Sabir is that many times faster than
the peer beside it, measured in the same run with the same number of threads.
"""


def main() -> None:
    """Run what is asked for; stop at the first script that fails."""
    cli = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cli.add_argument("names", nargs="*", metavar="NAME", help=", ".join(TITLES))
    cli.add_argument("--zoo", metavar="FOLDER", help="the folder of .onnx files for the benchmark zoo")
    cli.add_argument("--before", metavar="SRC", help="the `src` folder of an earlier tree")
    given = cli.parse_args()
    unknown = set(given.names) - set(TITLES)
    if unknown:
        cli.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(TITLES)}")
    wanted = [name for name in TITLES if name in (given.names or set(TITLES) - ONLY_BY_NAME)]
    for name in NEEDS_ZOO & set(wanted) if not given.zoo else ():
        if name in given.names:
            cli.error(f"{name} needs --zoo FOLDER, a folder of .onnx files")
        print(f"NOT RUN: {name}, which needs a folder of models: make bench ZOO=FOLDER", file=sys.stderr)
        wanted.remove(name)
    if not given.before and "before" in wanted:
        if "before" in given.names:
            cli.error("before needs --before SRC, the `src` folder of an earlier tree")
        wanted.remove("before")
    for place, name in enumerate(wanted, start=1):
        step = f"[{place}/{len(wanted)}]"
        print(f"{step} {TITLES[name]} ({name})", file=sys.stderr, flush=True)
        started = time.perf_counter()
        earlier = [given.before] if name == "before" else []
        record(name, output(name, [*earlier, *([given.zoo] if name in WITH_ZOO and given.zoo else [])]))
        print(f"{step} done in {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)


def output(name: str, arguments: list[str]) -> str:
    """Return what a script prints; its progress goes to our stderr as it comes."""
    script, *options = SCRIPTS.get(name, (f"{name}.py",))
    command = [sys.executable, str(HERE / script), *options, *arguments]
    done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  our own scripts
        command, stdout=subprocess.PIPE, text=True, check=False
    )
    print(done.stdout, flush=True)
    if done.returncode:
        raise SystemExit(f"{script} failed; {RESULTS.name} keeps the sections recorded so far")
    return done.stdout.strip()


def record(name: str, text: str) -> None:
    """Put a section into the results, in its place among the others."""
    sections = recorded()
    sections[name] = text
    parts = [f"<!-- {n} -->\n## {title}\n\n{sections[n]}\n" for n, title in TITLES.items() if n in sections]
    RESULTS.write_text("\n".join([HEAD, *parts]), encoding="utf-8")


def recorded() -> dict[str, str]:
    """Return the text of each section that the results hold."""
    if not RESULTS.exists():
        return {}
    marks = re.compile(r"^<!-- (\w+) -->\n## .*\n", re.MULTILINE)
    pieces = marks.split(RESULTS.read_text(encoding="utf-8"))[1:]
    return {name: text.strip() for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


if __name__ == "__main__":
    main()
