"""Running any model that reads, on small feeds, and inlining its functions."""

import _harness

with _harness.instrumented():
    import _common

    _common.import_rooms()


def one(data: bytes) -> None:
    """Read, run and inline."""
    model = _common.read(data)
    if model is not None:
        _common.evaluate(model)
        _common.inline(model)


if __name__ == "__main__":
    _harness.run(one, messages=True)
