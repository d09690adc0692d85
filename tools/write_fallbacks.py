"""Write docs/fallbacks.md: which calls become kernels, and why others are evaluated."""

import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Lower every example, and replace the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.fallbacks import page, rows  # ruff: ignore[import-outside-top-level]  beside the tests

    warnings.simplefilter("ignore")  # examples divide by zero on purpose
    (ROOT / "docs" / "fallbacks.md").write_text(page(), encoding="utf-8")
    print(f"{sum(r.native for r in rows())} of {sum(r.examples for r in rows())} examples become kernels")


if __name__ == "__main__":
    main()
