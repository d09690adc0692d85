"""What the code imports is what pyproject.toml asks for, not what something else happens to bring along."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OWN = {"sabir", *(p.stem for p in (ROOT / "tests").iterdir())}
DISTRIBUTIONS = packages_distributions()


def named(requirements):
    return {normal(re.match(r"[\w.-]+", line)[0]) for line in requirements}


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(folder):
    """The top packages that a folder's modules import, from elsewhere."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            found |= {name.split(".")[0] for name in names}
    return found - OWN - set(sys.stdlib_module_names)


# the package may import its own extras, where it says what to install; what it cannot do without stands apart
NAMES = ("cli", "data", "image", "plot", "progress", "ray", "tensorboard", "text")
EXTRAS = (PROJECT["optional-dependencies"][extra] for extra in NAMES)
RUNTIME = named(PROJECT["dependencies"]).union(*map(named, EXTRAS))
TEST = RUNTIME.union(*(named(PROJECT["optional-dependencies"][extra]) for extra in ("test", "clients")))


@pytest.mark.parametrize(("folder", "declared"), [("src", RUNTIME), ("tests", TEST)], ids=["src", "tests"])
def test_imports_are_declared(folder, declared):
    undeclared = {
        package
        for package in imported(folder)
        if not declared & {normal(d) for d in DISTRIBUTIONS.get(package, [package])}
    }
    assert not undeclared
