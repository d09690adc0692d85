"""Building blocks for the examples of rules, and the model of an example."""

from __future__ import annotations

import functools
import struct
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sabir.checking._rule import SetTexts, Textproto, Wire
from sabir.serial import loads, loads_operator_set
from sabir.syntax import parse

if TYPE_CHECKING:
    from sabir import ir
    from sabir.checking._rule import Model

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
GOOD = HEAD + "g (float[N] x) => (float[N] y) { t = Relu(x)  y = Neg(t) }"
RELU = 'node { op_type: "Relu" input: "x" output: "y" }'

IF = (
    HEAD + "g (bool c, float[N] x) => (float[N] y) {{ t = Neg(x)  y = If (c) <then_branch = a () =>"
    " (float[N] {then}) {{ {then} = Relu(t) }}, else_branch = b () => (float[N] v) {{ v = Abs(x) }}> }}"
)
"""An If whose branches compute one value each; format it with the name of the first branch's."""


def float_info(field: str, name: str) -> str:
    """Return an input or output of type float[N], in protobuf's text format."""
    kind = 'elem_type: 1 shape { dim { dim_param: "N" } }'
    return f'{field} {{ name: "{name}" type {{ tensor_type {{ {kind} }} }} }}'


X, Y = float_info("input", "x"), float_info("output", "y")


def in_model(fields: str, *, ir_version: int = 8, opset: int = 17) -> Textproto:
    """Return an example from the fields of a model; the opset import is added."""
    return Textproto(f'ir_version: {ir_version}  opset_import {{ domain: "" version: {opset} }}  {fields}')


def in_graph(fields: str, *, ir_version: int = 8, opset: int = 17) -> Textproto:
    """Return an example from the fields of its main graph."""
    return in_model(f"graph {{ {fields} }}", ir_version=ir_version, opset=opset)


def with_tensor(fields: str, *, ir_version: int = 8) -> Textproto:
    """Return an example with an initializer from the fields of its tensor."""
    return in_graph(f'{RELU} name: "g" initializer {{ name: "w" {fields} }} {X} {Y}', ir_version=ir_version)


def around(node: str, *, ir_version: int = 8, opset: int = 17) -> Textproto:
    """Return an example around one node that computes y from x."""
    return in_graph(f'{node} name: "g" {X} {Y}', ir_version=ir_version, opset=opset)


def build(example: Model) -> ir.Model:
    """Return the model of a rule's example; raises the errors of reading it, TypeError for operator sets.

    External data is read from a folder with one file, `weights.data`: the bytes of four floats.
    """
    if isinstance(example, SetTexts):
        raise TypeError("the example has operator sets, and no model; `build_sets` returns them")
    if isinstance(example, Wire):
        return loads(bytes(example))
    if isinstance(example, Textproto):
        return loads(example.encode(), format="textproto", folder=_folder().name)
    return parse(example)


def build_sets(example: SetTexts) -> list[ir.OperatorSet]:
    """Return the operator sets of a rule's example; raises the errors of reading them."""
    return [loads_operator_set(text, format="textproto") for text in example.split("\n---\n")]


@functools.cache
def _folder() -> TemporaryDirectory[str]:
    folder = TemporaryDirectory()
    Path(folder.name, "weights.data").write_bytes(struct.pack("<4f", 1, 2, 3, 4))
    return folder
