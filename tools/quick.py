"""Check what changed since the main branch, in about two minutes: `make quick`.

The checks are ruff and pyright on the changed files, the import contracts, and the tests of what changed, the
nearest first: the changed tests, the tests that import a changed module (also through `tests/support`), cheap
tests of the repository, and the folders of tests that mirror the changed packages; then the docstrings of the
changed packages and the generic tests of the changed operators. No test is started after `--seconds`.
`--list` prints the tests in their order, and runs nothing.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import re
import subprocess  # ruff: ignore[suspicious-subprocess-import]  git and the checks are programs
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = Path(__file__).parents[1]
ROOM = re.compile(r"src/sabir/opsets/(?:onnx|onnx_ml|preview|training)/([a-z]\w*)\.py")
PACKAGE = re.compile(r"src/sabir/(\w+)/.*\.py")
PAGE = re.compile(r"(?:docs/)?[\w-]+\.md")
UNTESTED_PAGES = {"CHANGELOG.md", "docs/rules.md"}
REPOSITORY = ("test_tree", "test_module_names", "test_generated", "test_looped_cases")  # cheap ones
GENERIC = ("tests/rooms/test_facts.py", "tests/rooms/test_rooms.py", "tests/rooms/test_declarations.py")
COMMON_WORDS = {"", "test", "compilation", "init", "cpu"}
PART_OF_TIME = 0.7  # that is left, for each run of pytest but the last
SELECTED_NONE = 5  # an exit code of pytest


class Selection(NamedTuple):
    """The tests of a change: files in the order in which they run, packages with examples, operators."""

    files: tuple[str, ...]
    packages: tuple[str, ...]
    operators: tuple[str, ...]

    def runs(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the names of the runs of pytest with their arguments."""
        if self.files:
            yield "tests", list(self.files)
        if self.packages:
            names = " or ".join(f"[{name}." for name in self.packages)
            yield "examples of docstrings", ["tests/repo/test_examples.py", "-k", names]
        if self.operators:
            yield "generic tests of operators", [*GENERIC, "-k", " or ".join(self.operators)]


def main() -> int:
    """Run the checks; the exit code is 1 if one of them fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--since", default="main", help="the branch or commit to compare with")
    parser.add_argument("--seconds", type=float, default=120, help="start no test after so many seconds")
    parser.add_argument("--list", action="store_true", help="print the tests, and run nothing")
    options = parser.parse_args()
    changed = changed_since(options.since)
    chosen = selection(changed, [p.relative_to(ROOT).as_posix() for p in ROOT.glob("tests/**/test_*.py")])
    if options.list:
        for name, arguments in chosen.runs():
            print(f"{name}:", *arguments, sep="\n  ")
        return 0
    print(f"{len(changed)} changed files since {options.since}, {len(chosen.files)} files of tests")
    started = time.monotonic()
    failed = list(failures(changed, chosen, started + options.seconds))
    outcome = f"failed: {', '.join(failed)}" if failed else "no check failed"
    print(f"{time.monotonic() - started:.0f} s; {outcome}")
    return 1 if failed else 0


def failures(changed: Iterable[str], chosen: Selection, end: float) -> Iterator[str]:
    """Run the checks and yield the names of those that fail; no test is started after `end`."""
    scripts = [name for name in changed if name.endswith((".py", ".pyi")) and (ROOT / name).is_file()]
    types = None
    if scripts:
        types = start([program("pyright"), "--pythonpath", sys.executable, *scripts])
        for name, command in checks(scripts):
            if start(command).wait():
                yield name
    runs = list(chosen.runs())
    for number, (name, arguments) in enumerate(runs, 1):
        left = (end - time.monotonic()) * (1 if number == len(runs) else PART_OF_TIME)
        within = f"--within={max(left, 1):.0f}"
        found = start([sys.executable, "-m", "pytest", "-q", within, *arguments]).wait()
        if found not in {0, SELECTED_NONE}:
            yield name
    if types is not None and types.wait():
        yield "pyright"


def checks(scripts: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the names and the commands of checks that take a few seconds."""
    yield "ruff check", [program("ruff"), "check", "--force-exclude", *scripts]
    yield "ruff format", [program("ruff"), "format", "--check", "--force-exclude", *scripts]
    if any(name.startswith("src/") for name in scripts):
        contracts = [program("lint-imports"), "--no-logo", "--no-cache"]
        yield "import contracts", contracts
        yield "cycles of imports", [*contracts, "--config", "tools/cycles.toml"]


def program(name: str) -> str:
    """Return the path of a program of the virtual environment."""
    return str(Path(sys.executable).with_name(name))


