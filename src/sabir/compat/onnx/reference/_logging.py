"""What a verbose evaluator prints of a run."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np

_NODES, _RANGES, _VALUES, _STEPS = 2, 3, 4, 10
_MOST = 10


class Log:
    """Writes nodes from level 2 on, ranges of values from 3, first values from 4, steps from 10."""

    def __init__(self, level: int) -> None:
        self._level = level

    def show(self, graph: Any, values: dict[str, Any]) -> None:
        """Write a graph after a run, with the values by name."""
        for value in graph.input:
            if value.name in values:
                self._value("+I", value.name, values[value.name])
        for node in graph.node:
            sys.stdout.write(f"{node.op_type}({', '.join(node.input)}) -> {', '.join(node.output)}\n")
            if self._level >= _STEPS:
                sys.stdout.write(f"-- begin {node.op_type}.run({len(node.input)} inputs)\n")
                sys.stdout.write(f"-- done {node.op_type}.run -> {len(node.output)} outputs\n")
            for name in node.output:
                if name in values:
                    self._value("+", name, values[name])

    def _value(self, mark: str, name: str, value: Any) -> None:
        if self._level >= _RANGES:
            sys.stdout.write(f" {mark} {name}: {self._shown(value)}\n")

    def _shown(self, value: Any) -> str:
        if not isinstance(value, np.ndarray):
            return str(value)
        array = cast("np.ndarray[Any, Any]", value)
        head = f"{array.dtype}:{array.shape}"
        if self._level < _VALUES:
            if not array.size or array.dtype.kind not in "biuf":
                return head
            return f"{head} in [{array.min()!s}, {array.max()!s}]"
        elements = array.ravel().tolist()
        dots = "..." if len(elements) > _MOST else ""
        return f"{head}:{elements[:_MOST]}{dots}"
