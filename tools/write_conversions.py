"""Write docs/conversions.md: how the calls of each operator cross each boundary between its versions."""

import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Convert the examples across each boundary, and replace the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.boundaries import page  # ruff: ignore[import-outside-top-level]  beside the tests

    warnings.simplefilter("ignore")  # examples divide by zero on purpose
    path = ROOT / "docs" / "conversions.md"
    path.write_text(page(), encoding="utf-8")
    print(f"{path.name} is written")


if __name__ == "__main__":
    main()
