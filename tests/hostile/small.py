"""Small graphs in the text syntax, as cases."""

from __future__ import annotations

from hostile.case import case

HUGE, LEAST = 2**62, -(2**63)


def text(
    body: str,
    *,
    inputs: str = "",
    outputs: str = "float[] y",
    opset: int = 21,
    extra: str = "",
    name: str = "",
) -> None:
    """Add a case in the text syntax: a graph of these nodes."""
    head = f'<ir_version: 10, opset_import: ["": {opset}, "ai.onnx.ml": 5{extra}]>'
    written = f"{head} g ({inputs}) => ({outputs}) {{ {body} }}".encode()
    case(f"bomb: {name}", lambda: written, form="onnxtxt")


def constant(name: str, kind: str, values: str) -> str:
    """A Constant node of one axis."""
    count = len(values.split(",")) if values else 0
    return f"{name} = Constant <value = {kind}[{count}] {{{values}}}> () "


def ints(name: str, *values: int) -> str:
    """A Constant node of int64s."""
    return constant(name, "int64", ",".join(map(str, values)))
