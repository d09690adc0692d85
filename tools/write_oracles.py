"""Write docs/oracles.md: what outside Sabir has computed each version of each operator."""

import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Ask every oracle, and replace the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.oracles import page, report  # ruff: ignore[import-outside-top-level]  beside the tests

    warnings.simplefilter("ignore")  # examples divide by zero on purpose
    rows = report(runtime=True)
    (ROOT / "docs" / "oracles.md").write_text(page(rows), encoding="utf-8")
    print(f"{len(rows)} versions in docs/oracles.md")


if __name__ == "__main__":
    main()
