"""The modules, files and names that documents, docstrings and comments mention exist.

A mention is text between backticks: a path (`tests/repo`), the name of a private module, function or class
(`_driver`), the name of a script (`sweep.py`), or a dotted name (`sabir.base.check_elements`).
"""

import ast
import functools
import io
import pkgutil
import re
import tokenize
from pathlib import Path

import pytest

from support.cases import each_of

ROOT = Path(__file__).parents[2]
GENERATED = {
    "CHANGELOG.md", "rules.md", "oracles.md", "fallbacks.md", "inference.md", "conversions.md", "compat.md",
    "compat-tests.md",
}  # fmt: skip
FOUND = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("fuzz/*.md")]
PAGES = [p for p in FOUND if p.name not in GENERATED]
FOLDERS = ("src", "tests", "tools", "benchmarks", "fuzz", "examples")
SCRIPTS = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*.py")]
MENTION = re.compile(r"(?<!`)`([\w./]+)(?:\(\))?`(?!`)")
PATH = re.compile(r"(?:\.?\w+/)+(?:\w+(?:\.\w+)*)?")
PRIVATE = re.compile(r"_[a-z]\w{2,}")
SCRIPT = re.compile(r"\w+\.pyi?")
DOTTED = re.compile(r"sabir(?:\.\w+)+")
# folders that `make` and the fuzzers write, the pattern of private modules, and keys and domains
NO_FILES = {
    ".venv/bin", "build/reference", "fuzz/found", "_x.py", "domain/Name/since", "sabir.internal",
    "sabir.training.seed",
}  # fmt: skip


def relative(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def paths():
    """Every file and folder of the tree, with and without the suffix, by all ends of its path."""
    found = {p.name for p in ROOT.iterdir()}
    for top in (*FOLDERS, "docs", ".ci"):
        for path in (ROOT / top, *(ROOT / top).rglob("*")):
            for end in (path.relative_to(ROOT), path.relative_to(ROOT).with_suffix("")):
                found.update("/".join(end.parts[i:]) for i in range(len(end.parts)))
    return found


@functools.cache
def defined():
    """The names of all functions and classes of the tree."""
    definitions = re.compile(r"^\s*(?:async )?(?:def|class) (\w+)", re.MULTILINE)
    return {m[1] for p in SCRIPTS for m in definitions.finditer(p.read_text(encoding="utf-8"))}


def exists(mention):
    if DOTTED.fullmatch(mention):
        try:
            pkgutil.resolve_name(mention)
        except (ImportError, AttributeError):
            return False
        return True
    if PATH.fullmatch(mention) or SCRIPT.fullmatch(mention):
        return mention.strip("/") in paths()
    return not PRIVATE.fullmatch(mention) or mention in defined() or mention in paths()


def missing(text, known=frozenset()):
    return sorted({m[1] for m in MENTION.finditer(text) if m[1] not in known | NO_FILES and not exists(m[1])})


def prose_and_names(path):
    """The docstrings and comments of a script, and the names in its code."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    prose, names = [ast.get_docstring(node) or "" for node in tree if isinstance(node, documented)], set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            prose.append(token.string)
        elif token.type == tokenize.NAME:
            names.add(token.string)
    return "\n".join(prose), names


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_what_a_page_mentions_exists(page):
    assert not missing(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_the_targets_of_make_that_a_page_mentions_exist(page):
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    mentioned = re.findall(
        r"(?:`|^ +|^)make ([a-z]+)(?= |`|$)", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert set(mentioned) <= set(targets)


def test_the_page_of_the_compiler_names_every_folder():
    text = (ROOT / "docs" / "compiler.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.]+)`", text.partition("## Folders")[2].partition("\n## ")[0]))
    compilation = ROOT / "src" / "sabir" / "compilation"
    folders = {
        p.parent.name
        for p in (*compilation.glob("*/__init__.py"), *compilation.glob("backends/cpu/*/__init__.py"))
    }
    modules = {p.name for p in compilation.glob("*.py")} - {"__init__.py"}
    assert (folders | modules) - {"backends"} <= named


@each_of("script", [pytest.param(p, id=relative(p)) for p in SCRIPTS])
def test_what_docstrings_and_comments_mention_exists(script):
    assert not missing(*prose_and_names(script))


def test_mentions_of_what_does_not_exist():
    text = "`sabir.nothing` `sabir.base.check_elements()` `tests/none` `_no_name` `tests/repo/` `none.py` `_target`"
    assert missing(text) == ["_no_name", "none.py", "sabir.nothing", "tests/none"]
