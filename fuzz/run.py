"""Run a coverage-guided target: `python fuzz/run.py wire --seconds 60`; without a name, all of them in turn.

`--seed N` makes the run another one; `--engines reference,compiled` runs models in both, which must end
alike. New inputs are dropped unless `--corpus FOLDER` keeps them. A file that breaks something is left in
`--found` (by default fuzz/found), and the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
TARGETS = ("wire", "text", "json", "check", "infer", "evaluate")
LARGEST = 8192
ENGINES = "SABIR_FUZZ_ENGINES"  # as in _common, which imports what is to be instrumented


def main() -> int:
    """Run what the command line asks for; returns 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("target", nargs="*", choices=[*TARGETS, []], help="what to fuzz; all by default")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--runs", type=int, default=-1, help="stop each target after so many inputs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, help="keep new inputs in this folder, one for each target")
    parser.add_argument("--found", type=Path, default=HERE / "found")
    parser.add_argument(
        "--engines", default="reference", help="what runs models: reference, or also compiled"
    )
    options = parser.parse_args()
    os.environ[ENGINES] = options.engines
    options.found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        failed = _failures(options, Path(scratch))
    print(f"found something: {', '.join(failed)}" if failed else "nothing found", flush=True)
    return 1 if failed else 0


def _failures(options: argparse.Namespace, scratch: Path) -> list[str]:
    """Run the targets in turn, and return those that found something."""
    log = scratch / "together.log"
    failed: list[str] = []
    with log.open("w") as errors, subprocess.Popen(
        [sys.executable, "together.py"], cwd=HERE, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
    ) as process:  # fmt: skip
        if process.stdin is None or process.stdout is None:
            raise AssertionError
        for target in options.target or TARGETS:
            output = scratch / f"{target}.log"
            request = [target, _arguments(target, options, scratch), str(output)]
            print(json.dumps(request), file=process.stdin, flush=True)
            code = process.stdout.readline().strip()
            if code != "0":
                failed.append(target)
            _tell(target, output if output.exists() else log, code)
    return failed


def _arguments(target: str, options: argparse.Namespace, scratch: Path) -> list[str]:
    """Return the options of libFuzzer for a target."""
    grown = (options.corpus or scratch) / target
    grown.mkdir(parents=True, exist_ok=True)
    return [
        str(grown.resolve()), str(HERE / "corpus" / target),
        f"-max_total_time={options.seconds}", f"-runs={options.runs}", f"-seed={options.seed}",
        f"-max_len={LARGEST}",
        f"-artifact_prefix={options.found.resolve() / target}-", "-timeout=30", "-rss_limit_mb=3000",
        "-print_final_stats=1", "-verbosity=1",
    ]  # fmt: skip


def _tell(target: str, output: Path, code: str) -> None:
    """Print how far a target came, and the end of its output where it found something."""
    lines = output.read_text("utf-8", "replace").splitlines()
    told = [line for line in lines if line.startswith("stat::number_of_executed_units") or "cov:" in line]
    print(f"{target}: {' '.join(told[-2:])}", flush=True)
    if code != "0":
        print("\n".join([line for line in lines if not line.startswith("#")][-40:]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
