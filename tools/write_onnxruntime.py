"""Write docs/onnxruntime-operators.md: which operators that onnxruntime adds Sabir has, whole or partly."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Replace the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support.onnxruntime_operators import page, rows  # ruff: ignore[import-outside-top-level]  beside the tests

    (ROOT / "docs" / "onnxruntime-operators.md").write_text(page(), encoding="utf-8")
    found = rows()
    print(f"{sum(r.operator is not None for r in found)} of {len(found)} operators of onnxruntime")


if __name__ == "__main__":
    main()
