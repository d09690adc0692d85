"""NonMaxSuppression: the best boxes of each class that do not overlap better ones."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.images import suppression
from sabir.opsets.typing import Array
from sabir.schema import INTERNAL, Attribute, Example, Input, Operator, Output, Unconvertible, one_of

non_max_suppression = Operator(
    "NonMaxSuppression",
    summary="The boxes of each class by descending score, without those whose overlap with a selected box"
    " exceeds `iou_threshold` of their union.",
)

v10 = non_max_suppression.first(
    10,
    inputs=[
        Input("boxes", "tensor(float)", "Boxes, [batch, boxes, 4], in the format of `center_point_box`."),
        Input("scores", "tensor(float)", "Scores, [batch, classes, boxes]."),
        Input(
            "max_output_boxes_per_class",
            "tensor(int64)",
            "One number: the maximum of selected boxes per class; 0 by default.",
            optional=True,
        ),
        Input("iou_threshold", "tensor(float)", "One number from 0 to 1; 0 by default.", optional=True),
        Input(
            "score_threshold",
            "tensor(float)",
            "One number: boxes with a lower score are not selected.",
            optional=True,
        ),
    ],
    outputs=[
        Output(
            "selected_indices",
            "tensor(int64)",
            "A row for each selected box: its batch, its class, its index.",
        )
    ],
    attributes=[
        Attribute(
            "center_point_box",
            "int",
            "0: [y1, x1, y2, x2], any two opposite corners; 1: [x, y, width, height], with the centre x, y.",
            default=0,
            values=one_of(0, 1),
        )
    ],
)
v11 = v10.restate(11, "States that a box remains if its overlap equals the threshold.")

v10.absent("lower", "the shape of the result depends on the contents of the operands")
v10.absent("downgrade", "no older operator selects boxes")


@v10.infer
def infer(
    boxes: TensorType,
    scores: TensorType,
    most: TensorType | None = None,
    iou_threshold: TensorType | None = None,
    score_threshold: TensorType | None = None,
    /,
) -> TensorType:
    suppression.check_types(boxes, scores, most, iou_threshold, score_threshold)
    nothing = most is None or (most.known is not None and most.known[:1] == (0,))
    return TensorType(INT64, (0 if nothing else None, suppression.ROW))


@v10.evaluate
def evaluate(
    boxes: Array,
    scores: Array,
    most: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    /,
    *,
    center_point_box: int,
) -> Array:
    return suppression.selected(boxes, scores, most, iou_threshold, score_threshold, center_point_box)


@v10.parts
def parts(
    b: Builder,
    boxes: Value,
    scores: Value,
    most: Value | None = None,
    iou_threshold: Value | None = None,
    score_threshold: Value | None = None,
    /,
    *,
    center_point_box: int,
) -> Value:
    """Find the boxes in one kernel, whose result has room for all of them."""
    limits = map(_given, (most, iou_threshold, score_threshold))
    found = b.op("Suppress", boxes, scores, *limits, domain=INTERNAL, center_point_box=center_point_box)
    return b.op("Counted", found, domain=INTERNAL, width=suppression.ROW)


def _given(limit: Value | None) -> Value | None:
    """Return a limit, None for an empty one; raises Unconvertible where a run decides whether it is empty."""
    if limit is None or (isinstance(limit.type, TensorType) and limit.type.size == 0):
        return None
    if not isinstance(limit.type, TensorType) or limit.type.size != 1:
        raise Unconvertible("whether a limit is given is known at run time only")
    return limit


@non_max_suppression.examples
def examples() -> Iterator[Example]:
    f = np.float32
    # the first three overlap: boxes 0 and 1 by 9/11 of their union, 0 and 2 by 1/3
    boxes = np.array([[[0, 0, 1, 10], [0, 1, 1, 11], [0, 5, 1, 15], [0, 20, 1, 30]]], f)
    scores = [[[0.9, 0.75, 0.6, 0.95], [0.1, 0.2, 0.2, 0]]]
    centers = np.array([[[5, 0.5, 10, 1], [6, 0.5, 10, 1], [10, 0.5, 10, 1], [25, 0.5, 10, 1]]], f)
    most, half = [3], [0.5]
    taken = np.array([[0, 0, 3], [0, 0, 0], [0, 0, 2], [0, 1, 1], [0, 1, 2], [0, 1, 3]])
    for opset in (10, 11):
        yield Example(opset, boxes, scores, most, half, [0.65], expect=[taken[:2]])
        yield Example(opset, boxes[..., [2, 1, 0, 3]], scores, most, half, expect=[taken])
        yield Example(opset, centers, scores, 1, half, center_point_box=1, expect=[taken[[0, 3]]])
        yield Example(opset, boxes, scores, expect=[taken[:0]])
    # half of the first box, and the first again
    equal = np.array([[[0, 0, 1, 2], [0, 1, 1, 2], [0, 0, 1, 2]]], f)
    same = np.ones((1, 1, 3), f)
    yield Example(11, equal, same, most, half, 1, expect=[[[0, 0, 0], [0, 0, 1]]])
    yield Example(11, equal[:, :0], same[..., :0], most, half, expect=[np.zeros((0, 3), np.int64)])
