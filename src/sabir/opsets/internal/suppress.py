"""Suppress: the number of the boxes that NonMaxSuppression selects, and the boxes."""

import numpy as np

from sabir.elements import INT64
from sabir.ir import TensorType, dim_min, product, total
from sabir.loops import Expression, Lowering, NotLowered, Stored, Suppress, number, reshape, smaller
from sabir.opsets.families.images import suppression
from sabir.opsets.typing import Array
from sabir.schema import INTERNAL, Attribute, Constraint, Input, Operator, Output, tensors

suppress = Operator(
    "Suppress",
    domain=INTERNAL,
    summary="The number of selected boxes, then the batch, the class and the index of each.",
)

_FLOATS = Constraint("T", tensors("float"))
_WHOLE = Constraint("I", tensors("int64"))

v1 = suppress.first(
    1,
    inputs=[
        Input("boxes", _FLOATS, "As for NonMaxSuppression."),
        Input("scores", _FLOATS, "As for NonMaxSuppression."),
        Input("most", _WHOLE, "One number: the maximum of selected boxes per class.", optional=True),
        Input("overlap", _FLOATS, "One number: the part of the union.", optional=True),
        Input("threshold", _FLOATS, "One number: boxes with a lower score are not selected.", optional=True),
    ],
    outputs=[Output("found", _WHOLE, "Room for all boxes that may be selected.")],
    attributes=[Attribute("center_point_box", "int", "As for NonMaxSuppression.", default=0)],
)


@v1.infer
def infer(
    boxes: TensorType, scores: TensorType, most: TensorType | None = None,
    overlap: TensorType | None = None, threshold: TensorType | None = None, /,
) -> TensorType:  # fmt: skip
    suppression.check_types(boxes, scores, most, overlap, threshold)
    if scores.shape is None:
        return TensorType(INT64, (None,))
    known = None if most is None or most.known is None else most.known[0]
    limit = 0 if most is None else max(0, known) if isinstance(known, int) else None
    batches, classes, count = scores.shape
    each = count if limit is None else dim_min(limit, count)
    return TensorType(INT64, (total((1, product((suppression.ROW, batches, classes, each)))),))


@v1.evaluate
def evaluate(
    boxes: Array, scores: Array, most: Array | None = None, overlap: Array | None = None,
    threshold: Array | None = None, /, *, center_point_box: int,
) -> Array:  # fmt: skip
    rows = suppression.selected(boxes, scores, most, overlap, threshold, center_point_box)
    batches, classes, count = scores.shape
    limit = 0 if most is None else min(max(0, int(most.item())), count)
    found: Array = np.zeros(1 + suppression.ROW * batches * classes * limit, np.int64)
    found[0], found[1 : rows.size + 1] = len(rows), rows.ravel()
    return found


@v1.lower
def lower(
    boxes: Expression, scores: Expression, most: Expression | None = None,
    overlap: Expression | None = None, threshold: Expression | None = None, /, *,
    center_point_box: int, call: Lowering,
) -> Expression:  # fmt: skip
    if most is None:
        raise NotLowered("nothing is selected")
    count = scores.shape[2]
    limit = most.known[0] if isinstance(most, Stored) and most.known is not None else None
    bound = smaller(max(0, limit), count) if isinstance(limit, int) else count
    if bound is None:
        raise NotLowered("which of two numbers bounds the boxes of a class is known at run time only")
    part = number("float", 0) if overlap is None else overlap
    return Suppress(
        "int64",
        call.shape(),
        boxes,
        scores,
        reshape(most, (1,)),
        reshape(part, (1,)),
        None if threshold is None else reshape(threshold, (1,)),
        bool(center_point_box),
        bound,
    )
