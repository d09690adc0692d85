"""How calls of recurrent layers are written in the version before or after, the same for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import BehaviourFunction
    from sabir.schema import Call


def sequence_goes(op: str) -> BehaviourFunction:
    """Return the adapter to the version that gives Y where it is named, whatever `output_sequence` said."""

    def upgrade(
        b: Builder, *inputs: Value | None, call: Call, output_sequence: int, **attributes: Any
    ) -> Any:
        return b.op(op, *inputs, outputs=len(call.outputs), **attributes)

    return upgrade


def sequence_comes(op: str) -> BehaviourFunction:
    """Return the adapter to the version that has to be told whether Y is wanted."""

    def downgrade(b: Builder, *inputs: Value | None, call: Call, **attributes: Any) -> Any:
        wanted = int(call.wants(0))
        return b.op(op, *inputs, outputs=len(call.outputs), output_sequence=wanted, **attributes)

    return downgrade


def batch_comes_second(op: str, states: slice) -> BehaviourFunction:
    """Return the adapter to the version without `layout`; `states` is where they stand behind X."""

    def downgrade(
        b: Builder, x: Value, *rest: Value | None, call: Call, layout: int, **attributes: Any
    ) -> Any:
        if not layout:
            return b.op(op, x, *rest, outputs=len(call.outputs), **attributes)
        first = [b.Transpose(v, perm=[1, 0, 2]) if v is not None else None for v in (x, *rest[states])]
        rest = (*rest[: states.start], *first[1:], *rest[states.stop :])
        made = b.op(op, first[0], *rest, outputs=len(call.outputs), **attributes)
        if not isinstance(made, tuple):
            return b.Transpose(made, perm=[2, 0, 1, 3])
        y, *after = cast("tuple[Value, ...]", made)
        return (b.Transpose(y, perm=[2, 0, 1, 3]), *(b.Transpose(s, perm=[1, 0, 2]) for s in after))

    return downgrade
