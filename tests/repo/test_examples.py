"""The examples in the docstrings run, and every public function and class of the packages below has one.

An example may use `sabir`, `np` and the public names of its package; it imports everything else.
"""

import doctest
import importlib
import inspect
import pkgutil

import numpy as np
import pytest

import sabir

# every name of these has an example; of the others only the main names do
COMPLETE = {
    "checking", "consumers", "debugging", "evaluation", "generation", "inference", "inlining", "patterns", "reference", "repairing", "rewriting", "runtime",
    "scheduling", "serial", "syntax", "viewing",
}  # fmt: skip
PACKAGES = [m.name for m in pkgutil.iter_modules(sabir.__path__) if m.ispkg and m.name not in {"cli", "demo"}]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Checker(doctest.OutputChecker):
    """Compares outputs; an error is written with the name by which users import it."""

    def check_output(self, want, got, optionflags):
        return super().check_output(want, got.replace("sabir.base._errors.", "sabir."), optionflags)


def documented(package):
    """The functions and classes that a package exports and defines, by name."""
    found = {}
    for name in package.__all__:
        item = getattr(package, name)
        is_message = hasattr(item, "DESCRIPTOR")
        callable_ = inspect.isclass(item) or inspect.isroutine(inspect.unwrap(item))
        if callable_ and not is_message and item.__module__.startswith(f"{package.__name__}."):
            found[name] = item
    return found


def examples():
    for name in PACKAGES:
        package = importlib.import_module(f"sabir.{name}")
        for item_name, item in documented(package).items():
            if ">>>" in (inspect.getdoc(item) or ""):
                yield pytest.param(package, item, id=f"{name}.{item_name}")


@pytest.mark.parametrize(("package", "item"), list(examples()))
def test_an_example(package, item):
    names = {name: getattr(package, name) for name in package.__all__}
    globs = {**names, "sabir": sabir, "np": np}
    test = doctest.DocTestParser().get_doctest(inspect.getdoc(item), globs, item.__name__, None, None)
    report = []
    doctest.DocTestRunner(Checker(), optionflags=OPTIONS).run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", sorted(COMPLETE))
def test_every_public_name_of_a_package_has_an_example(name):
    items = documented(importlib.import_module(f"sabir.{name}"))
    assert items
    assert not [n for n, item in items.items() if ">>>" not in (inspect.getdoc(item) or "")]


def test_every_public_name_of_sabir_has_an_example():
    items = {name: getattr(sabir, name) for name in sabir.__all__ if name != "__version__"}
    assert not [n for n, item in items.items() if ">>>" not in (inspect.getdoc(item) or "")]
