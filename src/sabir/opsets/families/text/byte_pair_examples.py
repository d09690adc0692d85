"""Small vocabularies for the examples of byte pair encoding."""

from __future__ import annotations

import json
from typing import Any


def _numbered(names: str) -> str:
    return json.dumps({name: number for number, name in enumerate(names.split(" "))})


TOKENS = "l o w e r s t i d n Ġ Ġl Ġn Ġlo Ġlow er Ġlowest Ġnewer Ġwider <unk> <|endoftext|> <s> </s> <pad>"
LETTERS: dict[str, Any] = {"vocab": _numbered(TOKENS), "merges": "#version: 0.2\nĠ l\nĠl o\nĠlo w\ne r"}
_PIECES = "<unk> <s> </s> <pad> ▁ l o w e r ▁l ▁lo ▁low er"
PIECES: dict[str, Any] = {
    "vocab": _numbered(_PIECES)[:-1] + ', "<0x61>": 20}',
    "merges": "▁ l\n▁l o\n▁lo w\ne r",
    "added_token": "<unk>=0\n<s>=1\n</s>=2\n<pad>=3",
}
_ENDING = (
    "l o w e r s t i d n lo l</w> w</w> r</w> t</w> low</w> er</w> lowest</w> newer</w> wider <unk> "
    "<|startoftext|> <|endoftext|>"
)
WORDS: dict[str, Any] = {"vocab": _numbered(_ENDING), "merges": "#version: 0.2\nl o\nlo w</w>\ne r</w>"}
