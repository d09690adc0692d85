"""C90 identifiers: letters, digits and underscores, no digit first, no keyword."""

from __future__ import annotations

import re

KEYWORDS = frozenset([
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "int", "long", "register", "return", "short", "signed",
    "sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while",
])  # fmt: skip
IDENTIFIER = re.compile(rf"(?!(?:{'|'.join(sorted(KEYWORDS))})\Z)[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
