"""Write the API reference: `python tools/write_api.py FOLDER`; every public package, from its docstrings."""

import dataclasses
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from typing import ForwardRef

import pdoc
import pdoc.render

import sabir


class Written:
    """An annotation as the source has it: the names in it exist for type checkers only."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __repr__(self) -> str:
        return self._source


def public_packages() -> list[str]:
    """Return `sabir` and its packages that export public names."""
    names = [module.name for module in pkgutil.iter_modules(sabir.__path__, "sabir.") if module.ispkg]
    return ["sabir", *(n for n in names if getattr(importlib.import_module(n), "__all__", None))]


def write_annotations(package: str) -> None:
    """Replace annotations of constructors that pdoc cannot resolve by their source.

    These are those of named tuples, and of fields that a dataclass inherits from one of another module.
    """
    module = importlib.import_module(package)
    for item in (getattr(module, name) for name in module.__all__):
        if not inspect.isclass(item):
            continue
        if issubclass(item, tuple) and hasattr(item, "_fields"):
            annotations = item.__new__.__annotations__
            annotations |= {
                n: Written(a.__forward_arg__) for n, a in annotations.items() if type(a) is ForwardRef
            }
        elif dataclasses.is_dataclass(item) and "__init__" in vars(item):
            annotations = vars(item)["__init__"].__annotations__
            inherited = annotations.keys() - item.__annotations__.keys() - {"return"}
            annotations |= {n: Written(str(annotations[n])) for n in inherited}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    pdoc.render.configure(docformat="markdown", footer_text=f"Sabir {sabir.__version__}")
    packages = public_packages()
    for name in packages:
        write_annotations(name)
    pdoc.pdoc(*packages, output_directory=folder)
    print(f"{folder}: {len(list(folder.rglob('*.html')))} pages")
