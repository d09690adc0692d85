"""Write docs/rules.md from the rules; run it after a change to one."""

from pathlib import Path

from sabir.checking import rules_document

PATH = Path(__file__).parents[1] / "docs" / "rules.md"


def main() -> None:
    """Replace the document."""
    PATH.write_text(rules_document(), encoding="utf-8")
    print(f"{PATH.name} is written")


if __name__ == "__main__":
    main()
