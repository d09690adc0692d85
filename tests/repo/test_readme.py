"""The code blocks of README.md and docs/ do what they say.

The blocks of a page run in order, in one namespace and one folder. What a `text` block shows is what the
block before it printed.
"""

import contextlib
import io
import re
import shlex
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

import sabir
from sabir.cli import main

ROOT = Path(__file__).parents[2]
# docs/operators and docs/rules.md are written from the code, and held against it elsewhere
TOP = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES = [*TOP, *sorted(p for p in (ROOT / "docs").glob("*.md") if p.name != "rules.md")]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


class Block(NamedTuple):
    language: str
    code: str
    line: int


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start(2)) + 1) for m in FENCE.finditer(text)]


def run_python(block, page, namespace):
    # the empty lines make an error name the page's own line
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)  # ruff: ignore[exec-builtin]  the page's own code
    return printed.getvalue()


def run_commands(block):
    return "".join(run_command(shlex.split(line)) for line in block.code.splitlines() if line.strip())


def run_command(words):
    if words[0] == "make":  # these are run by continuous integration, not from inside of one of them
        assert words[1] in TARGETS
        return ""
    if words[0] in {"python", "bash"}:  # tools of this tree, which write into it or take long
        assert (ROOT / words[1]).is_file(), f"there is no {words[1]}"
        return ""
    assert words[0] == "sabir", f"no test runs {words!r}"
    printed, told = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        warnings.simplefilter("default")  # as in a process of its own
        code = main(words[1:])
    assert code == 0, f"{shlex.join(words)}: {told.getvalue()}"
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_blocks(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace, printed = {"__name__": page.stem}, ""
    for block in blocks(page):
        if block.language == "python":
            printed = run_python(block, page, namespace)
        elif block.language == "sh":
            printed = run_commands(block)
        elif block.language == "toml":  # rules, which their examples prove
            for rule in sabir.patterns.parse_rules(block.code):
                sabir.optimization.prove(rule)
        else:
            assert block.language == "text", f"no test runs the {block.language!r} block on line {block.line}"
            assert printed.splitlines() == block.code.splitlines(), f"line {block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    missing = [t for t in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / t).exists()]
    assert not missing


def test_readme_gives_two_commands_for_a_fresh_clone():
    first = next(b for b in blocks(ROOT / "README.md") if b.language == "sh")
    assert first.code == "make demo\nmake test\n"
