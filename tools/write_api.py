"""Write the API reference: `python tools/write_api.py FOLDER`; every public package, from its docstrings."""

import importlib
import pkgutil
import sys
from pathlib import Path

import pdoc
import pdoc.render

import sabir


def public_packages() -> list[str]:
    """Return `sabir` and its packages that have a door of public names."""
    packages = [module.name for module in pkgutil.iter_modules(sabir.__path__, "sabir.") if module.ispkg]
    return ["sabir", *(name for name in packages if getattr(importlib.import_module(name), "__all__", None))]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    pdoc.render.configure(docformat="markdown", footer_text=f"Sabir {sabir.__version__}")
    pdoc.pdoc(*public_packages(), output_directory=folder)
    print(f"{folder}: {len(list(folder.rglob('*.html')))} pages")
