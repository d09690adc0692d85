"""Short `repr` of models, graphs and functions: whole messages can have gigabytes."""

from __future__ import annotations

from typing import Any

from sabir.compat.onnx.onnx_ml_pb2 import FunctionProto, GraphProto, ModelProto


def install_representations() -> None:
    """Give the three classes their short `repr`."""
    ModelProto.__repr__ = _model
    GraphProto.__repr__ = _graph
    FunctionProto.__repr__ = _function


def _model(message: Any) -> str:
    parts = [
        f"ir_version={message.ir_version}",
        *_imports(message),
        *_texts(message, "domain", "producer_name", "producer_version"),
    ]
    parts.append(f"graph={message.graph!r}")
    parts.extend(_counts(message, functions="functions"))
    return f"ModelProto({', '.join(parts)})"


def _graph(message: Any) -> str:
    parts = [repr(message.name)]
    parts.extend(
        _counts(
            message,
            input="inputs",
            output="outputs",
            initializer="initializers",
            node="nodes",
            value_info="value_info",
        )
    )
    return f"GraphProto({', '.join(parts)})"


def _function(message: Any) -> str:
    parts = [repr(message.name), *_texts(message, "domain", "overload"), *_imports(message)]
    parts.extend(_counts(message, input="inputs", output="outputs"))
    if message.attribute:
        parts.append(f"attribute={list(message.attribute)}")
    parts.extend(_counts(message, node="nodes"))
    return f"FunctionProto({', '.join(parts)})"


def _texts(message: Any, *fields: str) -> list[str]:
    return [f"{field}={getattr(message, field)!r}" for field in fields if getattr(message, field)]


def _counts(message: Any, **fields: str) -> list[str]:
    return [
        f"{field}=<{len(getattr(message, field))} {noun}>"
        for field, noun in fields.items()
        if getattr(message, field)
    ]


def _imports(message: Any) -> list[str]:
    if not message.opset_import:
        return []
    return [f"opset_import={ {entry.domain: entry.version for entry in message.opset_import}!r}"]
