"""JSON, and by the first byte protobuf's text format: what is read is written, and reads the same again."""

import _harness

with _harness.instrumented():
    import _common


def one(data: bytes) -> None:
    """Read, write, read and write."""
    form, model = ("textproto" if data[:1] == b"#" else "json"), None
    with _common.refusals():
        model = _common.sabir.loads(data, format=form)
    if model is None:
        return
    with _common.refusals():
        first = _common.sabir.dumps(model, format=form)
        second = _common.sabir.dumps(_common.sabir.loads(first, format=form), format=form)
        if first != second:
            raise _common.FoundError("a second writing differs")


if __name__ == "__main__":
    _harness.run(one)
