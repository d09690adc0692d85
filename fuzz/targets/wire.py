"""Bytes to a model and back: what is read once and written reads and writes the same again."""

import _harness

with _harness.instrumented():
    import _common


def one(data: bytes) -> None:
    """Read, write, read and write."""
    model = _common.read(data)
    if model is None:
        return
    with _common.refusals():
        first = _common.sabir.dumps(model)
        second = _common.sabir.dumps(_common.sabir.loads(first))
        if first != second:
            raise _common.FoundError(f"a second save differs: {len(first)} and {len(second)} bytes")


if __name__ == "__main__":
    _harness.run(one)
