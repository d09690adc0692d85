"""Rooms share declarations and behaviours through families: no six lines of code are the same in two rooms."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]

LINES = 6
"""What operators have in common is in a function of `opsets/families`, which both rooms call."""


def code(path: Path) -> list[tuple[int, str]]:
    """Return the lines of a module by number, without imports, comments and lone punctuation."""
    text = path.read_text("utf-8")
    imports = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [
        (number, line)
        for number, line in lines
        if number not in imports and not line.startswith("#") and any(map(str.isalnum, line))
    ]


def test_no_six_lines_are_the_same_in_two_rooms() -> None:
    seen: dict[tuple[str, ...], list[tuple[Path, int]]] = defaultdict(list)
    opsets = ROOT / "src" / "sabir" / "opsets"
    for path in sorted(opsets.glob("*/**/*.py")):
        if path.is_relative_to(opsets / "families"):
            continue
        lines = code(path)
        for start in range(len(lines) - LINES + 1):
            run = lines[start : start + LINES]
            seen[tuple(line for _, line in run)].append((path.relative_to(opsets), run[0][0]))
    twins = [places for places in seen.values() if len(places) > 1]
    assert not twins, "\n".join(" ~ ".join(f"{path}:{line}" for path, line in places) for places in twins)
