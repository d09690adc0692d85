"""Write the findings and repairs of every invalid example; read the difference before you commit it."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Check and repair all examples, and replace both records."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support import findings  # ruff: ignore[import-outside-top-level]  beside the tests

    for path, record in (
        (findings.FINDINGS, findings.findings_record()),
        (findings.REPAIRED, findings.repairs_record()),
    ):
        path.write_text(record, encoding="utf-8")
        print(f"{path.relative_to(ROOT)} is written")


if __name__ == "__main__":
    main()
