"""All cases: importing the modules of `cases` fills the table."""

import importlib
from pathlib import Path

from hostile.case import CASES

for module in sorted((Path(__file__).parent / "cases").glob("*.py")):
    importlib.import_module(f"hostile.cases.{module.stem}")

__all__ = ["CASES"]
