"""NonMaxSuppression: the best boxes of each class that do not overlap better ones."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import TensorType, may_be_equal
from sabir.opsets.families.shapes.ranks import check_one, check_rank, check_shape
from sabir.opsets.families.shapes.sizes import spend_operations
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Input, Operator, Output, one_of

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

_ROW = 3
_OPERATIONS = 8  # array operations for the boxes of one class
_FEW = 512  # boxes whose overlaps with all others take less time than to find those that may touch
_BLOCK = 16  # boxes whose overlaps are computed at once

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
    for name, t in (("boxes", boxes), ("scores", scores)):
        if t.shape is not None and len(t.shape) != 3:  # ruff: ignore[magic-value-comparison]  batch, classes or boxes, and one more
            raise InferenceError(f"`{name}` must be of rank 3, and has rank {len(t.shape)}")
    if boxes.shape is not None and scores.shape is not None:
        pairs = (boxes.shape[0], scores.shape[0]), (boxes.shape[1], scores.shape[2]), (boxes.shape[2], 4)
        if any(not may_be_equal(*pair) for pair in pairs):
            raise InferenceError(f"`boxes` {boxes} and `scores` {scores} do not match")
    _check_numbers(most, iou_threshold, score_threshold)
    nothing = most is None or (most.known is not None and most.known[:1] == (0,))
    return TensorType(INT64, (0 if nothing else None, _ROW))


def _check_numbers(*inputs: TensorType | Array | None) -> None:
    """Raise InferenceError for a limit that is not one number; an empty tensor counts as absent."""
    names = "max_output_boxes_per_class", "iou_threshold", "score_threshold"
    for name, x in zip(names, inputs, strict=True):
        if x is not None and x.size != 0:
            check_one(name, x)


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
    check_rank("scores", scores, 3)
    check_shape("boxes", boxes, scores.shape[0], scores.shape[2], 4)
    _check_numbers(most, iou_threshold, score_threshold)
    limit = int(most.item()) if most is not None and most.size else 0
    overlap = np.float32(iou_threshold.item() if iou_threshold is not None and iou_threshold.size else 0)
    found = [np.zeros((0, _ROW), np.int64)]
    if limit <= 0 or not scores.size:  # there may be very many classes without boxes
        return found[0]
    spend_operations(_OPERATIONS * scores.shape[0] * scores.shape[1], scores.nbytes)
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch], center_point_box)
        for number, row in enumerate(scores[batch]):
            candidates = np.argsort(-row, kind="stable")
            if score_threshold is not None and score_threshold.size:
                candidates = candidates[row[candidates] >= score_threshold.item()]
            kept = _kept(corners, candidates, limit, overlap)
            found.append(np.column_stack([np.full_like(kept, batch), np.full_like(kept, number), kept]))
    return np.concatenate(found)


def _corners(boxes: Array, center_point_box: int) -> Array:
    """Return the minimum and the maximum coordinates of boxes, a row for each coordinate."""
    a, b, c, d = boxes.T
    if center_point_box:
        return np.stack([a - c / 2, b - d / 2, a + c / 2, b + d / 2])
    return np.stack([np.minimum(a, c), np.minimum(b, d), np.maximum(a, c), np.maximum(b, d)])


def _kept(corners: Array, candidates: Array, limit: int, overlap: np.float32) -> Array:
    """Select the best box, remove those that overlap it, and repeat.

    Boxes lie in the order of their lower edges: those that may touch another one are then side by side.
    """
    if overlap < 0:  # even boxes that do not touch overlap by more
        return candidates[:1]
    boxes = corners[:, candidates]
    if candidates.size <= _FEW:
        return candidates[_kept_of_few(boxes, limit, overlap)]
    order: Array = np.argsort(boxes[0])
    boxes = boxes[:, order]
    places: Array = np.empty_like(order)
    places[order] = np.arange(order.size)
    first, end = _neighbours(boxes)
    stays: Array = np.ones(order.size, np.bool_)
    kept: list[int] = []
    pairs: Iterator[tuple[int, int]] = zip(candidates.tolist(), places.tolist(), strict=True)
    for candidate, place in pairs:
        if not stays[place]:
            continue
        kept.append(candidate)
        if len(kept) == limit:
            break
        near = slice(first[place], end[place])
        spend_operations(8, 8 * boxes[0, near].nbytes)
        stays[near] &= ~(_overlap(boxes[:, place], boxes[:, near]) > overlap)
    return np.array(kept, np.int64)


def _kept_of_few(boxes: Array, limit: int, overlap: np.float32) -> list[int]:
    """Return the places of the selected boxes, best first: overlaps of several boxes are computed at once."""
    stays: Array = np.ones(boxes.shape[1], np.bool_)
    kept: list[int] = []
    for start in range(0, stays.size, _BLOCK):
        places = start + np.flatnonzero(stays[start : start + _BLOCK])
        rows = ~(_overlap(boxes[:, places, None], boxes[:, None, start:]) > overlap)
        spend_operations(_OPERATIONS, _OPERATIONS * rows.size * boxes.itemsize)
        for place, row in zip(places.tolist(), rows, strict=True):
            if not stays[place]:
                continue
            kept.append(place)
            if len(kept) == limit:
                return kept
            stays[start:] &= row
    return kept


def _neighbours(boxes: Array) -> tuple[list[int], list[int]]:
    """Return the ranges of boxes that may touch each, of boxes in the order of their lower edges."""
    lower: Array = boxes[0]
    upper: Array = boxes[2]
    with np.errstate(invalid="ignore"):  # infinite edges
        # one step further than the widest box reaches, twice: differences are rounded
        widest: Array = np.nextafter(np.fmax.reduce(upper - lower, initial=0), upper.dtype.type(np.inf))
        least: Array = np.nextafter(lower - widest, lower.dtype.type(-np.inf))
    least[np.isnan(least)] = -np.inf
    first: Array = np.searchsorted(lower, least)
    end: Array = np.searchsorted(lower, upper)
    return first.tolist(), end.tolist()


def _overlap(box: Array, others: Array) -> Array:
    """Return the intersection over the union of boxes and others; 0 without an intersection."""
    height = np.minimum(box[2], others[2]) - np.maximum(box[0], others[0])
    width = np.minimum(box[3], others[3]) - np.maximum(box[1], others[1])
    common = np.maximum(height, 0) * np.maximum(width, 0)
    union = (box[2] - box[0]) * (box[3] - box[1]) + (others[2] - others[0]) * (others[3] - others[1]) - common
    return np.divide(common, union, out=np.zeros_like(common), where=(common > 0) & (union > 0))


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