def start(command: list[str]) -> subprocess.Popen[bytes]:
    """Start a command in the root of the tree, with the sources of the tree."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}
    # ruff: ignore[subprocess-without-shell-equals-true]  the commands above
    return subprocess.Popen(command, cwd=ROOT, env=environment)


def changed_since(base: str) -> list[str]:
    """Return the files that differ from the last common commit with a branch: also new and removed ones."""
    common = git("merge-base", "HEAD", base).strip()
    differ = git("diff", "--name-only", "--no-renames", common)
    return sorted({*differ.splitlines(), *git("ls-files", "--others", "--exclude-standard").splitlines()})


def git(*arguments: str) -> str:
    """Return the output of a command of git."""
    command = ["git", *arguments]
    # ruff: ignore[subprocess-without-shell-equals-true]  git, wherever it is
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


# ---------------------------------------------------------------- which tests


def selection(
    changed: Iterable[str],
    tests: Iterable[str],
    imported: Callable[[str], frozenset[str]] | None = None,
) -> Selection:
    """Return the tests of changed files, the nearest first; all names are paths from the root of the tree.

    `imported` returns the modules that a file imports, `imports_of` by default.
    """
    changed, tests, imports = list(changed), sorted(tests), imported or imports_of
    modules = {module_name(n) for n in changed if n.endswith(".py") and not ROOM.fullmatch(n)}
    mirrors = [found for n in changed if (found := mirror(n, tests)) is not None]
    words = {word for name in changed for word in words_of(name)}
    ranked: list[tuple[int, int, str]] = []
    for test in tests:
        depth = max((m.count("/") + 1 for m in mirrors if test.startswith(f"{m}/")), default=0)
        if test in changed:
            rank = 0
        elif imports(test) & modules:
            rank = 1
        elif test.startswith("tests/repo/") and Path(test).stem in REPOSITORY:
            rank = 2
        elif depth:
            rank = 3 if words & set(words_of(test)) else 4
        else:
            continue
        ranked.append((rank, test.count("/") - 2 * depth, test))
    files = [*(test for *_, test in sorted(ranked)), *tests_of_pages(changed)]
    packages = dict.fromkeys(m[1] for name in changed if (m := PACKAGE.match(name)))
    return Selection(tuple(files), tuple(packages), tuple(operators_of(changed, imports)))


def tests_of_pages(changed: Iterable[str]) -> Iterator[str]:
    """Yield the tests that run the code blocks of changed pages and follow their links."""
    for name in changed:
        if PAGE.fullmatch(name) and name not in UNTESTED_PAGES and (ROOT / name).is_file():
            yield f"tests/repo/test_readme.py::test_blocks[{name}]"
            yield f"tests/repo/test_readme.py::test_links_lead_somewhere[{name}]"


def operators_of(changed: Iterable[str], imports: Callable[[str], frozenset[str]]) -> Iterator[str]:
    """Yield the operators whose rooms changed, or whose rooms import changed mathematics."""
    changed = set(changed)
    families = {module_name(name) for name in changed if name.startswith("src/sabir/opsets/families/")}
    for path in sorted(ROOT.glob("src/sabir/opsets/*/*.py")):
        name = path.relative_to(ROOT).as_posix()
        room = ROOM.fullmatch(name)
        if room is not None and (name in changed or (families and imports(name) & families)):
            yield "".join(part.capitalize() for part in room[1].split("_"))


def mirror(name: str, tests: Iterable[str]) -> str | None:
    """Return the deepest folder of tests that mirrors the package of a module; None for other files."""
    if not name.startswith("src/sabir/") or ROOM.fullmatch(name):
        return None
    folders = {parent.as_posix() for test in tests for parent in Path(test).parents}
    parents = (parent.as_posix() for parent in Path(name.removeprefix("src/sabir/")).parents)
    return next((f"tests/{p}" for p in parents if p != "." and f"tests/{p}" in folders), None)


def words_of(name: str) -> Iterator[str]:
    """Yield the words of the names of a file and of its folder, without an `s` at their ends."""
    path = Path(name)
    words = f"{path.parent.name}_{path.stem}".split("_")
    yield from (word.removesuffix("s") for word in words if word not in COMMON_WORDS)


def module_name(name: str) -> str:
    """Return the dotted name of the module in a file."""
    path = Path(name)
    parts = path.parent.parts if path.name == "__init__.py" else path.with_suffix("").parts
    return ".".join(parts[1:] if parts[0] in {"src", "tests"} else parts)


def imports_of(name: str) -> frozenset[str]:
    """Return the modules that a file imports, also through `tests/support` and shared mathematics."""
    found: set[str] = set()
    pending = [name]
    while pending:
        new = _imported(pending.pop()) - found
        found |= new
        pending += [f"tests/{m.replace('.', '/')}.py" for m in new if m.startswith("support.")]
        pending += [f"src/{m.replace('.', '/')}.py" for m in new if m.startswith("sabir.opsets.families.")]
    return frozenset(found)


@functools.cache
def _imported(name: str) -> frozenset[str]:
    path = ROOT / name
    if not path.is_file():
        return frozenset()
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(found)


if __name__ == "__main__":
    sys.exit(main())
