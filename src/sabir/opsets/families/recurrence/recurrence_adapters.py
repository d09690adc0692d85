"""The adapters that all recurrent layers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import BehaviourFunction
    from sabir.schema import Call


def drop_output_sequence(op: str) -> BehaviourFunction:
    """Return the upgrade to the version without `output_sequence`: Y is computed where the node names it."""

    def upgrade(
        b: Builder, *inputs: Value | None, call: Call, output_sequence: int, **attributes: Any
    ) -> Any:
        return b.op(op, *inputs, outputs=len(call.outputs), **attributes)

    return upgrade


def add_output_sequence(op: str) -> BehaviourFunction:
    """Return the downgrade to the version with `output_sequence`, which states whether Y is wanted."""

    def downgrade(b: Builder, *inputs: Value | None, call: Call, **attributes: Any) -> Any:
        wanted = int(call.wants(0))
        return b.op(op, *inputs, outputs=len(call.outputs), output_sequence=wanted, **attributes)

    return downgrade


def drop_layout(op: str, states: slice) -> BehaviourFunction:
    """Return the downgrade to the version without `layout`; `states` are the states, counted after X."""

    def downgrade(
        b: Builder, x: Value, *rest: Value | None, call: Call, layout: int, **attributes: Any
    ) -> Any:
        if not layout:
            return b.op(op, x, *rest, outputs=len(call.outputs), **attributes)
        transposed = [v if v is None else b.Transpose(v, perm=[1, 0, 2]) for v in (x, *rest[states])]
        rest = (*rest[: states.start], *transposed[1:], *rest[states.stop :])
        results = b.op(op, transposed[0], *rest, outputs=len(call.outputs), **attributes)
        if not isinstance(results, tuple):
            return b.Transpose(results, perm=[2, 0, 1, 3])
        y, *final = cast("tuple[Value, ...]", results)
        return (b.Transpose(y, perm=[2, 0, 1, 3]), *(b.Transpose(s, perm=[1, 0, 2]) for s in final))

    return downgrade
