"""Write docs/inference.md: the official cases whose shapes inference cannot tell, and the proof."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Infer all cases, look for witnesses, and replace the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.shapes import page, survey  # ruff: ignore[import-outside-top-level]  beside the tests

    found = survey()
    (ROOT / "docs" / "inference.md").write_text(page(found), encoding="utf-8")
    print(f"{found.static} of {found.outputs} outputs are known; docs/inference.md tells of the others")


if __name__ == "__main__":
    main()
