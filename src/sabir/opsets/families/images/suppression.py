"""Non-maximum suppression: the boxes of each class that overlap no better one, on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.ir import may_be_equal
from sabir.opsets.families.shapes.ranks import check_one, check_rank, check_shape
from sabir.opsets.families.shapes.sizes import spend_operations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import TensorType
    from sabir.opsets.typing import Array

ROW = 3
"""The numbers of a selected box: its batch, its class, its index."""
_OPERATIONS = 8  # array operations for the boxes of one class
_FEW = 512  # boxes whose overlaps with all others take less time than to find those that may touch
_BLOCK = 16  # boxes whose overlaps are computed at once
_RANK = 3  # batch, classes or boxes, and one more


def check_types(
    boxes: TensorType, scores: TensorType, most: TensorType | None, overlap: TensorType | None,
    threshold: TensorType | None,
) -> None:  # fmt: skip
    """Raise InferenceError for inputs that do not match, or limits of more than one number."""
    for name, t in (("boxes", boxes), ("scores", scores)):
        if t.shape is not None and len(t.shape) != _RANK:
            raise InferenceError(f"`{name}` must be of rank 3, and has rank {len(t.shape)}")
    if boxes.shape is not None and scores.shape is not None:
        pairs = (boxes.shape[0], scores.shape[0]), (boxes.shape[1], scores.shape[2]), (boxes.shape[2], 4)
        if any(not may_be_equal(*pair) for pair in pairs):
            raise InferenceError(f"`boxes` {boxes} and `scores` {scores} do not match")
    _check_numbers(most, overlap, threshold)


def _check_numbers(*inputs: TensorType | Array | None) -> None:
    """Raise InferenceError for a limit that is not one number; an empty tensor counts as absent."""
    names = "max_output_boxes_per_class", "iou_threshold", "score_threshold"
    for name, x in zip(names, inputs, strict=True):
        if x is not None and x.size != 0:
            check_one(name, x)


def selected(
    boxes: Array, scores: Array, most: Array | None, overlap: Array | None, threshold: Array | None,
    center_point_box: int,
) -> Array:  # fmt: skip
    """Return the selected boxes, `[selected, 3]`; raises InferenceError for inputs that do not match."""
    check_rank("scores", scores, _RANK)
    check_shape("boxes", boxes, scores.shape[0], scores.shape[2], 4)
    _check_numbers(most, overlap, threshold)
    limit = int(most.item()) if most is not None and most.size else 0
    part = np.float32(overlap.item() if overlap is not None and overlap.size else 0)
    found = [np.zeros((0, ROW), np.int64)]
    if limit <= 0 or not scores.size:  # there may be very many classes without boxes
        return found[0]
    spend_operations(_OPERATIONS * scores.shape[0] * scores.shape[1], scores.nbytes)
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch], center_point_box)
        for number, row in enumerate(scores[batch]):
            candidates = np.argsort(-row, kind="stable")
            if threshold is not None and threshold.size:
                candidates = candidates[row[candidates] >= threshold.item()]
            kept = _kept(corners, candidates, limit, part)
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
