"""Write docs/compat.md: what Sabir has of each public name of onnx."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Compare both packages, and replace the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.compat import page, rows  # ruff: ignore[import-outside-top-level]  beside the tests

    (ROOT / "docs" / "compat.md").write_text(page(), encoding="utf-8")
    print(f"{sum(r.status == 'whole' for r in rows())} of {len(rows())} names are whole")


if __name__ == "__main__":
    main()
