"""Types and shapes of any model that reads."""

import _harness

with _harness.instrumented():
    import _common

    _common.import_rooms()


def one(data: bytes) -> None:
    """Read and infer."""
    model = _common.read(data)
    if model is not None:
        _common.infer(model)


if __name__ == "__main__":
    _harness.run(one, messages=True)
