"""Run the unit tests of onnx's repository against `sabir.compat`: `python tools/run_onnx_tests.py FOLDER`.

FOLDER is `tests/python` of onnx 1.23: of its repository, or of the sdist from PyPI. `--only NAME` runs one
module,
`--write` also writes docs/compat-tests.md, the failures with their reasons. Nothing is fetched.
"""

from __future__ import annotations

import argparse
import subprocess  # ruff: ignore[suspicious-subprocess-import]  a process for each module
import sys
import tempfile
import types
import xml.etree.ElementTree as ET  # ruff: ignore[suspicious-xml-etree-import]  pytest wrote it
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

import sabir.compat

PAGE = Path(__file__).parents[1] / "docs" / "compat-tests.md"
# they test parts of onnx that no other package has
LEFT_OUT = {
    "backend_test": "runs the cases of onnx.backend.test, which tests/backend runs",
    "backend_reference_test": "runs the cases of onnx.backend.test, which tests/backend runs",
    "onnx_sphinx_test": "tests the documentation of onnx",
}
# a reason for the failures whose test or message contains the text
REASONS: tuple[tuple[str, str], ...] = ()
SECONDS = 1500


class Result(NamedTuple):
    """One test: its module, its name, `passed`, `failed` or `skipped`, and the last line of the failure."""

    module: str
    name: str
    outcome: str
    message: str = ""


class PrivateParts:
    """Finds modules of onnx's reference implementation, whose private functions some tests import.

    A test that calls one of them fails; the other tests of its module run.
    """

    # ruff: ignore[unused-method-argument]  the protocol of finders
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the module, for names below `onnx.reference.ops` and `onnx.backend.test` alone."""
        private = ("onnx.reference.ops.op_", "onnx.reference.ops._op_common")
        more = ("onnx.reference.ops_optimized", "onnx.backend.test")
        return ModuleSpec(name, self, is_package=True) if name.startswith((*private, *more)) else None  # pyright: ignore[reportArgumentType]  a loader

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return a module that has any name."""
        module = types.ModuleType(spec.name)
        module.__path__ = []
        module.__getattr__ = lambda name: _absent(f"{spec.name}.{name}")  # pyright: ignore[reportAttributeAccessIssue]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the module is complete."""


def _absent(name: str) -> Any:
    if name.rpartition(".")[2].startswith("__"):
        raise AttributeError(name)

    class Private(type):
        def __getattr__(cls, part: str) -> Any:
            return _absent(f"{name}.{part}")

    class Absent(metaclass=Private):
        def __init__(self, *_: Any, **__: Any) -> None:
            raise NotImplementedError(f"{name} is a private part of onnx")

        def __class_getitem__(cls, _: Any) -> Any:
            return cls

        eval = create = __init__

    return Absent


def run_inside(arguments: list[str]) -> int:
    """Run pytest in this process, in which onnx means Sabir."""
    import pytest  # ruff: ignore[import-outside-top-level]  after `install`

    sabir.compat.install()
    sys.meta_path.insert(0, PrivateParts())  # pyright: ignore[reportArgumentType]  importlib calls `find_spec` alone
    return pytest.main(arguments)


def results_of(path: Path) -> list[Result]:
    """Run one module of tests in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
            "--tb=line",
            f"--junit-xml={report}",
            "--rootdir",
            folder,
        ]
        command = [sys.executable, __file__, "--inside", "-c", "/dev/null", *options, str(path)]
        # ruff: ignore[subprocess-without-shell-equals-true]  this script
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=SECONDS, cwd=folder
        )
        if not report.exists():
            return [Result(path.stem, "(module)", "failed", (done.stdout + done.stderr).strip()[-300:])]
        return [_result(path.stem, case) for case in ET.parse(report).iter("testcase")]  # ruff: ignore[suspicious-xml-element-tree-usage]  as above


def _result(module: str, case: ET.Element) -> Result:
    name = f"{(case.get('classname') or '').rpartition('.')[2]}::{case.get('name')}"
    for kind, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(kind)
        if found is not None:
            return Result(module, name, outcome, " ".join((found.get("message") or "").split())[:300])
    return Result(module, name, "passed")


def reason_of(result: Result) -> str:
    """Return why a test fails."""
    text = f"{result.module} {result.name} {result.message}"
    return next((reason for part, reason in REASONS if part in text), f"open: {result.message[:120]}")


def summary(results: list[Result]) -> list[str]:
    """Return a line for each module, and one for all."""
    lines: list[str] = []
    for module in dict.fromkeys(r.module for r in results):
        counts = Counter(r.outcome for r in results if r.module == module)
        lines.append(f"{module:40} {_counts(counts)}")
    total = Counter(r.outcome for r in results)
    lines.append(f"{'all':40} {_counts(total)}")
    return lines


def _counts(counts: Counter[str]) -> str:
    return f"{counts['passed']:5} passed {counts['failed']:5} failed {counts['skipped']:4} skipped"


def main() -> None:
    """Run the tests and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--failures", action="store_true", help="print the failures too")
    arguments = parser.parse_args()
    paths = sorted(p for p in arguments.folder.rglob("*_test.py") if p.stem not in LEFT_OUT)
    paths = [p for p in paths if not arguments.only or p.stem in arguments.only]
    results: list[Result] = []
    for path in paths:
        found = results_of(path)
        results += found
        print(summary(found)[0], flush=True)
        if arguments.failures:
            for result in found:
                if result.outcome == "failed":
                    print(f"    {result.name}: {result.message}")
    print(summary(results)[-1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        sys.exit(run_inside(sys.argv[2:]))
    main()
