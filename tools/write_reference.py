"""Write the operators' pages into docs/operators, from the rooms; run it after a change to a room."""

from pathlib import Path

from sabir.reference import file_name, index, operators_of, page

FOLDER = Path(__file__).parents[1] / "docs" / "operators"


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    found = {file_name(o): page(o) for group in operators_of().values() for o in group}
    return {"README.md": index(), **found}


def main() -> None:
    """Replace the folder's pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for old in FOLDER.glob("*.md"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(f"{len(wanted)} pages in {FOLDER}")


if __name__ == "__main__":
    main()
