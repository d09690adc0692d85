"""Targets one after another, each in a fork of one process, as importing Sabir instrumented takes long.

`fuzz/run.py` starts it. Each line of standard input is a target as JSON: its name, the options of libFuzzer,
and the file for its output. Each line of standard output is an exit code.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import sys

import _harness

with _harness.instrumented():
    import _common

    _common.import_rooms()


def main() -> None:
    """Run every target that standard input names."""
    gc.collect()
    gc.freeze()  # a fork that looks through what is here would copy it
    for line in sys.stdin:
        name, options, output = json.loads(line)
        child = os.fork()
        if not child:
            _fuzz(name, options, output)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _fuzz(name: str, options: list[str], output: str) -> None:
    """Run a target in this process, and end it."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(descriptor, stream.fileno())
    sys.argv = [name, *options]
    runpy.run_module(f"targets.{name}", run_name="__main__")
    os._exit(0)


if __name__ == "__main__":
    main()
