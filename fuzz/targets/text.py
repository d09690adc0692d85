"""The text syntax: what parses prints, and what was printed parses to what prints the same."""

import _harness

with _harness.instrumented():
    import _common


def one(data: bytes) -> None:
    """Parse, print, parse and print."""
    model = None
    with _common.refusals():
        model = _common.sabir.loads(data, format="onnxtxt")
    if model is None:
        return
    with _common.refusals():
        first = _common.sabir.text(model)
        second = _common.sabir.text(_common.sabir.parse(first))
        if first != second:
            raise _common.FoundError("a second text differs")


if __name__ == "__main__":
    _harness.run(one)
