"""A small vocabulary for the examples of tries."""

_TOKENS = ("He", "Hell", "Hello", "H", " w", " world", "日本", "\n\n", " ", b"\xc3", b"\xa9")
VOCABULARY = "\n".join(
    f"{number} {token!r} {len(token if isinstance(token, bytes) else token.encode())}"
    for number, token in enumerate(_TOKENS, 1)
)
