"""What holds for the files of the repository, whatever is in them."""

import re
import subprocess
from pathlib import Path

import sabir
from support.cases import each_of

ROOT = Path(__file__).parents[2]
# what only one machine knows: its folders, its package registries; spelled so that this file passes itself
LOCAL = re.compile(r"/[w]ork/|/[t]mp/w/|/[o]pt/|/[r]oot/|[p]ypi[.]|[p]ythonhosted|[i]ndex-url|[f]ind-links")
SUPPRESSION = re.compile(
    r"#\s*(?P<kind>noqa|type:\s*ignore|(?:ruff|pyright):\s*(?:file-)?ignore)\b(?P<rules>\[[^\]]+\])?(?P<reason>.*)"
)


def committed():
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    # ruff: ignore[subprocess-without-shell-equals-true]  git, wherever it is
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [p for p in (ROOT / name for name in listed.stdout.splitlines()) if p.is_file()]


FILES = committed()
DATA = {p.relative_to(ROOT).as_posix(): p.read_bytes() for p in FILES}
# what the fuzzers start from is bytes of every kind
TEXTS = {n: d.decode() for n, d in DATA.items() if b"\0" not in d and not n.startswith("fuzz/corpus/")}
SCRIPTS = [name for name in TEXTS if name.endswith(".py")]
SOURCES = [name for name in SCRIPTS if name.startswith("src/")]


def test_the_listing_sees_the_tree():
    assert {"Makefile", "src/sabir/__init__.py", "tests/repo/test_tree.py"} <= set(TEXTS)


def test_no_file_names_the_author_s_machine():
    found = [f"{name}: {m[0]}" for name, text in TEXTS.items() for m in LOCAL.finditer(text)]
    assert not found


@each_of("name", SCRIPTS)
def test_every_suppression_has_a_rule_and_a_reason(name):
    bare = [
        f"{name}:{number}: {line.strip()}"
        for number, line in enumerate(TEXTS[name].splitlines(), start=1)
        for m in SUPPRESSION.finditer(line)
        if not m["rules"] or not re.search(r"\w{2}", m["reason"])
    ]
    assert not bare


def test_text_files_end_in_one_newline():
    assert not [name for name, text in TEXTS.items() if text and not re.search(r"[^\n]\n\Z", text)]


def test_the_installed_package_has_every_file():
    source, installed = ROOT / "src" / "sabir", Path(sabir.__file__).parent
    inside = [p.relative_to(source) for p in FILES if p.is_relative_to(source)]
    assert inside
    assert not [str(p) for p in inside if not (installed / p).is_file()]


def test_no_file_is_large():
    large = {str(p): p.stat().st_size for p in FILES if p.stat().st_size > 500_000}
    assert not large
