"""Write docs/rules.md from the rules; run it after a change to one."""

from pathlib import Path

from sabir.checking import Repairable, rules_document
from sabir.repairing import REPAIRS, UNSAFE_REPAIRS

PATH = Path(__file__).parents[1] / "docs" / "rules.md"


def main() -> None:
    """Replace the document."""
    PATH.write_text(rules_document(Repairable(REPAIRS, UNSAFE_REPAIRS)), encoding="utf-8")
    print(f"{PATH.name} is written")


if __name__ == "__main__":
    main()
